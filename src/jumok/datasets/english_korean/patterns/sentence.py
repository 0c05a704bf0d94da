"""A clause as a sentence: a statement or a question."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jumok.datasets.english_korean.scene import Sentence

if TYPE_CHECKING:
    from jumok.datasets.english_korean.clauses import Clause
    from jumok.datasets.english_korean.scene import Scene


def make_statement(scene: Scene, clause: Clause) -> Sentence:
    """Return the clause as a statement."""
    return Sentence(clause.statement(), clause.korean("polite" if scene.polite else "statement"))


def make_question(scene: Scene, clause: Clause) -> Sentence:
    """Return the clause as a question."""
    return Sentence(clause.question(), clause.korean("polite" if scene.polite else "question"), "?")
