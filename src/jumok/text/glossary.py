"""A glossary: which terms a translation must use, and where they occur in a sentence.

    student → 수강생        a term with its translation
    jumok → jumok           a term that is not translated

Matching ignores case for a term in lower case. A term with capital letters matches only its exact spelling,
so "US" does not match "us". Terms match whole words, which Korean particles may follow. If several terms
begin at the same word, the longest is used. Matches do not overlap. Addresses and placeholders (`https://…`,
`name@host`, `{name}`, `%s`) are never translated.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from jumok.errors import DataError
from jumok.text.korean_particles import noun_ends_before
from jumok.text.plain_spaces import plain_offsets
from jumok.text.protected_strings import may_have_protected
from jumok.text.script_ranges import character_set
from jumok.text.words import UNSPACED_RANGES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from jumok.text.words import Span

# An address ends before these characters, because a Korean particle can follow an address without a space.
_NOT_IN_ADDRESS = "\u3000-\u30ff\u3400-\u9fff\uac00-\ud7a3\uff00-\uffef"
_URL = rf"(?:https?|ftp)://[^\s<>\"{_NOT_IN_ADDRESS}]+|www\.[^\s<>\"{_NOT_IN_ADDRESS}]+"
# A match must begin at the start of a run of characters that an address can contain. Otherwise a long run
# would take quadratic time.
_EMAIL = r"(?<![A-Za-z0-9_.+-])[A-Za-z0-9_.+-]++@[A-Za-z0-9-]++(?:\.[A-Za-z0-9-]++)++"
_IP_ADDRESS = r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.]*\w)"
_BRACES = r"\{\{[^{}\n]*\}\}|[$%#]?\{[^{}\n]*\}"
_PRINTF = (  # "0.5%p", a percentage point, does not match
    r"(?<!\d)%(?:\(\w+\))?(?:\d++\$)?[-#0+']*+\d*+(?:\.\d++)?(?:hh?|ll?|[Lqzjt])?[@sdifuxXgGeEcop](?![a-zA-Z])"
)
_CODE = r"`[^`\n]+`"
_PROTECTED = re.compile("|".join((_URL, _EMAIL, _IP_ADDRESS, _BRACES, _PRINTF, _CODE)))
_AFTER_ADDRESS = ".,;:!?)]}'\"”’»…。、"  # at the end of an address, these belong to the sentence

_UNSPACED = character_set(UNSPACED_RANGES)
# A term may begin where a match of this pattern begins.
_TERM_START = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+|[^\w\s]")
_WORD_CHARACTER = re.compile(rf"[^\W_{_UNSPACED}]")
_HANGUL = re.compile("[가-힣]+")
_KEY_LENGTH = 2  # the number of first letters in the keys of `Glossary._lengths`


@dataclass(frozen=True, slots=True)
class TermMatch:
    """A term in a sentence: its span, and the text that must represent the term in the translation."""

    span: Span
    target: str
    protected: bool = False
    """Whether the match is an address, a placeholder or `code`. It may be anywhere in the translation."""


class Glossary:
    """Terms with their translations. A term that is its own translation is not translated."""

    def __init__(self, terms: Mapping[str, str] | Iterable[tuple[str, str]] = ()) -> None:
        pairs = terms.items() if hasattr(terms, "items") else terms
        self.terms: dict[str, str] = {}
        for source, target in pairs:
            if not isinstance(source, str) or not isinstance(target, str):
                raise DataError(f"A glossary has pairs of texts. Received: {(source, target)!r:.80}.")
            self._add(" ".join(source.split()), " ".join(target.split()))
        # First letters → the lengths of the terms that begin with these letters, in descending order.
        self._lengths: dict[str, list[int]] = {}
        for length, beginning in sorted({(len(term), term[:_KEY_LENGTH].lower()) for term in self.terms}):
            self._lengths.setdefault(beginning, []).insert(0, length)

    def __len__(self) -> int:
        return len(self.terms)

    def __repr__(self) -> str:
        return f"Glossary({len(self.terms):,} terms)"

    def find(self, sentence: str, protected: Sequence[TermMatch] = ()) -> list[TermMatch]:
        """Return the terms of a sentence and the `protected` matches, in order. Matches do not overlap."""
        sentence, offsets = plain_offsets(sentence)
        lower = sentence.lower()
        if len(lower) != len(sentence):  # the lower case of İ is two characters
            lower = "".join(low if len(low := letter.lower()) == 1 else letter for letter in sentence)
        matches, protected_spans = list(protected), sorted(match.span for match in protected)
        position = 0
        for start in (match.start() for match in _TERM_START.finditer(sentence)):
            if start < position or _overlaps((offsets[start], offsets[start] + 1), protected_spans):
                continue
            match = self._match_at(sentence, lower, start)
            if match is None:
                continue
            span = (offsets[start], offsets[match.span[1] - 1] + 1)  # in the original sentence
            if not _overlaps(span, protected_spans):
                matches.append(replace(match, span=span))
                position = match.span[1]
        return sorted(matches, key=lambda match: match.span)

    def _add(self, source: str, target: str) -> None:
        if not source or not target:
            raise DataError(
                f"A term of a glossary has two texts. Received: {source!r} → {target!r}. A term that is not "
                "translated has itself as its translation."
            )
        if self.terms.setdefault(source, target) != target:
            raise DataError(
                f"The glossary has two translations of {source!r}: {self.terms[source]!r} and {target!r}. "
                "Leave one of them out."
            )

    def _match_at(self, sentence: str, lower: str, start: int) -> TermMatch | None:
        """Return the longest term that begins at `start`. Case matters for terms with a capital letter."""
        for key_length in range(_KEY_LENGTH, 0, -1):
            for length in self._lengths.get(lower[start : start + key_length], ()):
                end = start + length
                target = self.terms.get(sentence[start:end]) or self.terms.get(lower[start:end])
                if target is not None and end <= len(sentence) and _ends_word(sentence, start, end):
                    return TermMatch((start, end), target)
        return None


def find_protected(sentence: str) -> list[TermMatch]:
    """Return the addresses, placeholders and `code` of a sentence."""
    if not may_have_protected(sentence):
        return []
    protected = []
    for match in _PROTECTED.finditer(sentence):
        text = match.group()
        if text[0] not in "{`$%#":
            text = text.rstrip(_AFTER_ADDRESS)
        protected.append(TermMatch((match.start(), match.start() + len(text)), text, protected=True))
    return protected


def _ends_word(sentence: str, start: int, end: int) -> bool:
    """Return whether a term ends at the end of a word, or before the particles of a Korean word."""
    if end < len(sentence) and unicodedata.category(sentence[end])[0] == "M":  # a vowel sign: कम in कमी
        return False
    if (
        end >= len(sentence)
        or not _WORD_CHARACTER.match(sentence, end)
        or not _WORD_CHARACTER.match(sentence, end - 1)
    ):
        return True
    hangul = _HANGUL.match(sentence, end)
    if hangul is None or _WORD_CHARACTER.match(sentence, hangul.end()):
        return False
    term, tail = sentence[start:end], hangul.group()
    if _HANGUL.fullmatch(term[-1]):
        return noun_ends_before(term, tail)
    # The last sound of a foreign word such as "jumok" is uncertain, so the forms after a consonant (각) and
    # after a vowel (가) are accepted.
    return any(noun_ends_before(syllable, tail) for syllable in "각가")


def _overlaps(span: Span, others: Sequence[Span]) -> bool:
    """Return whether a span overlaps one of the others, which are sorted and do not overlap each other."""
    index = bisect_left(others, (span[1],))  # the first of the others that starts after the span
    return index > 0 and others[index - 1][1] > span[0]
