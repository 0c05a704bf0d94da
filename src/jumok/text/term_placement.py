"""Put the terms of a glossary into a translation. A term replaces the words that translate its source words.

    The student goes to the library.      학생이 도서관에 간다.        student → 교사
    교사가 도서관에 간다.                   the stem of 학생이 is replaced, and 이 becomes 가

Two kinds of evidence show which words translate a term: the attention between words, and the model's
translation of the term alone ("student." → 학생은 …). The second kind also shows where the stem of a word
ends. Terms are not forced into the search, because a small model often continues with nonsense after a word
that it has never seen.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jumok.text.korean_particles import adapt_particle, is_particle, noun_ends_before, split_particle
from jumok.text.script_ranges import character_set
from jumok.text.words import UNSPACED_RANGES, word_spans

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jumok.text.glossary import TermMatch
    from jumok.text.words import Span
    from jumok.types import Link

MIN_WEIGHT = 0.1
"""A target word translates a term only if its attention to the term is at least this weight."""
_POSSESSIVE = re.compile(r"['’]s?$")
_UNSPACED = re.compile(f"[{character_set(UNSPACED_RANGES)}]")
_HANGUL = re.compile("[가-힣]")
_HANGUL_RUN = re.compile("[가-힣]*")
# Endings that turn a noun into a verb: 공부했다 contains the noun 공부.
_VERBAL = re.compile("[하해했한할합함되돼됐된될됩됨]|시[키켰킨킬킵]|당[하했한]|스[럽러]")
_KANA_PARTICLES = frozenset("はがをにでとのもへや")
_CLOSING = ".,;:?!)]}。、！？…"
_MIN_COMMON_LETTERS = 4  # two forms of one word have at least this many first letters in common


@dataclass(frozen=True, slots=True)
class WordEvidence:
    """Evidence about which words of a translation translate which source words.

    `weights` has the shape (target word, source word) and contains attention weights, or 1 for each link.
    `links` are the links of the word alignment. `words_for` maps a term in lower case to the words of the
    model's translation of the term alone. If `by_position` is true, there is no evidence, and words are
    linked by their positions.
    """

    weights: Sequence[Sequence[float]]
    links: Sequence[Link]
    words_for: Mapping[str, Sequence[str]] = field(default_factory=dict)
    by_position: bool = False

    def for_original_source(self, word_of: Sequence[int], num_words: int) -> WordEvidence:
        """Return the evidence for the original source if only some of its words were given to the model.

        For each of these words, `word_of` has the index of the word in the original source.
        """
        weights = []
        for row in self.weights:
            original = [0.0] * num_words
            for word, weight in zip(word_of, row, strict=False):  # not strict: a row may also have </s>
                original[word] += weight
            weights.append(original)
        links = [(word_of[i], j) for i, j in self.links]
        return WordEvidence(weights, links, self.words_for, self.by_position)


@dataclass(frozen=True, slots=True)
class PlacedTerms:
    """A translation with its terms, its word links, and the terms that could not be placed."""

    text: str
    links: tuple[Link, ...]
    missing: tuple[str, ...] = ()
    placed_by_position: tuple[str, ...] = ()
    """Terms that were placed by their position, because the words that translate them are unknown."""
    notes: tuple[str, ...] | None = None
    """The notes on the translation if the sentence was translated again for its terms."""


@dataclass(frozen=True, slots=True)
class _Edit:
    """A text that replaces a span of the translation, and the source words that it translates."""

    span: Span
    text: str
    source_words: tuple[int, ...]


def has_all_terms(translation: str, matches: Sequence[TermMatch]) -> bool:
    """Return whether the translation has every term at least as often as the source."""
    targets = [match.target for match in matches]
    return all(len(_occurrences(translation, term)) >= targets.count(term) for term in set(targets))


def term_notes(placed: PlacedTerms) -> list[str]:
    """Return the notes on terms that could not be placed, or not reliably."""
    missing_note = "could not be placed: no word of the translation is linked to it"
    by_position_note = "was placed by its position: without cross-attention, no word is known to translate it"
    return [
        *(f'the term "{term}" {missing_note}' for term in placed.missing),
        *(f'the term "{term}" {by_position_note}' for term in placed.placed_by_position),
    ]


def evidence_of_links(
    links: Sequence[Link], num_source_words: int, num_target_words: int, *, by_position: bool = False
) -> WordEvidence:
    """Return evidence that consists only of word links, with a weight of 1 for each link."""
    linked = set(links)
    weights = [[float((i, j) in linked) for i in range(num_source_words)] for j in range(num_target_words)]
    return WordEvidence(weights, links, by_position=by_position)


def place_terms_in_sentence(
    source: str, translation: str, evidence: WordEvidence, matches: Sequence[TermMatch]
) -> PlacedTerms:
    """Return the translation with the terms, addresses and placeholders of `matches`."""
    if has_all_terms(translation, matches):
        return PlacedTerms(translation, tuple(evidence.links))
    placer = _Placer(source, translation, evidence)
    placer.keep([match.target for match in matches if match.protected])
    counts = Counter(match.target for match in matches if not match.protected)
    to_place = [
        match
        for match in matches
        if not match.protected and len(_occurrences(translation, match.target)) < counts[match.target]
    ]
    placed = {match: placer.place(match) for match in to_place}
    missing = [match for match in to_place if not placed[match]]
    for match in lost_protected(translation, matches):
        placer.insert(match)
    text, new_links = placer.result()
    placed_by_position = [match.target for match in to_place if placed[match] and evidence.by_position]
    return PlacedTerms(
        text,
        new_links,
        tuple(match.target for match in missing if not _occurrences(text, match.target)),
        tuple(dict.fromkeys(placed_by_position)),
    )


def lost_protected(translation: str, matches: Sequence[TermMatch]) -> list[TermMatch]:
    """Return the addresses and placeholders that are missing from a translation."""
    rest = translation
    lost = []
    for match in matches:
        if match.protected and match.target in rest:
            rest = rest.replace(match.target, "\0", 1)
        elif match.protected:
            lost.append(match)
    return lost


def without_protected(source: str, matches: Sequence[TermMatch]) -> tuple[str, list[int]]:
    """Return a sentence without its addresses and placeholders.

    Also return, for each word of the result, the index of the word in `source`. A model that has never seen
    such a string often translates the words around the string badly, or replaces the string.
    """
    indices: list[int] = []  # of the characters that stay
    for index, character in enumerate(source):
        if any(match.protected and match.span[0] <= index < match.span[1] for match in matches):
            continue
        if character.isspace() and (not indices or source[indices[-1]].isspace()):
            continue
        if indices and source[indices[-1]].isspace() and character in _CLOSING:
            indices.pop()
        indices.append(index)
    text = "".join(source[index] for index in indices)
    words = word_spans(source)
    word_at = {index: number for number, (start, end) in enumerate(words) for index in range(start, end)}
    return text, [word_at[indices[start]] for start, _ in word_spans(text)]


class _Placer:
    """Collects the edits of one translation."""

    def __init__(self, source: str, translation: str, evidence: WordEvidence) -> None:
        self._source, self._translation = source, translation
        self._evidence, self._links = evidence, evidence.links
        self._source_words, self._words = word_spans(source), word_spans(translation)
        self._edits: list[_Edit] = []
        self._claimed_words: set[int] = set()  # words of the translation that no other term may replace
        self._kept_spans: list[Span] = []  # of the addresses and placeholders in the translation

    def keep(self, protected: Sequence[str]) -> None:
        """Keep these addresses and placeholders of the translation whole."""
        for text in protected:
            self._kept_spans += [match.span() for match in re.finditer(re.escape(text), self._translation)]
        for index, (start, end) in enumerate(self._words):
            if any(start < high and low < end for low, high in self._kept_spans):
                self._claimed_words.add(index)

    def place(self, match: TermMatch) -> bool:
        """Replace the words that translate a term by the term. Return False if no word translates it."""
        source_words = self._source_words_of(match)
        run = self._translating_run(match, source_words)
        if not run:
            return False
        self._claimed_words.update(run)
        start, end = self._words[run[0]][0], self._words[run[-1]][1]
        if not _occurrences(self._translation[start:end], match.target):
            stem = self._stem_of(run[-1], self._words_for(match))
            text = self._with_ending(match.target, start, end, stem)
            self._edits.append(_Edit((start, end), text, source_words))
        return True

    def insert(self, match: TermMatch) -> None:
        """Insert an address or a placeholder.

        The string is inserted after the translation of the preceding source word. If no preceding source word
        has a translation, the string is inserted before the translation of the following words. If these have
        no translation either, the string is inserted at the end.
        """
        source_words = self._source_words_of(match)
        first, last = min(source_words, default=0), max(source_words, default=0)
        links = [(i, j) for i, j in self._links if j < len(self._words)]
        before = [(i, j) for i, j in links if i < first]
        after = [j for i, j in links if i > last]
        if before:
            _, word = max(before)  # the last word that is linked to the nearest source word
            position = self._words[word][1]
        elif after:
            position = self._words[min(after)][0]
        else:
            position = len(self._translation)
        # The position must not be inside the span of another edit, an address or a placeholder.
        for start, end in [*(edit.span for edit in self._edits), *self._kept_spans]:
            if start < position < end:
                position = end
        following = self._translation[position : position + 1]
        left = "" if position == 0 or self._translation[position - 1].isspace() else " "
        right = " " if following.isalnum() else ""
        self._edits.append(_Edit((position, position), left + match.target + right, source_words))

    def result(self) -> tuple[str, tuple[Link, ...]]:
        """Return the translation with all edits, and its word links."""
        pieces: list[str] = []
        # Unchanged spans of the new text. Adding the number to an offset in the new text gives the offset in
        # the old text.
        unchanged: list[tuple[Span, int]] = []
        placed: list[tuple[Span, tuple[int, ...]]] = []
        position = length = 0
        for edit in sorted(self._edits, key=lambda edit: edit.span):
            pieces += [self._translation[position : edit.span[0]], edit.text]
            start = length + edit.span[0] - position
            unchanged.append(((length, start), position - length))
            length = start + len(edit.text)
            placed.append(((start, length), edit.source_words))
            position = edit.span[1]
        pieces.append(self._translation[position:])
        text = "".join(pieces)
        unchanged.append(((length, len(text)), position - length))
        return text, self._new_links(text, unchanged, placed)

    def _new_links(
        self,
        text: str,
        unchanged: Sequence[tuple[Span, int]],
        placed: Sequence[tuple[Span, tuple[int, ...]]],
    ) -> tuple[Link, ...]:
        links: set[Link] = set()
        for new, (start, end) in enumerate(word_spans(text)):
            for (low, high), source_words in placed:
                if start < high and low < end:
                    links.update((i, new) for i in source_words)
            for (low, high), to_old in unchanged:
                if low <= start < high:
                    old = [j for j, (left, right) in enumerate(self._words) if left <= start + to_old < right]
                    links.update((i, new) for i, j in self._links if j in old)
        return tuple(sorted(links))

    def _source_words_of(self, match: TermMatch) -> tuple[int, ...]:
        low, high = match.span
        return tuple(i for i, (start, end) in enumerate(self._source_words) if start < high and low < end)

    def _translating_run(self, match: TermMatch, source_words: Sequence[int]) -> list[int]:
        """Return the indices of the word that translates a term and of neighbours that also translate it."""
        words_for_term = self._words_for(match)
        weight_of = {
            j: sum(row[i] for i in source_words)
            for j, row in enumerate(self._evidence.weights)
            if j not in self._claimed_words and any(map(str.isalnum, self._word(j)))
        }
        candidates = {j: weight for j, weight in weight_of.items() if weight >= MIN_WEIGHT}
        confirmed = [j for j in candidates if self._stem_of(j, words_for_term)]
        if not candidates:  # use the first word of the model's translation of the term alone
            equal_words = [j for j in weight_of if self._stem_of(j, words_for_term[:1])]
            return [max(equal_words, key=weight_of.__getitem__)] if equal_words else []
        best = max(confirmed or candidates, key=candidates.__getitem__)
        run = [best]
        while (before := run[0] - 1) in candidates and self._belongs(
            before, run, words_for_term, source_words
        ):
            run.insert(0, before)
        while (after := run[-1] + 1) in candidates and self._belongs(
            after, run, words_for_term, source_words
        ):
            run.append(after)
        return run

    def _belongs(
        self, word: int, run: Sequence[int], words_for_term: Sequence[str], source_words: Sequence[int]
    ) -> bool:
        """Return whether a neighbour of a run also translates the term.

        For example, 공공 도서관에 are two words for the term "public library".
        """
        if words_for_term:
            stem = self._stem_of(word, words_for_term)
            return bool(stem) and stem not in [self._stem_of(j, words_for_term) for j in run]
        linked = {i for i, j in self._links if j == word}
        return len(source_words) > 1 and bool(linked) and linked <= set(source_words)

    def _words_for(self, match: TermMatch) -> Sequence[str]:
        return self._evidence.words_for.get(self._source[slice(*match.span)].lower(), ())

    def _stem_of(self, word: int, words_for_term: Sequence[str]) -> str:
        """Return the stem that a Korean word shares with one of `words_for_term`, or "".

        For a word in another script, return the whole word if it begins like one of `words_for_term`.
        """
        text = self._word(word)
        if _HANGUL.match(text[-1]):
            stems = {split_particle(reference)[0] for reference in words_for_term}
            fitting = [
                stem
                for stem in stems
                if text.startswith(stem) and (text == stem or is_particle(stem, text[len(stem) :]))
            ]
            return max(fitting, key=len, default="")
        for reference in words_for_term:
            common, length = _common_length(text.lower(), reference.lower()), len(reference)
            if common == length == len(text) or common >= max(_MIN_COMMON_LETTERS, 0.6 * length):
                return text
        return ""

    def _word(self, index: int) -> str:
        return self._translation[slice(*self._words[index])]

    def _with_ending(self, term: str, start: int, end: int, stem: str) -> str:
        """Return a term with the particles, or the possessive, of the words that it replaces."""
        replaced = self._translation[start:end]
        if _HANGUL.match(replaced[-1]):
            last = replaced.split()[-1]
            stem, tail = (stem, last[len(stem) :]) if stem else split_particle(last)
            return term + adapt_particle(term, tail, old_stem=stem)
        if len(replaced) > 1 and replaced[-1] in _KANA_PARTICLES and replaced[-2] not in _KANA_PARTICLES:
            return term + replaced[-1]
        possessive = _POSSESSIVE.search(replaced)
        if start == 0 and replaced[:1].isupper() and term[:1].islower():
            term = term[:1].upper() + term[1:]
        return term + (possessive.group() if possessive else "")


def _common_length(first: str, second: str) -> int:
    """Return the length of the common prefix of two words."""
    return next(
        (i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b),
        min(len(first), len(second)),
    )


def _occurrences(text: str, term: str) -> list[int]:
    """Return the offsets at which a term occurs in a text as a whole word.

    In Hangul, particles and endings may follow the term. The first letter of a term in lower case may be a
    capital letter in the text, for example at the start of a sentence.
    """
    first, others = term[:1], re.escape(term[1:])
    pattern = f"[{re.escape(first)}{first.upper()}]{others}" if first.isalpha() else re.escape(term)
    if first.isalnum() and not _UNSPACED.match(first):
        pattern = r"(?<![^\W_])" + pattern
    if term[-1:].isalnum() and term[-1:].isascii():
        pattern += r"(?![a-zA-Z0-9])"
    starts = [match.start() for match in re.finditer(pattern, text)]
    if _HANGUL.match(term[-1:]):
        starts = [start for start in starts if _ends_hangul_word(text, term, start + len(term))]
    return starts


def _ends_hangul_word(text: str, term: str, end: int) -> bool:
    match = _HANGUL_RUN.match(text, end)
    tail = match.group() if match else ""
    return noun_ends_before(term, tail) or _VERBAL.match(tail) is not None
