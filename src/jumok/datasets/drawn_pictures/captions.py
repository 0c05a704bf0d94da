"""Captions of drawn pictures in English and Korean, with the word that names each thing.

    There is a small red star on the left.              왼쪽에 작은 빨간 별이 있다.
    There are three small blue hearts.                  작은 파란 하트가 세 개 있다.
    A big green circle is above a small white cross.    큰 초록색 원이 작은 하얀 십자가 위에 있다.

Particles and articles come from the grammar of the english_korean corpus.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from jumok.datasets.english_korean.english import article, plural_of
from jumok.datasets.english_korean.hangul import attach

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.datasets.drawn_pictures.things import Thing

LANGUAGES = ("en", "ko")
PLACES = {
    "left": ("on the left", "왼쪽에"),
    "right": ("on the right", "오른쪽에"),
    "top": ("at the top", "위쪽에"),
    "bottom": ("at the bottom", "아래쪽에"),
    "middle": ("in the middle", "가운데에"),
}
RELATIONS = {
    "above": ("above", "위에"),
    "below": ("below", "아래에"),
    "left": ("to the left of", "왼쪽에"),
    "right": ("to the right of", "오른쪽에"),
}
NUMBERS = {2: ("two", "두"), 3: ("three", "세")}


class Noun(NamedTuple):
    """A noun of a caption, and the things that it names."""

    word: int  # index in the words of the caption
    things: list[Thing]
    letters: int | None = None  # number of letters before the particle; None: the word has no particle


class Caption(NamedTuple):
    """A sentence without its full stop, as words, and its nouns."""

    words: list[str]
    nouns: list[Noun]

    @property
    def text(self) -> str:
        return " ".join(self.words) + "."


def describe_place(thing: Thing, place: str) -> dict[str, Caption]:
    """Describe one thing and its place in the picture."""
    english_place, korean_place = PLACES[place]
    english = ["There", "is", *_english(thing)]
    korean = [korean_place, *_korean(thing, "이")]
    return {
        "en": Caption([*english, *english_place.split()], [Noun(len(english) - 1, [thing])]),
        "ko": Caption([*korean, "있다"], [_noun_with_particle(korean, [thing])]),
    }


def describe_group(things: Sequence[Thing]) -> dict[str, Caption]:
    """Describe several things of one kind and their number."""
    first = things[0]
    english_number, korean_number = NUMBERS[len(things)]
    noun = plural_of(first.shape.english)
    english = ["There", "are", english_number, first.size.english, first.colour.english, noun]
    korean = _korean(first, "이")
    return {
        "en": Caption(english, [Noun(len(english) - 1, list(things))]),
        "ko": Caption([*korean, korean_number, "개", "있다"], [_noun_with_particle(korean, list(things))]),
    }


def describe_pair(subject: Thing, other: Thing, relation: str) -> dict[str, Caption]:
    """Describe two things, and where the subject is relative to the other thing."""
    english_relation, korean_relation = RELATIONS[relation]
    first = [word.capitalize() if i == 0 else word for i, word in enumerate(_english(subject))]
    english = [*first, "is", *english_relation.split(), *_english(other)]
    korean_subject = _korean(subject, "이")
    korean = [*korean_subject, *_korean(other, "")]
    return {
        "en": Caption(english, [Noun(len(first) - 1, [subject]), Noun(len(english) - 1, [other])]),
        "ko": Caption(
            [*korean, korean_relation, "있다"],
            [_noun_with_particle(korean_subject, [subject]), Noun(len(korean) - 1, [other])],
        ),
    }


def _noun_with_particle(words: Sequence[str], things: list[Thing]) -> Noun:
    """Return the noun in the last of these Korean words. The noun and its particle are one word."""
    return Noun(len(words) - 1, things, len(things[0].shape.korean))


def _english(thing: Thing) -> list[str]:
    size, colour, noun = thing.size.english, thing.colour.english, thing.shape.english
    return [article(size), size, colour, noun]


def _korean(thing: Thing, particle: str) -> list[str]:
    noun = thing.shape.korean
    return [thing.size.korean, thing.colour.korean, attach(noun, particle) if particle else noun]
