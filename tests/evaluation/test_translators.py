"""Scores of a translator: its translations and its alignments."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from jumok.data.alignments import parse_alignment
from jumok.evaluation.text_scores import TokenScores
from jumok.evaluation.translator_scores import evaluate_translator, looks_swapped
from jumok.types import Alignment, Pair

if TYPE_CHECKING:
    from jumok.inference.translator import Translator


@dataclass
class FakeTranslation:
    text: str


class CopyTranslator:
    """Copies the source and aligns word i with word i."""

    target_language = "zh"
    sentences_for_scores = "keep"
    model = SimpleNamespace(has_cross_attention=True)

    def translate(self, texts: list[str], *, sentences: str, **_: object) -> list[FakeTranslation]:
        assert sentences == "keep"  # the lines of a test set stay whole
        return [FakeTranslation(text) for text in texts]

    def align_all(self, pairs: list[Pair]) -> list[Alignment]:
        counts = [min(len(pair.source.split()), len(pair.target.split())) for pair in pairs]
        return [Alignment(frozenset((i, i) for i in range(count))) for count in counts]


COPY_TRANSLATOR = cast("Translator", CopyTranslator())


def test_translations_and_alignments_are_scored() -> None:
    pairs = [
        Pair("a b c d e", "a b c d e", parse_alignment("0-0 1-1 2-2 3-3 4-4")),
        Pair("a b", "a b", parse_alignment("0-1 1-0")),
        Pair("no gold", "no gold"),
    ]
    evaluation = evaluate_translator(COPY_TRANSLATOR, pairs)
    entries = evaluation.as_dict()
    assert evaluation.translations == ("a b c d e", "a b", "no gold")
    assert entries["bleu"] == pytest.approx(100)
    assert "tok:zh" in str(entries["bleu_signature"])
    # 5 of the 7 links are in the 7 gold links: 1 − (5 + 5) / (7 + 7).
    assert entries["alignment_error"] == pytest.approx(1 - 10 / 14)
    assert (entries["sentences"], entries["alignment_sentences"]) == (3, 2)


def test_without_gold_there_is_no_alignment_error() -> None:
    evaluation = evaluate_translator(COPY_TRANSLATOR, [Pair("a", "a")], metrics=("chrf",), tokenize="13a")
    assert evaluation.alignment is None
    assert list(evaluation.as_dict()) == ["chrf", "chrf_signature", "sentences"]


class CharacterTokenizer:
    """One token per character of its own script, three per other character, as bytes would be."""

    def __init__(self, letters: str) -> None:
        self._letters = letters

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        return [[5] * sum(1 if letter in self._letters else 3 for letter in text) for text in texts]


def test_pairs_that_are_too_long_when_swapped_do_not_look_swapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a pair to score, the swapped direction has no loss; a loss of 0 would look perfect."""
    monkeypatch.setattr("jumok.evaluation.text_scores.score_batch", lambda model, batch: TokenScores(8.0, 2))
    tokenizers = SimpleNamespace(source=CharacterTokenizer("ab"), target=CharacterTokenizer("가나"))
    for max_tokens in (3, 100):
        translator = SimpleNamespace(model=None, tokenizers=tokenizers, max_source_tokens=max_tokens)
        assert not looks_swapped(cast("Translator", translator), [Pair("ab", "가나")])
