"""The list of sentence patterns: a pattern is a function that makes one sentence out of a scene."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from jumok.corpus.english_korean.scene import Sentence

if TYPE_CHECKING:
    from collections.abc import Callable

    from jumok.corpus.english_korean.clauses import Clause
    from jumok.corpus.english_korean.scene import Scene

__all__ = ["PATTERNS", "Pattern", "ask", "pattern", "state"]


class Pattern(NamedTuple):
    """A named way to make a sentence, and how often it is used relative to the others."""

    name: str
    weight: float
    build: Callable[[Scene], Sentence]


PATTERNS: dict[str, Pattern] = {}


def pattern(weight: float = 1.0) -> Callable[[Callable[[Scene], Sentence]], Callable[[Scene], Sentence]]:
    """Register a function as the pattern of its name."""

    def register(build: Callable[[Scene], Sentence]) -> Callable[[Scene], Sentence]:
        name = build.__name__.replace("_", " ").strip()
        PATTERNS[name] = Pattern(name, weight, build)
        return build

    return register


def state(scene: Scene, clause: Clause) -> Sentence:
    """The clause as a statement of its own."""
    return Sentence(clause.statement(), clause.korean("polite" if scene.polite else "statement"))


def ask(scene: Scene, clause: Clause) -> Sentence:
    """The clause as a question of its own."""
    return Sentence(clause.question(), clause.korean("polite" if scene.polite else "question"), "?")
