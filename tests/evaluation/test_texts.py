"""Perplexity against numbers computed by hand, and a mask that stays where it is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
import torch
from torch import Tensor, nn

from jumok.decoding import Sampling, TextModel
from jumok.errors import DataError
from jumok.evaluation import evaluate_text
from jumok.models import Model, OutputLayer, build_model
from jumok.recipe import DecoderOnlySettings, EncoderOnlySettings, TextSettings
from jumok.text import Subwords, learn_subwords
from jumok.values import END

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jumok.values import Batch

SENTENCES = ["the cat sees the dog", "the dog sees the cat", "a dog", "a cat"]


@pytest.fixture(scope="module")
def pieces() -> Subwords:
    return learn_subwords(SENTENCES * 5, TextSettings(), pieces=300)


class Indifferent(Model):
    """Gives the same probability to every piece but one, which it likes e times as much."""

    def __init__(self, pieces: int, favourite: int) -> None:
        super().__init__()
        weight = torch.zeros(pieces, 1)
        weight[favourite] = 1.0
        self.output = OutputLayer(nn.Parameter(weight))

    def states(self, batch: Batch, probe: object) -> Tensor:
        assert batch.target is not None
        return torch.ones(*batch.target[:, 1:].shape, 1)


def text_model(pieces: Subwords, task: str) -> TextModel:
    torch.manual_seed(1)
    sizes = {"width": 16, "heads": 2, "feed_forward": 16, "layers": 2, "dropout": 0.0}
    kind = EncoderOnlySettings if task == "masked" else DecoderOnlySettings
    model = build_model(kind(**sizes), source_pieces=pieces.size, target_pieces=pieces.size, shared=True)
    return TextModel(model, pieces, task=task)


def test_perplexity_is_what_the_formula_says(pieces: Subwords) -> None:
    favourite = pieces.encode("dog")[0]
    model = TextModel(Indifferent(pieces.size, favourite), pieces, task="language-model")
    scores = evaluate_text(model, [*SENTENCES, "", "  "]).as_dict()
    ids = [piece for sentence in SENTENCES for piece in pieces.encode(sentence)]
    tokens = len(ids) + len(SENTENCES)
    nll = tokens * math.log(math.e + pieces.size - 1) - ids.count(favourite)
    assert (scores["sentences"], scores["tokens"]) == (4, tokens)
    assert scores["loss"] == pytest.approx(nll / tokens)
    assert scores["perplexity"] == pytest.approx(math.exp(nll / tokens))
    assert scores["accuracy"] == ids.count(favourite) / tokens
    assert scores["words"] == 5 + 5 + 2 + 2 + 4
    assert scores["word_perplexity"] == pytest.approx(math.exp(nll / 18))
    assert scores["characters"] == 20 + 20 + 5 + 5 + 4
    assert scores["character_perplexity"] == pytest.approx(math.exp(nll / 54))


def test_a_model_of_other_pieces_is_compared_by_words() -> None:
    """A perplexity a piece changes with the pieces; those of a word and of a character count the same."""
    short, long = (learn_subwords(SENTENCES * 5, TextSettings(), pieces=size) for size in (292, 320))
    counted = []
    for vocabulary in (short, long):
        model = TextModel(Indifferent(vocabulary.size, 5), vocabulary, task="language-model")
        scores = evaluate_text(model, SENTENCES).as_dict()
        counted.append((scores["words"], scores["characters"], scores["tokens"]))
    assert counted[0][:2] == counted[1][:2]


@pytest.mark.parametrize("task", ["language-model", "masked"])
def test_the_order_of_the_sentences_changes_nothing(pieces: Subwords, task: str) -> None:
    model = text_model(pieces, task)
    one, other = evaluate_text(model, SENTENCES), evaluate_text(model, SENTENCES[::-1])
    assert one.pieces.tokens == other.pieces.tokens
    assert one.pieces.loss == pytest.approx(other.pieces.loss, rel=1e-5)
    assert ("word_perplexity" in one.as_dict()) == (task == "language-model")


def test_nothing_to_score(pieces: Subwords) -> None:
    with pytest.raises(DataError, match="no sentence to score"):
        evaluate_text(text_model(pieces, "masked"), ["", " "])


@pytest.mark.parametrize("task", ["language-model", "masked"])
def test_lines_longer_than_all_in_training_are_left_out_and_counted(pieces: Subwords, task: str) -> None:
    model = text_model(pieces, task)
    model.longest = max(len(pieces.encode(sentence)) for sentence in SENTENCES)
    long = " ".join(SENTENCES)
    scores = evaluate_text(model, [*SENTENCES, long, ""])
    assert (scores.sentences, scores.left_out) == (4, 1)
    assert scores.as_dict() == {**evaluate_text(model, SENTENCES).as_dict(), "left_out": 1}
    with pytest.raises(DataError, match=rf"2 lines, 1 of them with more than the {model.longest} pieces"):
        evaluate_text(model, [long, ""])


def test_a_beginning_longer_than_all_in_training_is_refused(pieces: Subwords) -> None:
    model = text_model(pieces, "language-model")
    begun = SENTENCES[0]
    count = len(pieces.encode(begun))
    model.longest = count - 1
    with pytest.raises(DataError, match=rf"Line 2 .* {count} pieces, .* at most {count - 1} here"):
        model.complete(["a", begun])
    assert model.complete([begun], longest=count)[0].startswith(begun)
    model.longest = count
    assert model.complete([begun])[0].startswith(begun)


def test_a_text_is_continued_from_its_beginning(pieces: Subwords) -> None:
    model = text_model(pieces, "language-model")
    beginnings = ["the cat", "", "a dog sees"]
    texts = model.complete(beginnings, longest=12)
    assert all(text.startswith(begun) for text, begun in zip(texts, beginnings, strict=True))
    assert len(model.complete([""], longest=40)[0]) > len(model.complete([""], longest=2)[0])
    assert texts == [model.complete([begun], longest=12)[0] for begun in beginnings]
    drawn = [model.complete(beginnings, longest=12, sampling=Sampling(seed=seed)) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert drawn[2][0].startswith("the cat")


def test_a_text_never_has_more_pieces_than_asked_for(
    pieces: Subwords, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = text_model(pieces, "language-model")
    with torch.no_grad():
        model.model.output.weight[END] = -100 * model.model.output.weight.sum(dim=0).sign()
    decoded: list[int] = []
    usual = pieces.decode
    monkeypatch.setattr(pieces, "decode", lambda ids: decoded.append(len(ids)) or usual(ids))
    count = len(pieces.encode(SENTENCES[0]))
    for longest in (count - 1, count, count + 1):
        model.complete([SENTENCES[0]], longest=longest)
    assert decoded == [count, count, count + 1]


def test_only_so_many_beginnings_go_on_side_by_side(
    pieces: Subwords, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = text_model(pieces, "language-model")
    rows: list[int] = []
    begin = model.model.begin  # type: ignore[attr-defined]
    monkeypatch.setattr(model.model, "begin", lambda batch: rows.append(len(batch)) or begin(batch))
    monkeypatch.setattr("jumok.decoding.texts.SIDE_BY_SIDE", 40)
    assert len(model.complete(["a dog"] * 10, longest=10)) == 10
    assert rows == [4, 4, 2]


def test_texts_come_out_before_the_last_beginning_is_read(pieces: Subwords) -> None:
    model = text_model(pieces, "language-model")
    read = []

    def beginnings() -> Iterator[str]:
        for line in range(1000):
            read.append(line)
            yield "a dog"

    next(model.stream(beginnings(), longest=40))
    assert len(read) < 1000
    model.longest = 4
    found = []
    with pytest.raises(DataError, match="Line 3 is too long"):
        found.extend(model.stream(["a", "", SENTENCES[0], "a"]))
    assert len(found) == 2


@pytest.mark.parametrize(("task", "site"), [("language-model", "decoder"), ("masked", "encoder")])
def test_attention_comes_with_the_pieces_as_labels(pieces: Subwords, task: str, site: str) -> None:
    maps = text_model(pieces, task).attention("the cat sees")
    spelt = (*pieces.pieces(pieces.encode("the cat sees")), "</s>")
    assert set(maps) == {site}
    attention = maps[site]
    assert attention.queries == spelt
    assert attention.keys == (spelt if site == "encoder" else ("<s>", *spelt[:-1]))
    assert attention.weights.shape == (2, 2, len(spelt), len(spelt))
