"""Notes: warnings about a translation.

There is a note if the translation was cut, repeats itself or has no finite score, or if the source has
markup, is not in the script of the model's source language, or is in capital letters that the model reads one
by one. (Notes on terms are made in `text/term_placement.py`.)
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from jumok.text.languages import find_language
from jumok.text.script_ranges import letter_pattern

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.inference.search.plan import SearchPlan
    from jumok.inference.translator import Segment
    from jumok.types import Hypothesis

MIN_REPEATS = 4
"""People do not repeat a sequence of tokens this many times in a row."""
MAX_REPEATED_TOKENS = 4
"""The maximum length of a sequence whose repetition is detected."""
_QUOTED_CHARACTERS = 40  # of a text that a note quotes
_EXAMINED_CHARACTERS = 200  # at the beginning of a text, to find its script
_LETTER = re.compile(r"[^\W\d_]")
_CLOSING_TAG = re.compile(r"</[A-Za-z][^<>\s]*>")
MIN_CAPITALS = 8
"""Shorter texts in capital letters are names and abbreviations."""


def find_notes(
    source: str, language: str, segments: Sequence[tuple[Segment, Sequence[Hypothesis]]], plan: SearchPlan
) -> tuple[str, ...]:
    """Return the notes on a text, and on the best hypotheses of its segments."""
    notes = []
    if script_note := _script_note(source, language):
        notes.append(script_note)
    if "</" in source and _CLOSING_TAG.search(source):
        notes.append(
            f"{_quote(source.strip())} has tags, which are translated as text; the tags of a .html file are "
            "kept"
        )
    if source.isupper() and _is_split_into_letters(source, segments):
        notes.append(
            f"{_quote(source.strip())} is in capital letters, which the model reads letter by letter; small "
            "letters may be translated better"
        )
    for segment, hypotheses in segments:
        ids = hypotheses[0].ids
        max_length = plan.max_length(len(segment.ids), prefix_length=len(segment.prefix))
        if not math.isfinite(hypotheses[0].score):
            notes.append(
                f"the translation of {_quote(segment.text)} has no score that is a number: the weights of "
                "the model are damaged"
            )
        elif _repeats(ids) and not _repeats(segment.ids):
            notes.append(f"the translation of {_quote(segment.text)} repeats itself")
        elif len(ids) >= max_length:
            notes.append(f"the translation of {_quote(segment.text)} was cut at {max_length:,} tokens")
    return tuple(notes)


def is_note_on(note: str, sentence: str) -> bool:
    """Whether a note of `find_notes` is about the translation of a sentence, not about the sentence itself.

    A note quotes only the beginning of a sentence. Sentences with the same beginning are not distinguished.
    """
    return note.startswith(f"the translation of {_quote(sentence)} ")


def _repeats(ids: Sequence[int]) -> bool:
    """Whether a sequence of at most `MAX_REPEATED_TOKENS` tokens occurs `MIN_REPEATS` times in a row.

    Return False for the patches of a picture.
    """
    if getattr(ids, "ndim", 1) > 1:
        return False
    if len(ids) - len(set(ids)) < MIN_REPEATS - 1:  # true for nearly every sentence
        return False
    for period in range(1, MAX_REPEATED_TOKENS + 1):
        run = 0
        for token, earlier in zip(ids[period:], ids, strict=False):
            run = run + 1 if token == earlier else 0
            if run == period * (MIN_REPEATS - 1):
                return True
    return False


def _is_split_into_letters(source: str, segments: Sequence[tuple[Segment, Sequence[Hypothesis]]]) -> bool:
    """Whether a text has at least `MIN_CAPITALS` letters, and more than one token per two letters."""
    num_letters = sum(map(str.isalpha, source))
    if any(getattr(segment.ids, "ndim", 1) > 1 for segment, _ in segments):  # `source` is a picture's path
        return False
    return num_letters >= MIN_CAPITALS and 2 * sum(len(segment.ids) for segment, _ in segments) > num_letters


def _script_note(source: str, language: str) -> str:
    """Return a note if the beginning of a text has letters, but none in a script of the language, else "".

    Return "" for an unknown language.
    """
    known_language = find_language(language)
    if known_language is None:
        return ""
    if letter_pattern(known_language.scripts).search(source, 0, _EXAMINED_CHARACTERS):
        return ""
    if _LETTER.search(source, 0, _EXAMINED_CHARACTERS) is None:
        return ""
    return (
        f"{_quote(source.strip())} is not written in the script of {known_language.name}, the language of "
        "the model"
    )


def _quote(text: str) -> str:
    short = text if len(text) <= _QUOTED_CHARACTERS else text[:_QUOTED_CHARACTERS].rstrip() + "…"
    return f'"{short}"'
