"""Pointing: does the attention of a written word look at what the word names?

    hit(word) = argmaxᵢ w̄ᵢ lies in a gold region of the word         the pointing game, Zhang et al. 2016

w̄ is the cross-attention of the last layer, its mean over the heads and over the tokens that write the name.
Korean writes a noun and its particle as one word, but the particle is not part of the name and follows from
it without a look at the picture: such a region says how many letters the name has, and only the tokens of
these are measured. A patch lies in a region if its centre does. The edge of a thing is often in a patch whose
centre is just outside, so patches that overlap the region are counted too, as a second number. Only words
that the model wrote where the reference has them are counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from jumok.pictures.patches import patches_in_region
from jumok.text.words import split_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.inference.translator import Translator
    from jumok.text.picture_tokenizer import PictureTokenizer
    from jumok.types import Pair, Region


@dataclass(frozen=True, slots=True)
class PointingScores:
    """Words with a gold region: how many the model wrote, and how many of these attend into the region."""

    words: int
    written: int
    hits: int
    overlaps: int = 0  # hits, and words whose greatest attention is on a patch that overlaps the region

    @property
    def accuracy(self) -> float:
        return self.hits / max(self.written, 1)

    @property
    def overlap(self) -> float:
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
        reference, found = split_words(pair.target), split_words(caption)
        wanted = {region.word for region in regions if region.word < len(reference)}
        named = {word for word in wanted if word < len(found) and found[word] == reference[word]}
        words, written = words + len(wanted), written + len(named)
        if named:
            weights = translator.attention(pair.source, caption)["cross"].weights[-1].mean(axis=0)
            for word in named:
                named_regions = [region for region in regions if region.word == word]
                rows = _name_tokens(translator, caption, named_regions[0])
                patch = int(weights[rows].mean(axis=0).argmax())
                hits += any(bool(patches_in_region(one, tokenizer.grid)[patch]) for one in named_regions)
                overlaps += any(
                    bool(patches_in_region(one, tokenizer.grid, overlapping=True)[patch])
                    for one in named_regions
                )
    return PointingScores(words, written, hits, overlaps)


def _name_tokens(translator: Translator, caption: str, region: Region) -> list[int]:
    """Return the positions of the tokens that write the name of what the region shows."""
    tokenizer = translator.tokenizers.target
    ids = tokenizer.encode(caption)
    letters_before, found = 0, []
    for position, word in enumerate(tokenizer.word_of_token(caption, ids)):
        if word == region.word and (region.letters is None or letters_before < region.letters):
            found.append(position)
            letters_before += len(tokenizer.decode([ids[position]]).strip())
    return found
