"""Faults: what can be wrong with a sentence pair, and how each fault is found.

Training and the corpus report use the same rules: training skips faulty pairs, and the report counts them.
Rules are applied to blocks of pairs, because one test of a block often shows that no pair in the block has
the fault.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from jumok.text.languages import LANGUAGES
from jumok.text.normalisation import is_composed
from jumok.text.scripts import (
    CONTROL,
    JOINER,
    REPLACEMENT,
    ZERO_WIDTH,
    Characters,
    classify_characters,
    script_density,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


class Fault(Enum):
    """A fault: its title, whether training skips the pairs that have it, and its meaning.

    A pair with several faults is counted under each fault, but training skips it for one fault only: the
    first of its faults with `skips`.
    """

    EMPTY = ("empty", True, "one side is empty")
    TOO_LONG = ("too long", True, "more than {0.max_words} words or {0.max_characters:,} characters")
    REPLACED = ("replaced characters", True, "U+FFFD: letters were lost when the text was decoded")
    MOJIBAKE = ("mojibake", True, "text read in a wrong encoding: Ã© for é, ³ª´Â for 나는")
    CONTROL = ("control characters", True, "invisible characters that no text needs")
    WRONG_SCRIPT = ("wrong script", True, "hardly any letters in the script of its language")
    UNTRANSLATED = ("untranslated", True, "source and target are the same")
    LENGTH_RATIO = ("odd length ratio", True, "one side is far longer than its translation should be")
    DUPLICATE = ("duplicate", True, "the same pair occurred before")
    LEAKED = ("leaked", True, "its source is also in the validation or test set")
    SWAPPED = (
        "swapped sides",
        False,
        "each side is in the script of the other; with --from and --to such pairs are skipped",
    )
    OTHER_TARGET = ("other translation", False, "the same source occurred before with another target")
    ZERO_WIDTH = ("zero-width characters", False, "invisible characters inside words")
    NOT_COMPOSED = ("not NFC", False, "letters in several code points; they are composed when encoded")
    ENTITY = ("HTML entities", False, "&amp; where & is meant")
    LINKS_OUT_OF_RANGE = (
        "links out of range",
        False,
        "the word alignment links words, counted from 0, that do not exist",
    )

    def __init__(self, title: str, skips: bool, meaning: str) -> None:
        self.title = title
        self.skips = skips
        self._meaning = meaning

    def meaning(self, limits: CleaningLimits, *, plain: bool = False) -> str:
        """Return the explanation with the limits that were applied. Set `plain` for plain text."""
        meaning = _PLAIN_TEXT_MEANINGS.get(self, self._meaning) if plain else self._meaning
        return meaning.format(limits)


_PLAIN_TEXT_MEANINGS = {
    Fault.EMPTY: "the sentence is empty",
    Fault.DUPLICATE: "the same sentence occurred before",
    Fault.LEAKED: "the sentence is also in the validation or test set",
}


@dataclass(frozen=True, slots=True)
class CleaningLimits:
    """The limits within which training accepts a pair.

    The length ratio is in characters, corrected for the density of scripts: Hangul needs about half as many
    as English. `ratio_slack` characters are added to both sides, because the ratios of short sentences vary.
    `tolerated` faults are counted, but their pairs are not skipped.
    """

    max_words: int = 250
    max_characters: int = 2000
    max_length_ratio: float = 4.0
    ratio_slack: int = 16
    min_script_share: float = 0.2  # share of the letters that must be in the script of the language
    tolerated: frozenset[Fault] = frozenset()


Findings = dict[Fault, "NDArray[np.bool_]"]
"""Fault → mask of the pairs in a block that have this fault. Only faults that occur are listed."""

# UTF-8 that was decoded as Latin-1 or Windows-1252: continuation bytes become these characters. «, », …,
# quotes, dashes and no-break spaces also follow letters in good text, so `_CONTINUATION` does not have them.
# After two bytes such as â€, all characters of `_WINDOWS_1252` count.
_WINDOWS_1252 = "€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ"
_CONTINUATION = "\x80-\x9f¡-ª¬-º¼-¿€‚ƒ„†‡ˆ‰Š‹ŒŽ•˜™š›œžŸ"
_MOJIBAKE = re.compile(
    f"[ÃÂÐÑ][{_CONTINUATION}]|â[€‚„\x80-\x9f][{_CONTINUATION}{_WINDOWS_1252}]|[à-ï][{_CONTINUATION}]{{2}}|ðŸ"
)
# Text in a two-byte encoding of Korean or Chinese that was decoded as Latin-1. The pattern matches the bytes
# of two characters in a row.
_TWO_BYTE_MOJIBAKE = re.compile("[°-È][¡-þ][°-È][¡-þ]")
_SCRIPTS_WITHOUT_JOINERS = frozenset({"Latin", "Cyrillic", "Greek", "Hangul", "Han"})
_ENTITY = re.compile(r"&(?:[a-zA-Z]{2,8}|#\d{1,6}|#x[0-9a-fA-F]{1,5});")


@dataclass(frozen=True)
class BlockCharacters:
    """The characters of both sides of a block of pairs."""

    source: Characters
    target: Characters


class Inspector:
    """Applies the rules that need only the pair itself, for one pair of languages.

    If a language is unknown, no script is expected of its side, and the length ratio uses the commonest
    script of the side in the first block. If both are unknown, `find_swapped` finds swapped sides. Set
    `only_target` for plain text, or if the sources are pictures: the sources must then be "". An empty source
    is no fault, and the rules that compare two sides find nothing.
    """

    def __init__(
        self, source_language: str, target_language: str, limits: CleaningLimits, *, only_target: bool = False
    ) -> None:
        self.limits = limits
        self.only_target = only_target
        self._scripts = [_scripts_of(code) for code in (source_language, target_language)]
        self._same_language = bool(source_language) and source_language == target_language
        self._usual_scripts: tuple[str, str] | None = None  # of most sources, and of most targets
        self.expected_ratio: float | None = None
        """How many characters a target has per character of its source; None: not known yet."""

    def inspect(self, sources: Sequence[str], targets: Sequence[str]) -> tuple[Findings, BlockCharacters]:
        """Return the faults of a block, and its characters."""
        block = BlockCharacters(classify_characters(sources), classify_characters(targets))
        findings = {
            Fault.EMPTY: ((block.source.lengths == 0) & (not self.only_target)) | (block.target.lengths == 0),
            Fault.TOO_LONG: self._too_long(block.source) | self._too_long(block.target),
            Fault.LENGTH_RATIO: self._odd_ratio(block),
            Fault.UNTRANSLATED: self._untranslated(sources, targets, block),
        }
        for side, scripts, sentences in (
            (block.source, self._scripts[0], sources),
            (block.target, self._scripts[1], targets),
        ):
            for fault, mask in self._side_faults(side, scripts, sentences).items():
                findings[fault] = findings[fault] | mask if fault in findings else mask
        return {fault: mask for fault, mask in findings.items() if mask.any()}, block

    def _side_faults(self, side: Characters, scripts: tuple[str, ...], sentences: Sequence[str]) -> Findings:
        return {
            Fault.REPLACED: side.count(REPLACEMENT) > 0,
            Fault.CONTROL: side.count(CONTROL) > 0,
            Fault.ZERO_WIDTH: side.count(*_zero_width_classes(scripts)) > 0,
            Fault.WRONG_SCRIPT: self._wrong_script(side, scripts),
            Fault.MOJIBAKE: _matches(_MOJIBAKE, side) | _two_byte_mojibake(side),
            Fault.ENTITY: _matches(_ENTITY, side) if "&" in side.text else _false_mask(side),
            Fault.NOT_COMPOSED: _not_composed(side, sentences),
        }

    def find_swapped(self, block: BlockCharacters) -> NDArray[np.bool_]:
        """Return which pairs are in the opposite direction of most pairs, by the two commonest scripts.

        The first block that has letters of two scripts decides which direction is the usual one. If a
        language is known, this method finds nothing, because a swapped pair then has the fault
        `WRONG_SCRIPT`.
        """
        totals = block.source.script_totals() + block.target.script_totals()
        if any(self._scripts) or self.only_target or len(totals) < 2:
            return _false_mask(block.source)
        if self._usual_scripts is None:
            first, second = (script for script, _ in totals.most_common(2))
            is_forward = _in_scripts(block, first, second).sum() >= _in_scripts(block, second, first).sum()
            self._usual_scripts = (first, second) if is_forward else (second, first)
        source_script, target_script = self._usual_scripts
        return _in_scripts(block, target_script, source_script)

    def _too_long(self, side: Characters) -> NDArray[np.bool_]:
        too_long = side.lengths > self.limits.max_characters
        # A sentence has at least as many characters as words. If no sentence of the block has more than
        # `max_words` characters, the words need not be counted.
        if side.lengths.max(initial=0) > self.limits.max_words:
            too_long |= side.count_words() > self.limits.max_words
        return too_long

    def learn_ratio(self, sources: Sequence[str], targets: Sequence[str]) -> float:
        """Return the expected ratio of lengths. If it is not known yet, compute it from these sentences."""
        if self.expected_ratio is not None:
            return self.expected_ratio
        return self._learn_ratio_from(
            BlockCharacters(classify_characters(sources), classify_characters(targets))
        )

    def _learn_ratio_from(self, block: BlockCharacters) -> float:
        if self.expected_ratio is None:
            scripts = [
                language_scripts[0] if language_scripts else side.main_script()
                for language_scripts, side in zip(self._scripts, (block.source, block.target), strict=True)
            ]
            self.expected_ratio = script_density(scripts[1]) / script_density(scripts[0])
        return self.expected_ratio

    def _odd_ratio(self, block: BlockCharacters) -> NDArray[np.bool_]:
        slack = self.limits.ratio_slack
        expected = block.source.lengths * self._learn_ratio_from(block)
        ratio = (block.target.lengths + slack) / (expected + slack)
        both_sides = (block.source.lengths > 0) & (block.target.lengths > 0)
        limit = self.limits.max_length_ratio
        odd: NDArray[np.bool_] = both_sides & ((ratio > limit) | (ratio < 1 / limit))
        return odd

    def _untranslated(
        self, sources: Sequence[str], targets: Sequence[str], block: BlockCharacters
    ) -> NDArray[np.bool_]:
        """Return which pairs have equal sides that contain letters. Numbers and signs need no translation."""
        same = np.fromiter(map(str.__eq__, sources, targets), bool, count=len(sources))
        if self._same_language or not same.any():
            return np.zeros(len(sources), dtype=bool)
        return same & (block.source.count_letters() > 0)

    def _wrong_script(self, side: Characters, scripts: tuple[str, ...]) -> NDArray[np.bool_]:
        if not scripts:
            return _false_mask(side)
        letters = side.count_letters()
        return (letters > 1) & (side.count_letters(scripts) < self.limits.min_script_share * letters)


def _in_scripts(block: BlockCharacters, source_script: str, target_script: str) -> NDArray[np.bool_]:
    """Return which pairs have most source letters in one script and most target letters in the other."""
    source = 2 * block.source.count_letters([source_script]) > block.source.count_letters()
    target = 2 * block.target.count_letters([target_script]) > block.target.count_letters()
    return np.asarray(source & target, dtype=bool)


def _scripts_of(code: str) -> tuple[str, ...]:
    return LANGUAGES[code].scripts if code in LANGUAGES else ()


def _zero_width_classes(scripts: tuple[str, ...]) -> tuple[int, ...]:
    """Return the classes of characters that are a fault in these scripts.

    Joiners are a fault in scripts that do not use them. Arabic and Indic scripts use them. If the scripts are
    unknown, joiners are no fault.
    """
    joiners_are_faults = bool(scripts) and _SCRIPTS_WITHOUT_JOINERS.issuperset(scripts)
    return (ZERO_WIDTH, JOINER) if joiners_are_faults else (ZERO_WIDTH,)


def _matches(pattern: re.Pattern[str], side: Characters) -> NDArray[np.bool_]:
    mask = _false_mask(side)
    if not side.text.isascii() or pattern is _ENTITY:  # ASCII cannot be mojibake
        for match in pattern.finditer(side.text):
            mask[side.sentence_at(match.start())] = True
    return mask


def _two_byte_mojibake(side: Characters) -> NDArray[np.bool_]:
    """Return which sentences have signs mixed with accented letters, as in ³ª´Â.

    Text with accented letters only, or with a repeated sign, is not mojibake.
    """
    mask = _false_mask(side)
    if side.text.isascii():
        return mask
    for match in _TWO_BYTE_MOJIBAKE.finditer(side.text):
        if len(set(match[0])) > 2 and any(character <= "¿" for character in match[0]):
            mask[side.sentence_at(match.start())] = True
    return mask


def _not_composed(side: Characters, sentences: Sequence[str]) -> NDArray[np.bool_]:
    if is_composed(side.text):
        return _false_mask(side)
    return np.fromiter((not is_composed(sentence) for sentence in sentences), bool, count=len(sentences))


def _false_mask(side: Characters) -> NDArray[np.bool_]:
    return np.zeros(len(side.lengths), dtype=bool)
