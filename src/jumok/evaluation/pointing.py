"""Pointing: does a word of a caption attend to the part of the picture that it names?

    hit(word) = argmaxᵢ w̄ᵢ lies in a gold region of the word         the pointing game, Zhang et al. 2016

w̄ is the cross-attention of the last layer, averaged over its heads and over the tokens of the name. In
Korean, a noun and its particle are one word, but the particle follows from the noun and can be written
without attention to the picture. The region of such a word says how many letters the name has
(`Region.letters`), and only tokens that begin within these letters are measured. A patch lies in a region if
the centre of the patch lies in the region. The edge of a thing is often in a patch whose centre is just
outside the region, so a second score also counts patches that overlap the region. A word is scored only if
the caption has the word at the same index as the reference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from jumok.inference.attention_maps import picture_map
from jumok.pictures.patches import patches_in_region
from jumok.text.words import split_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.inference.translator import Translator
    from jumok.text.picture_tokenizer import PictureTokenizer
    from jumok.types import Pair, Region


@dataclass(frozen=True, slots=True)
class PointingScores:
    """Counts of the words that have a gold region."""

    words: int
    written: int  # words that the model wrote at the same index
    hits: int  # written words whose greatest attention is on a patch with its centre in the region
    overlaps: int = 0  # written words whose greatest attention is on a patch that overlaps it; hits included

    @property
    def accuracy(self) -> float:
        """The share of the written words that are hits."""
        return self.hits / max(self.written, 1)

    @property
    def overlap(self) -> float:
        """The share of the written words that `overlaps` counts."""
        return self.overlaps / max(self.written, 1)


def score_pointing(
    translator: Translator, pairs: Sequence[Pair], captions: Sequence[str]
) -> PointingScores | None:
    """Score the captions that the translator wrote; None if no pair has regions."""
    gold = [
        (pair, pair.picture.regions, caption)
        for pair, caption in zip(pairs, captions, strict=True)
        if pair.picture and pair.picture.regions
    ]
    if not gold:
        return None
    tokenizer = cast("PictureTokenizer", translator.tokenizers.source)
    words = written = hits = overlaps = 0
    for pair, regions, caption in gold:
        reference, caption_words = split_words(pair.target), split_words(caption)
        gold_words = {region.word for region in regions if region.word < len(reference)}
        common = {
            word
            for word in gold_words
            if word < len(caption_words) and caption_words[word] == reference[word]
        }
        words, written = words + len(gold_words), written + len(common)
        if common:
            weights = picture_map(translator.attention(pair.source, caption)["cross"].weights)
            for word in common:
                word_regions = [region for region in regions if region.word == word]
                # The regions of a word are expected to have the same number of letters.
                rows = _name_tokens(translator, caption, word_regions[0])
                patch = int(weights[rows].mean(axis=0).argmax())
                hits += any(bool(patches_in_region(region, tokenizer.grid)[patch]) for region in word_regions)
                overlaps += any(
                    bool(patches_in_region(region, tokenizer.grid, overlapping=True)[patch])
                    for region in word_regions
                )
    return PointingScores(words, written, hits, overlaps)


def _name_tokens(translator: Translator, caption: str, region: Region) -> list[int]:
    """Return the positions of the caption's tokens that write the name of the thing in the region."""
    tokenizer = translator.tokenizers.target
    ids = tokenizer.encode(caption)
    letters_before, positions = 0, []
    for position, word in enumerate(tokenizer.word_of_token(caption, ids)):
        if word == region.word and (region.letters is None or letters_before < region.letters):
            positions.append(position)
            letters_before += len(tokenizer.decode([ids[position]]).strip())
    return positions
