"""Find the sentence pair of the English-Korean grammar that has a given English sentence.

The sentence is not parsed. The grammar generates sentences from the words of the sentence until it generates
the sentence itself.
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
    """A scene whose lexical choices are restricted to the words of a sentence, `sentence_words`.

    `fitting_cache` has the options that fit, for each sequence of options. Its keys are the `id()` of these
    sequences.
    """

    __slots__ = ("fitting_cache", "sentence_words")

    def __init__(
        self,
        random: Callable[[], float],
        polite: bool,
        sentence_words: set[str],
        fitting_cache: dict[int, list[object]],
    ) -> None:
        super().__init__(random, polite)
        self.sentence_words = sentence_words
        self.fitting_cache = fitting_cache

    def pick(self, options: Sequence[Choice]) -> Choice:
        if len(options) < _MIN_CACHED:  # a short sequence may be temporary, and Python may reuse its id
            return super().pick(_fitting_options(options, self.sentence_words))
        if id(options) not in self.fitting_cache:
            self.fitting_cache[id(options)] = list(_fitting_options(options, self.sentence_words))
        return super().pick(cast("list[Choice]", self.fitting_cache[id(options)]))


_MIN_CACHED = 20  # the smallest number of options whose fitting options are cached


def _fitting_options(options: Sequence[Choice], sentence_words: set[str]) -> Sequence[Choice]:
    """Return the options that fit the sentence. If no option fits, return all options."""
    return [option for option in options if _fits(option, sentence_words)] or options


def _fits(option: object, sentence_words: set[str]) -> bool:
    """Return whether the option can occur in a sentence with these words."""
    if isinstance(option, Noun):
        names = {"".join(option.english) + "'s", *option.english[-1:], *option.plural[-1:]}
        return bool({name.lower() for name in names} & sentence_words)
    if isinstance(option, Verb):
        return bool(set(option.forms) & sentence_words) and set(option.after) <= sentence_words
    if isinstance(option, Adjective):
        return option.english in sentence_words
    if isinstance(option, Expression):
        return {word.lower() for word in option.english} <= sentence_words
    if isinstance(option, str) and option in PRONOUNS:
        english_cases = PRONOUNS[option][:3]  # subject, object, possessive
        return bool({word.lower() for word in english_cases} & sentence_words)
    if isinstance(option, tuple):
        parts = [part for part in option if isinstance(part, Noun | Verb | Adjective | Expression | tuple)]
        # Parts of one type are alternatives. Parts of several types occur together in a sentence.
        are_alternatives = len({type(part) for part in option}) == 1
        return (any if are_alternatives else all)(_fits(part, sentence_words) for part in parts) or not parts
    return True


def find_pair(pattern: str, source: str) -> Pair | None:
    """Return the pair that the pattern builds with this source, or None after MAX_ATTEMPTS attempts."""
    polite = source.startswith("<polite> ")
    english = source.removeprefix("<polite> ")
    sentence_words = {word.lower() for word in split_words(english)}
    random = Random(source).random
    build = PATTERNS[pattern].build
    fitting_cache: dict[int, list[object]] = {}
    for _ in range(MAX_ATTEMPTS):
        sentence = build(GuidedScene(random, polite, sentence_words, fitting_cache))
        if sentence.english() == english:
            return sentence.pair(english, polite=polite)
    return None
