"""The state of one sentence while it is generated: its words on both sides and the random choices.

A `Word` is one English word of the sentence. An `Eojeol` is one Korean word with links to the English words
that it translates. A pattern may arrange the words of each language in any order, because the alignment is
made from these links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from jumok.datasets.english_korean.lexicon import reserved_split
from jumok.types import Alignment, Pair

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jumok.datasets.english_korean.lexicon import Adjective, Noun, Verb

Choice = TypeVar("Choice")

POLITE_TAG = "<polite>"


class Word:
    """An English word; its position is set when the sentence is complete."""

    __slots__ = ("position", "text")

    position: int

    def __init__(self, text: str) -> None:
        self.text = text


class Eojeol:
    """A Korean word with its sure and possible links to English words."""

    __slots__ = ("possible", "sure", "text")

    def __init__(self, text: str, sure: Sequence[Word], possible: Sequence[Word] = ()) -> None:
        self.text = text
        self.sure = sure
        self.possible = possible


def words(texts: Sequence[str]) -> list[Word]:
    """Return new English words."""
    return [Word(text) for text in texts]


class Scene:
    """The random choices of one sentence.

    `used` holds the words that the sentence has used, so that Minsu does not meet Minsu. It also holds words
    that the pattern excludes, such as "you", and marks such as ONE_PERSON (see `noun_phrases.py`).

    Some combinations of words are reserved for the validation set or the test set. `splits` holds "valid" if
    the sentence has a combination that is reserved for the validation set. `splits` holds "test" if the
    sentence has a combination that is reserved for the test set. If it holds both, the sentence belongs to
    the test set.
    """

    __slots__ = ("polite", "random", "splits", "used")

    def __init__(self, random: Callable[[], float], polite: bool) -> None:
        self.random = random
        self.polite = polite
        self.used: set[object] = set()
        self.splits: set[str] = set()

    def pick(self, options: Sequence[Choice]) -> Choice:
        """Return one of the options, drawn uniformly."""
        return options[int(self.random() * len(options))]

    def chance(self, probability: float) -> bool:
        """Return True with this probability."""
        return self.random() < probability

    def pick_new(self, options: Sequence[Choice]) -> Choice:
        """Return an option that is not in `used`, or any option if nine attempts fail."""
        used = self.used
        choice = self.pick(options)
        if choice in used:
            for _ in range(8):
                choice = self.pick(options)
                if choice not in used:
                    break
        used.add(choice)
        return choice

    def note_combination(self, predicate: Verb | Adjective, complement: Noun) -> None:
        """If this combination is reserved for validation or test, add that split to `splits`."""
        split = reserved_split(predicate, complement)
        if split != "train":
            self.splits.add(split)


class Sentence:
    """A finished sentence as words of both languages."""

    __slots__ = ("eojeols", "punctuation", "words")

    def __init__(self, english: list[Word], korean: list[Eojeol], punctuation: str = ".") -> None:
        self.words = english
        self.eojeols = korean
        self.punctuation = punctuation

    def english(self) -> str:
        """Return the English side without a tag."""
        text = " ".join([word.text for word in self.words]).replace(" ,", ",")
        return text[0].upper() + text[1:] + self.punctuation

    def korean(self) -> str:
        """Return the Korean side."""
        return " ".join([eojeol.text for eojeol in self.eojeols]) + self.punctuation

    def pair(self, english: str, *, polite: bool) -> Pair:
        """Return the pair with its alignment; `english` is the text of `english()`."""
        first = 1 if polite else 0  # position of the first word, after the tag
        for position, word in enumerate(self.words, start=first):
            word.position = position
        eojeols = self.eojeols
        sure = [(word.position, i) for i, eojeol in enumerate(eojeols) for word in eojeol.sure]
        possible = [(word.position, i) for i, eojeol in enumerate(eojeols) for word in eojeol.possible]
        punctuation = len(eojeols)  # position of the punctuation mark in the Korean sentence
        sure.append((len(self.words) + first, punctuation))
        if polite:
            possible.append((0, punctuation - 1))
            english = f"{POLITE_TAG} {english}"
        return Pair(english, self.korean(), Alignment(frozenset(sure), frozenset(possible)))
