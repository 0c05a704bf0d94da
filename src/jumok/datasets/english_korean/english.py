"""English word forms: plurals, the five forms of a verb, "a" and "an"."""

from __future__ import annotations

from typing import NamedTuple

# "a" and "an" depend on the sound: "an hour" but "a uniform". Only the words of this lexicon are covered.
_SILENT_H = ("hour", "honest")
_SPOKEN_CONSONANT = ("uni", "use", "one")


class VerbForms(NamedTuple):
    """eat, eats, ate, eaten, eating."""

    base: str
    third: str
    past: str
    participle: str
    gerund: str


# The finite forms of "be" by tense and agreement.
BE = {
    ("present", "first"): "am",
    ("present", "third"): "is",
    ("present", "plural"): "are",
    ("past", "first"): "was",
    ("past", "third"): "was",
    ("past", "plural"): "were",
}


def article(next_word: str) -> str:
    """Return the indefinite article before this word."""
    word = next_word.lower()
    if word.startswith(_SILENT_H):
        return "an"
    if word.startswith(_SPOKEN_CONSONANT):
        return "a"
    return "an" if word[0] in "aeiou" else "a"


def plural_of(noun: str) -> str:
    """Return the regular plural: books, boxes, babies."""
    return _with_s(noun)


def verb_forms(entry: str) -> VerbForms:
    """Read a lexicon entry: 'walk' is regular; 'eat/ate/eaten' gives past and participle.

    With two parts ('teach/taught'), past and participle are the same.
    A fourth part gives an irregular gerund: 'hug/hugged/hugged/hugging'.
    """
    base, *irregular = entry.split("/")
    past = irregular[0] if irregular else _regular_past(base)
    participle = irregular[1] if len(irregular) > 1 else past
    gerund = irregular[2] if len(irregular) > 2 else _regular_gerund(base)
    return VerbForms(base, _third(base), past, participle, gerund)


def _third(base: str) -> str:
    return {"have": "has", "do": "does", "go": "goes"}.get(base) or _with_s(base)


def _with_s(word: str) -> str:
    if word.endswith(("s", "x", "z", "ch", "sh", "potato", "tomato")):
        return word + "es"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"


def _regular_past(base: str) -> str:
    if base.endswith("e"):
        return base + "d"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ied"
    return base + "ed"


def _regular_gerund(base: str) -> str:
    if base.endswith("e") and not base.endswith("ee"):
        return base[:-1] + "ing"
    return base + "ing"
