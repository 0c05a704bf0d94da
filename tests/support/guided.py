"""Find the sentence pair of the English-Korean grammar that has a given English sentence.

The sentence is not parsed. The grammar generates sentences from its words until one of them equals it.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, TypeVar, cast

from jumok.datasets.english_korean.lexicon import Adjective, Expression, Noun, Verb
from jumok.datasets.english_korean.noun_phrases import PRONOUNS
from jumok.datasets.english_korean.patterns.table import PATTERNS
from jumok.datasets.english_korean.scene import Scene
from jumok.text.words import split_words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jumok.types import Pair

Choice = TypeVar("Choice")
MAX_ATTEMPTS = 6000


class GuidedScene(Scene):
    """A scene whose lexical choices are restricted to the words of a sentence, `mentioned`.

    `fitting` caches the options that fit. Its keys are the `id()` of the sequences of options.
    """

    __slots__ = ("fitting", "mentioned")

    def __init__(
        self, random: Callable[[], float], polite: bool, mentioned: set[str], fitting: dict[int, list[object]]
    ) -> None:
        super().__init__(random, polite)
        self.mentioned = mentioned
        self.fitting = fitting

    def pick(self, options: Sequence[Choice]) -> Choice:
        if len(options) < _MIN_CACHED:  # a short sequence may be temporary, and Python may reuse its id
            return super().pick(_fitting_options(options, self.mentioned))
        if id(options) not in self.fitting:
            self.fitting[id(options)] = list(_fitting_options(options, self.mentioned))
        return super().pick(cast("list[Choice]", self.fitting[id(options)]))


_MIN_CACHED = 20


def _fitting_options(options: Sequence[Choice], mentioned: set[str]) -> Sequence[Choice]:
    return [option for option in options if _fits(option, mentioned)] or options


def _fits(option: object, mentioned: set[str]) -> bool:
    """Return whether the option can occur in a sentence with these words."""
    if isinstance(option, Noun):
        names = {"".join(option.english) + "'s", *option.english[-1:], *option.plural[-1:]}
        return bool({name.lower() for name in names} & mentioned)
    if isinstance(option, Verb):
        return bool(set(option.forms) & mentioned) and set(option.after) <= mentioned
    if isinstance(option, Adjective):
        return option.english in mentioned
    if isinstance(option, Expression):
        return {word.lower() for word in option.english} <= mentioned
    if isinstance(option, str) and option in PRONOUNS:
        return bool({word.lower() for word in PRONOUNS[option][:3]} & mentioned)
    if isinstance(option, tuple):
        parts = [part for part in option if isinstance(part, Noun | Verb | Adjective | Expression | tuple)]
        are_alternatives = len({type(part) for part in option}) == 1
        return (any if are_alternatives else all)(_fits(part, mentioned) for part in parts) or not parts
    return True


def generate_source(pattern: str, source: str) -> Pair | None:
    """Return the pair that the pattern builds with this source, or None if it was not found."""
    polite = source.startswith("<polite> ")
    english = source.removeprefix("<polite> ")
    mentioned = {word.lower() for word in split_words(english)}
    random = Random(source).random
    build = PATTERNS[pattern].build
    fitting: dict[int, list[object]] = {}
    for _ in range(MAX_ATTEMPTS):
        sentence = build(GuidedScene(random, polite, mentioned, fitting))
        if sentence.english() == english:
            return sentence.pair(english, polite=polite)
    return None
