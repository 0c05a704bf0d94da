"""Put terms of a glossary, addresses and placeholders into translations that lack them.

In this module, addresses and placeholders are terms too (`TermMatch.protected`). Word alignments are computed
only for the sentences whose translations lack a term.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from jumok.errors import UnsupportedError
from jumok.inference.text_options import LINE_BY_LINE
from jumok.inference.translation_notes import is_note_on
from jumok.text.glossary import find_protected
from jumok.text.term_placement import (
    WordEvidence,
    evidence_of_links,
    has_all_terms,
    lost_protected,
    place_terms_in_sentence,
    term_notes,
    without_protected,
)
from jumok.text.word_mapping import diagonal_links
from jumok.text.words import split_words
from jumok.types import Alignment, Pair

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jumok.inference.text_options import TextHandling
    from jumok.inference.translation import Translation
    from jumok.inference.translator import Translator
    from jumok.text.glossary import TermMatch
    from jumok.text.term_placement import PlacedTerms

    Retranslate = Callable[[Sequence[str], Sequence[str]], list[Translation]]
    """Translates sentences, each with its prefix, with the same search as the first translations."""

MAX_CACHED_TERMS = 10_000
"""The maximum number of terms in the cache. The clients of a server may send any number of terms."""


@dataclass(frozen=True, slots=True)
class PairMissingTerms:
    """A sentence, and a translation of this sentence in which terms are missing."""

    pair: Pair
    matches: Sequence[TermMatch]
    """All terms of the sentence, not only the missing ones."""
    prefix: str = ""
    """The given beginning of the translation."""
    rank: int = 0
    """0 for the best translation of the sentence, 1 for its first alternative, and so on."""


@dataclass(frozen=True, slots=True)
class SentenceMissingTerms:
    """Where a `PairMissingTerms` stands among several texts.

    `text_index` is the index of the text. `part` is the index of the sentence in `Translation.parts`, or None
    for an alternative (only a text of one part has alternatives whose terms are placed).
    """

    text_index: int
    part: int | None
    pair: PairMissingTerms


def find_terms(sentence: str, handling: TextHandling) -> Sequence[TermMatch]:
    """Return the terms of a sentence that its translation must have."""
    protected = find_protected(sentence) if handling.protect else []
    return protected if handling.glossary is None else handling.glossary.find(sentence, protected)


def place_terms(
    translations: list[Translation],
    handling: TextHandling,
    translator: Translator,
    retranslate: Retranslate,
    prefixes: Sequence[str],
) -> list[Translation]:
    """Return the translations with the terms that their sources require, in the same order.

    If a term cannot be placed, the translation has a note.
    """
    incomplete = [
        sentence
        for index, (translation, prefix) in enumerate(zip(translations, prefixes, strict=True))
        for sentence in _sentences_missing_terms(index, translation, handling, prefix)
    ]
    if not incomplete:
        return translations
    results = place_in_pairs([sentence.pair for sentence in incomplete], translator, retranslate)
    placed_in: dict[int, list[tuple[SentenceMissingTerms, PlacedTerms]]] = {}
    for sentence, placed in zip(incomplete, results, strict=True):
        placed_in.setdefault(sentence.text_index, []).append((sentence, placed))
    return [
        _with_terms(translation, placed_in[index]) if index in placed_in else translation
        for index, translation in enumerate(translations)
    ]


def _sentences_missing_terms(
    index: int, translation: Translation, handling: TextHandling, prefix: str
) -> list[SentenceMissingTerms]:
    """Return the parts and the alternatives of the translation of text `index` that lack terms."""
    incomplete = []
    for part, (source, text) in enumerate(translation.parts):
        matches = find_terms(source, handling)
        if not matches:
            continue
        part_prefix = "" if part else prefix  # a prefix begins the first sentence
        if not has_all_terms(text, matches):
            incomplete.append(
                SentenceMissingTerms(index, part, PairMissingTerms(Pair(source, text), matches, part_prefix))
            )
        if len(translation.parts) == 1:
            incomplete += [
                SentenceMissingTerms(
                    index, None, PairMissingTerms(Pair(source, alternative), matches, part_prefix, rank)
                )
                for rank, (alternative, _) in enumerate(translation.alternatives, start=1)
                if not has_all_terms(alternative, matches)
            ]
    return incomplete


def place_in_pairs(
    pairs: Sequence[PairMissingTerms], translator: Translator, retranslate: Retranslate
) -> list[PlacedTerms]:
    """Return the target of each pair with the terms of its source.

    If a target has lost an address or a placeholder, its source is translated again without such strings, and
    the new translation of the same rank is used instead.
    """
    if not pairs:  # torch need not be loaded
        return []
    words_for = _words_for(pairs, translator)
    # Index of a pair whose target has lost protected strings → its source without protected strings, and the
    # original index of each remaining word.
    short_sources = {
        index: without_protected(incomplete.pair.source, incomplete.matches)
        for index, incomplete in enumerate(pairs)
        if lost_protected(incomplete.pair.target, incomplete.matches)
    }
    # The best translation of a sentence and its alternatives have the same source. Such a source is
    # translated again only once.
    inputs = list(dict.fromkeys((text, pairs[index].prefix) for index, (text, _) in short_sources.items()))
    outputs = retranslate([text for text, _ in inputs], [prefix for _, prefix in inputs]) if inputs else []
    output_of = dict(zip(inputs, outputs, strict=True))
    new_translations = {
        index: output_of[text, pairs[index].prefix] for index, (text, _) in short_sources.items()
    }
    pairs_to_align = [
        Pair(short_sources[index][0], _text_of_rank(new_translations[index], incomplete.rank))
        if index in short_sources
        else incomplete.pair
        for index, incomplete in enumerate(pairs)
    ]
    results = []
    for index, evidence in enumerate(_evidence(pairs_to_align, translator)):
        source, matches = pairs[index].pair.source, pairs[index].matches
        if index in short_sources:
            evidence = evidence.for_original_source(short_sources[index][1], len(split_words(source)))
        evidence = replace(evidence, words_for=words_for)
        placed = place_terms_in_sentence(source, pairs_to_align[index].target, evidence, matches)
        if index in short_sources:
            placed = replace(placed, notes=new_translations[index].notes)
        results.append(placed)
    return results


def _text_of_rank(translation: Translation, rank: int) -> str:
    """Return the text of this rank (0: the best), or the last alternative if there are fewer texts."""
    texts = [translation.text, *(text for text, _ in translation.alternatives)]
    return texts[min(rank, len(texts) - 1)]


def _evidence(pairs: Sequence[Pair], translator: Translator) -> list[WordEvidence]:
    """Return the attention between words and the word alignment of each pair.

    If the model has no cross-attention, words are aligned by their positions.
    """
    try:
        maps = translator.word_attentions(pairs)
    except UnsupportedError:
        num_words = [(len(split_words(pair.source)), len(split_words(pair.target))) for pair in pairs]
        return [evidence_of_links(diagonal_links(*counts), *counts, by_position=True) for counts in num_words]
    return [WordEvidence(weights.tolist(), sorted(alignment.sure)) for weights, alignment in maps]


def _words_for(pairs: Sequence[PairMissingTerms], translator: Translator) -> dict[str, Sequence[str]]:
    """Translate each term alone, and return term in lower case → the words of its translation.

    The translator caches the words. Several threads may use this cache, and remove words from it, at once.
    Protected strings are not translated.
    """
    terms = {
        incomplete.pair.source[slice(*match.span)].lower()
        for incomplete in pairs
        for match in incomplete.matches
        if not match.protected
    }
    cached = translator.words_for_terms
    words = {term: known for term in terms if (known := cached.get(term)) is not None}
    if new := sorted(terms - words.keys()):
        translations = translator.translate([f"{term}." for term in new], **LINE_BY_LINE)
        for term, translation in zip(new, translations, strict=True):
            words[term] = cached[term] = tuple(dict.fromkeys(split_words(translation.text)))
    if len(cached) > MAX_CACHED_TERMS:
        for oldest in list(cached)[:-MAX_CACHED_TERMS]:
            cached.pop(oldest, None)
    return words


def _with_terms(
    translation: Translation, placed: Sequence[tuple[SentenceMissingTerms, PlacedTerms]]
) -> Translation:
    """Return a translation with the new texts of some of its parts and alternatives."""
    parts, alternatives = list(translation.parts), list(translation.alternatives)
    alignments: dict[tuple[str, str], Alignment] = {}
    notes = list(translation.notes)
    text, end = translation.text, 0
    terms_of_part = {sentence.part: terms for sentence, terms in placed if sentence.part is not None}
    for index, (source, old_text) in enumerate(translation.parts):
        # One of several parts may begin or end with white space, but the joined text does not.
        if text.find(old_text, end) < 0:
            old_text = old_text.strip()
        start = text.index(old_text, end)
        part_terms = terms_of_part.get(index)
        new_text = old_text if part_terms is None else part_terms.text
        text, end = text[:start] + new_text + text[start + len(old_text) :], start + len(new_text)
        if part_terms is not None:
            parts[index] = (source, new_text)
            alignments[source, new_text] = Alignment(frozenset(part_terms.links))
            if part_terms.notes is not None:  # the sentence was translated again
                notes = [note for note in notes if not is_note_on(note, source)] + list(part_terms.notes)
            notes.extend(term_notes(part_terms))
    for sentence, terms in placed:
        if sentence.part is None:
            index = sentence.pair.rank - 1
            alternatives[index] = (terms.text, alternatives[index][1])
    distinct: dict[str, float] = {}
    for alternative, score in alternatives:  # best first: of equal texts, the first has the best score
        if alternative != text:
            distinct.setdefault(alternative, score)
    align = translation.align
    return replace(
        translation,
        text=text,
        parts=tuple(parts),
        alternatives=tuple(distinct.items()),
        notes=tuple(notes),
        align=None
        if align is None
        else lambda source, target: alignments.get((source, target)) or align(source, target),
    )
