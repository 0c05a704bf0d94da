from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from jumok.corpus import parse_alignment
from jumok.evaluation import evaluate_translator
from jumok.values import Alignment, Pair

if TYPE_CHECKING:
    from jumok.decoding import Translator


@dataclass
class Said:
    text: str


class Parrot:
    """Says the source again, and links word i with word i."""

    target_language = "zh"
    model = SimpleNamespace(looks_at_source=True)

    def translate(
        self, texts: list[str], *, beam: int | None, length_penalty: float | None, scores: bool
    ) -> list[Said]:
        return [Said(text) for text in texts]

    def align_all(self, pairs: list[Pair]) -> list[Alignment]:
        counts = [min(len(pair.source.split()), len(pair.target.split())) for pair in pairs]
        return [Alignment(frozenset((i, i) for i in range(count))) for count in counts]


PARROT = cast("Translator", Parrot())


def test_scores_and_alignment_error() -> None:
    pairs = [
        Pair("a b c d e", "a b c d e", parse_alignment("0-0 1-1 2-2 3-3 4-4")),
        Pair("a b", "a b", parse_alignment("0-1 1-0")),
        Pair("not drawn", "not drawn"),
    ]
    evaluation = evaluate_translator(PARROT, pairs)
    found = evaluation.as_dict()
    assert evaluation.translations == ("a b c d e", "a b", "not drawn")
    assert found["bleu"] == pytest.approx(100)
    assert "tok:zh" in str(found["bleu_signature"])
    assert found["alignment_error"] == pytest.approx(1 - 10 / 14)
    assert (found["sentences"], found["alignment_sentences"]) == (3, 2)


def test_without_gold_there_is_no_alignment_error() -> None:
    evaluation = evaluate_translator(PARROT, [Pair("a", "a")], metrics=("chrf",), tokenize="13a")
    assert evaluation.alignment is None
    assert list(evaluation.as_dict()) == ["chrf", "chrf_signature", "sentences"]
