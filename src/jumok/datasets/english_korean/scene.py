"""What is drawn while one sentence is made: words on both sides, and the choices behind them.

A `Word` is one English word of this sentence; an `Eojeol` is one Korean word that names the English words it
stands for. Patterns put both into any order; the alignment follows from who names whom.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from jumok.corpus.english_korean.lexicon import kept_for
from jumok.values import Alignment, Pair

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jumok.corpus.english_korean.lexicon import Adjective, Noun, Verb

__all__ = ["Eojeol", "Scene", "Sentence", "Word", "words"]

Choice = TypeVar("Choice")

POLITE_TAG = "<polite>"


class Word:
    """An English word; its position is known when the sentence is complete."""

    __slots__ = ("position", "text")

    position: int

    def __init__(self, text: str) -> None:
        self.text = text


class Eojeol:
    """A Korean word with the English words it surely and possibly translates."""

    __slots__ = ("possible", "sure", "text")

    def __init__(self, text: str, sure: Sequence[Word], possible: Sequence[Word] = ()) -> None:
        self.text = text
        self.sure = sure
        self.possible = possible


def words(texts: Sequence[str]) -> list[Word]:
    """Fresh English words."""
    return [Word(text) for text in texts]


class Scene:
    """The choices behind one sentence.

    `used` holds what was already mentioned, so that nobody meets himself; `splits` what the combinations of
    lexemes in the sentence say about the split it belongs to.
    """

    __slots__ = ("polite", "random", "splits", "used")

    def __init__(self, random: Callable[[], float], polite: bool) -> None:
        self.random = random
        self.polite = polite
        self.used: set[object] = set()
        self.splits: set[str] = set()

    def pick(self, options: Sequence[Choice]) -> Choice:
        """One of the options, each as likely as the others."""
        return options[int(self.random() * len(options))]

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.random() < probability

    def pick_new(self, options: Sequence[Choice]) -> Choice:
        """One of the options that was not mentioned before; any if that is hard."""
        used = self.used
        choice = self.pick(options)
        if choice in used:
            for _ in range(8):
                choice = self.pick(options)
                if choice not in used:
                    break
        used.add(choice)
        return choice

    def combine(self, predicate: Verb | Adjective, complement: Noun) -> None:
        """Note a combination of lexemes: some combinations are kept out of training."""
        split = kept_for(predicate, complement)
        if split != "train":
            self.splits.add(split)


class Sentence:
    """A finished sentence on both sides, before it is written out."""

    __slots__ = ("eojeols", "mark", "words")

    def __init__(self, english: list[Word], korean: list[Eojeol], mark: str = ".") -> None:
        self.words = english
        self.eojeols = korean
        self.mark = mark

    def english(self) -> str:
        """The English side without a tag."""
        text = " ".join([word.text for word in self.words]).replace(" ,", ",")
        return text[0].upper() + text[1:] + self.mark

    def korean(self) -> str:
        """The Korean side."""
        return " ".join([eojeol.text for eojeol in self.eojeols]) + self.mark

    def pair(self, english: str, *, polite: bool) -> Pair:
        """The pair with its alignment; `english` is the text from `english()`."""
        shift = 1 if polite else 0
        for position, word in enumerate(self.words, start=shift):
            word.position = position
        eojeols = self.eojeols
        sure = [(word.position, at) for at, eojeol in enumerate(eojeols) for word in eojeol.sure]
        possible = [(word.position, at) for at, eojeol in enumerate(eojeols) for word in eojeol.possible]
        last = len(eojeols)
        sure.append((len(self.words) + shift, last))
        if polite:
            possible.append((0, last - 1))
            english = f"{POLITE_TAG} {english}"
        return Pair(english, self.korean(), Alignment(frozenset(sure), frozenset(possible)))
