"""Faults: what can be wrong with a sentence pair, and how each fault is found.

One set of rules serves the check-up, which counts, and training, which skips: what the one reports is what
the other does. Rules look at blocks of pairs, as most blocks show at a glance that nothing is wrong.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from jumok.corpus.languages import LANGUAGES
from jumok.corpus.scripts import CONTROL, JOINER, REPLACEMENT, ZERO_WIDTH, Characters, look_up, script_density

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["Fault", "Findings", "Inspector", "Limits"]


class Fault(Enum):
    """A fault, whether training skips pairs that have it, and what it means.

    A pair with several faults is counted under each, and skipped for the first that skips.
    """

    EMPTY = ("empty", True, "one side is empty")
    TOO_LONG = ("too long", True, "more than {0.longest_words} words or {0.longest_characters:,} characters")
    REPLACED = ("replaced characters", True, "U+FFFD: letters were lost when the text was decoded")
    MOJIBAKE = ("mojibake", True, "UTF-8 read as another encoding: Ã© for é")
    CONTROL = ("control characters", True, "invisible bytes that belong to no text")
    WRONG_SCRIPT = ("wrong script", True, "hardly a letter of the script of its language")
    UNTRANSLATED = ("untranslated", True, "source and target are the same")
    LENGTH_RATIO = ("odd length ratio", True, "one side is far longer than its translation should be")
    DUPLICATE = ("duplicate", True, "the same pair came before")
    LEAKED = ("leaked", True, "its source also stands in the validation or test set")
    OTHER_TARGET = ("other translation", False, "the same source came before with another target")
    ZERO_WIDTH = ("zero-width characters", False, "invisible characters inside words")
    NOT_COMPOSED = ("not NFC", False, "letters in several parts; they are put together when encoded")
    ENTITY = ("HTML entities", False, "&amp; where & is meant")
    LINKS = (
        "links out of range",
        False,
        "the word alignment names words, counted from 0, that are not there",
    )

    def __init__(self, title: str, skips: bool, meaning: str) -> None:
        self.title = title
        self.skips = skips
        self._meaning = meaning

    def meaning(self, limits: Limits) -> str:
        """In words, with the limits that were applied."""
        return self._meaning.format(limits)


@dataclass(frozen=True, slots=True)
class Limits:
    """What training accepts.

    The length ratio is taken in characters, after allowing for scripts that say more in one: Hangul needs
    about half as many as English. `ratio_slack` characters are added to both sides, so that short sentences,
    whose ratios vary, are safe. Faults named in `keep` are counted and not skipped.
    """

    longest_words: int = 250
    longest_characters: int = 2000
    ratio: float = 4.0
    ratio_slack: int = 16
    script_share: float = 0.2  # of the letters, must be of the language's script
    keep: frozenset[Fault] = frozenset()


Findings = dict[Fault, "NDArray[np.bool_]"]
"""For each fault that occurs in a block: which pairs have it."""

# What UTF-8 looks like when its bytes are read as Latin-1 or Windows-1252: continuation bytes turn into these
# characters. «, », …, quotes, dashes and no-break space also follow letters in good text, so they do not
# count after é and its like, which start three bytes.
_WINDOWS = "€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ"
_SURE = "\x80-\x9f¡-ª¬-º¼-¿€‚ƒ„†‡ˆ‰Š‹ŒŽ•˜™š›œžŸ"
_MOJIBAKE = re.compile(f"[ÃÂÐÑ][{_SURE}]|â[€‚„\x80-\x9f][{_SURE}{_WINDOWS}]|[à-ï][{_SURE}]{{2}}|ðŸ")
_WITHOUT_JOINERS = frozenset({"Latin", "Cyrillic", "Greek", "Hangul", "Han"})
_ENTITY = re.compile(r"&(?:[a-zA-Z]{2,8}|#\d{1,6}|#x[0-9a-fA-F]{1,5});")


@dataclass(frozen=True)
class BlockCharacters:
    """Both sides of a block of pairs, looked up."""

    source: Characters
    target: Characters


class Inspector:
    """Applies the rules that need nothing but the pairs themselves, for one pair of languages.

    Where a language is not known, its script is taken from the first block, and only for the length ratio.
    Plain text has no source: what compares two sides finds nothing in it.
    """

    def __init__(
        self, source_language: str, target_language: str, limits: Limits, *, plain: bool = False
    ) -> None:
        self.limits = limits
        self.plain = plain
        self._scripts = [_scripts_of(code) for code in (source_language, target_language)]
        self._same_language = bool(source_language) and source_language == target_language
        self._expected_ratio: float | None = None

    def inspect(self, sources: Sequence[str], targets: Sequence[str]) -> tuple[Findings, BlockCharacters]:
        """Find the faults of a block. Only faults that occur are in the findings."""
        block = BlockCharacters(look_up(sources), look_up(targets))
        found = {
            Fault.EMPTY: ((block.source.lengths == 0) & (not self.plain)) | (block.target.lengths == 0),
            Fault.TOO_LONG: self._too_long(block.source) | self._too_long(block.target),
            Fault.LENGTH_RATIO: self._odd_ratio(block),
            Fault.UNTRANSLATED: self._untranslated(sources, targets, block),
        }
        for side, scripts, sentences in (
            (block.source, self._scripts[0], sources),
            (block.target, self._scripts[1], targets),
        ):
            for fault, where in self._side_faults(side, scripts, sentences).items():
                found[fault] = found[fault] | where if fault in found else where
        return {fault: where for fault, where in found.items() if where.any()}, block

    def _side_faults(self, side: Characters, scripts: tuple[str, ...], sentences: Sequence[str]) -> Findings:
        return {
            Fault.REPLACED: side.count(REPLACEMENT) > 0,
            Fault.CONTROL: side.count(CONTROL) > 0,
            Fault.ZERO_WIDTH: side.count(*_zero_width(scripts)) > 0,
            Fault.WRONG_SCRIPT: self._wrong_script(side, scripts),
            Fault.MOJIBAKE: _matches(_MOJIBAKE, side),
            Fault.ENTITY: _matches(_ENTITY, side) if "&" in side.text else _nowhere(side),
            Fault.NOT_COMPOSED: _not_composed(side, sentences),
        }

    def _too_long(self, side: Characters) -> NDArray[np.bool_]:
        too_long = side.lengths > self.limits.longest_characters
        # A sentence of w words has at least w characters: words are counted where they could be too many.
        if side.lengths.max(initial=0) > self.limits.longest_words:
            too_long |= side.count_words() > self.limits.longest_words
        return too_long

    def _odd_ratio(self, block: BlockCharacters) -> NDArray[np.bool_]:
        if self._expected_ratio is None:
            scripts = [
                known[0] if known else side.main_script()
                for known, side in zip(self._scripts, (block.source, block.target), strict=True)
            ]
            self._expected_ratio = script_density(scripts[1]) / script_density(scripts[0])
        slack = self.limits.ratio_slack
        ratio = (block.target.lengths + slack) / (block.source.lengths * self._expected_ratio + slack)
        both = (block.source.lengths > 0) & (block.target.lengths > 0)
        odd: NDArray[np.bool_] = both & ((ratio > self.limits.ratio) | (ratio < 1 / self.limits.ratio))
        return odd

    def _untranslated(
        self, sources: Sequence[str], targets: Sequence[str], block: BlockCharacters
    ) -> NDArray[np.bool_]:
        """Numbers and signs stay the same in translation, so only sentences with letters count."""
        same = np.fromiter(map(str.__eq__, sources, targets), bool, count=len(sources))
        if self._same_language or not same.any():
            return np.zeros(len(sources), dtype=bool)
        return same & (block.source.count_letters() > 0)

    def _wrong_script(self, side: Characters, scripts: tuple[str, ...]) -> NDArray[np.bool_]:
        if not scripts:
            return _nowhere(side)
        letters = side.count_letters()
        return (letters > 1) & (side.count_letters(scripts) < self.limits.script_share * letters)


def _scripts_of(code: str) -> tuple[str, ...]:
    return LANGUAGES[code].scripts if code in LANGUAGES else ()


def _zero_width(scripts: tuple[str, ...]) -> tuple[int, ...]:
    """Joiners belong to Arabic script and to those of India; between Latin or Hangul letters they are odd."""
    joiners_are_odd = bool(scripts) and _WITHOUT_JOINERS.issuperset(scripts)
    return (ZERO_WIDTH, JOINER) if joiners_are_odd else (ZERO_WIDTH,)


def _matches(pattern: re.Pattern[str], side: Characters) -> NDArray[np.bool_]:
    where = _nowhere(side)
    if not side.text.isascii() or pattern is _ENTITY:
        for match in pattern.finditer(side.text):
            where[side.sentence_at(match.start())] = True
    return where


def _not_composed(side: Characters, sentences: Sequence[str]) -> NDArray[np.bool_]:
    if unicodedata.is_normalized("NFC", side.text):
        return _nowhere(side)
    return np.fromiter(
        (not unicodedata.is_normalized("NFC", sentence) for sentence in sentences), bool, count=len(sentences)
    )


def _nowhere(side: Characters) -> NDArray[np.bool_]:
    return np.zeros(len(side.lengths), dtype=bool)
