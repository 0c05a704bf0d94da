"""Models of plain text: their perplexity follows the formula; their completions and attention maps."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
import torch
from torch import Tensor, nn

from jumok.config.recipe import DecoderOnlySettings, EncoderOnlySettings, TextSettings
from jumok.errors import DataError
from jumok.evaluation.text_scores import evaluate_text
from jumok.inference.search.plan import Sampling
from jumok.inference.text_model import TextModel
from jumok.models.build import build_model
from jumok.models.model import Model, OutputLayer
from jumok.text.tokenizer_training import train_tokenizer
from jumok.types import END

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jumok.text.tokenizer import Tokenizer
    from jumok.types import Batch

SENTENCES = ["the cat sees the dog", "the dog sees the cat", "a dog", "a cat"]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(SENTENCES * 5, TextSettings(), vocab_size=300)


class AlmostUniformModel(Model):
    """Gives every token the same probability except one, which is e times as probable."""

    def __init__(self, vocab_size: int, favourite: int) -> None:
        super().__init__()
        weight = torch.zeros(vocab_size, 1)
        weight[favourite] = 1.0
        self.output = OutputLayer(nn.Parameter(weight))

    def states(self, batch: Batch, probe: object) -> Tensor:
        assert batch.target is not None
        return torch.ones(*batch.target[:, 1:].shape, 1)


def text_model(tokenizer: Tokenizer, task: str) -> TextModel:
    torch.manual_seed(1)
    sizes = {"width": 16, "heads": 2, "feed_forward": 16, "layers": 2, "dropout": 0.0}
    settings = EncoderOnlySettings if task == "masked" else DecoderOnlySettings
    model = build_model(
        settings(**sizes),
        source_vocab_size=tokenizer.vocab_size,
        target_vocab_size=tokenizer.vocab_size,
        shared=True,
    )
    return TextModel(model, tokenizer, task=task)


def test_perplexity_follows_the_formula(tokenizer: Tokenizer) -> None:
    favourite = tokenizer.encode("dog")[0]
    model = TextModel(AlmostUniformModel(tokenizer.vocab_size, favourite), tokenizer, task="language-model")
    scores = evaluate_text(model, [*SENTENCES, "", "  "]).as_dict()
    ids = [token for sentence in SENTENCES for token in tokenizer.encode(sentence)]
    count = len(ids) + len(SENTENCES)
    nll = count * math.log(math.e + tokenizer.vocab_size - 1) - ids.count(favourite)
    assert (scores["sentences"], scores["tokens"]) == (4, count)
    assert scores["loss"] == pytest.approx(nll / count)
    assert scores["perplexity"] == pytest.approx(math.exp(nll / count))
    assert scores["accuracy"] == ids.count(favourite) / count
    # Each of the four </s> counts as a word and as a character.
    assert scores["words"] == 5 + 5 + 2 + 2 + 4
    assert scores["word_perplexity"] == pytest.approx(math.exp(nll / 18))
    assert scores["characters"] == 20 + 20 + 5 + 5 + 4
    assert scores["character_perplexity"] == pytest.approx(math.exp(nll / 54))


def test_words_and_characters_do_not_depend_on_the_vocabulary() -> None:
    """Perplexities per word and per character can therefore be compared between models."""
    tokenizers = [train_tokenizer(SENTENCES * 5, TextSettings(), vocab_size=size) for size in (292, 320)]
    counts = []
    for tokenizer in tokenizers:
        model = TextModel(AlmostUniformModel(tokenizer.vocab_size, 5), tokenizer, task="language-model")
        scores = evaluate_text(model, SENTENCES).as_dict()
        counts.append((scores["words"], scores["characters"]))
    assert counts[0] == counts[1]


@pytest.mark.parametrize("task", ["language-model", "masked"])
def test_scores_do_not_depend_on_the_order_of_sentences(tokenizer: Tokenizer, task: str) -> None:
    model = text_model(tokenizer, task)
    forward, reverse = evaluate_text(model, SENTENCES), evaluate_text(model, SENTENCES[::-1])
    assert forward.token_scores.tokens == reverse.token_scores.tokens
    assert forward.token_scores.loss == pytest.approx(reverse.token_scores.loss, rel=1e-5)
    assert ("word_perplexity" in forward.as_dict()) == (task == "language-model")


def test_a_blank_text_is_refused(tokenizer: Tokenizer) -> None:
    with pytest.raises(DataError, match="no sentence to score"):
        evaluate_text(text_model(tokenizer, "masked"), ["", " "])


@pytest.mark.parametrize("task", ["language-model", "masked"])
def test_lines_longer_than_training_lines_are_left_out_and_counted(tokenizer: Tokenizer, task: str) -> None:
    model = text_model(tokenizer, task)
    model.max_tokens = max(len(tokenizer.encode(sentence)) for sentence in SENTENCES)
    long = " ".join(SENTENCES)
    scores = evaluate_text(model, [*SENTENCES, long, ""])
    assert (scores.sentences, scores.left_out) == (4, 1)
    assert scores.as_dict() == {**evaluate_text(model, SENTENCES).as_dict(), "left_out": 1}
    with pytest.raises(DataError, match=rf"2 lines, 1 of them with more than the {model.max_tokens} tokens"):
        evaluate_text(model, [long, ""])


def test_a_prompt_longer_than_training_lines_is_refused(tokenizer: Tokenizer) -> None:
    model = text_model(tokenizer, "language-model")
    prompt = SENTENCES[0]
    count = len(tokenizer.encode(prompt))
    model.max_tokens = count - 1
    with pytest.raises(DataError, match=rf"Line 2 .* {count} tokens, .* at most {count - 1} here"):
        model.complete(["a", prompt])
    assert model.complete([prompt], max_tokens=count)[0].startswith(prompt)
    model.max_tokens = count
    assert model.complete([prompt])[0].startswith(prompt)


def test_a_completion_starts_with_its_prompt(tokenizer: Tokenizer) -> None:
    model = text_model(tokenizer, "language-model")
    prompts = ["the cat", "", "a dog sees"]
    texts = model.complete(prompts, max_tokens=12)
    assert all(text.startswith(prompt) for text, prompt in zip(texts, prompts, strict=True))
    assert len(model.complete([""], max_tokens=40)[0]) > len(model.complete([""], max_tokens=2)[0])
    assert texts == [model.complete([prompt], max_tokens=12)[0] for prompt in prompts]
    sampled = [model.complete(prompts, max_tokens=12, sampling=Sampling(seed=seed)) for seed in (1, 1, 2)]
    assert sampled[0] == sampled[1] != sampled[2]
    assert sampled[2][0].startswith("the cat")


def test_a_completion_has_at_most_the_requested_tokens_and_never_cuts_its_prompt(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = text_model(tokenizer, "language-model")
    with torch.no_grad():  # so that no completion ends early
        model.model.output.weight[END] = -100 * model.model.output.weight.sum(dim=0).sign()
    decoded: list[int] = []
    decode = tokenizer.decode
    monkeypatch.setattr(tokenizer, "decode", lambda ids: decoded.append(len(ids)) or decode(ids))
    count = len(tokenizer.encode(SENTENCES[0]))
    for max_tokens in (count - 1, count, count + 1):
        model.complete([SENTENCES[0]], max_tokens=max_tokens)
    assert decoded == [count, count, count + 1]


def test_the_number_of_prompts_in_parallel_is_limited(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = text_model(tokenizer, "language-model")
    batch_sizes: list[int] = []
    begin = model.model.begin  # type: ignore[attr-defined]
    monkeypatch.setattr(model.model, "begin", lambda batch: batch_sizes.append(len(batch)) or begin(batch))
    monkeypatch.setattr("jumok.inference.text_model.MAX_BLOCK_TOKENS", 40)
    assert len(model.complete(["a dog"] * 10, max_tokens=10)) == 10
    assert batch_sizes == [4, 4, 2]  # 40 // 10 prompts at once


def test_texts_are_yielded_before_the_last_prompt_is_read(tokenizer: Tokenizer) -> None:
    model = text_model(tokenizer, "language-model")
    read = []

    def prompts() -> Iterator[str]:
        for number in range(1000):
            read.append(number)
            yield "a dog"

    next(model.stream(prompts(), max_tokens=40))
    assert len(read) < 1000
    model.max_tokens = 4
    texts = []
    with pytest.raises(DataError, match="Line 3 is too long"):
        texts.extend(model.stream(["a", "", SENTENCES[0], "a"]))
    assert len(texts) == 2


@pytest.mark.parametrize(("task", "site"), [("language-model", "decoder"), ("masked", "encoder")])
def test_attention_maps_are_labelled_with_tokens(tokenizer: Tokenizer, task: str, site: str) -> None:
    maps = text_model(tokenizer, task).attention("the cat sees")
    labels = (*tokenizer.tokens(tokenizer.encode("the cat sees")), "</s>")
    assert set(maps) == {site}
    attention = maps[site]
    assert attention.queries == labels
    assert attention.keys == (labels if site == "encoder" else ("<s>", *labels[:-1]))
    assert attention.weights.shape == (2, 2, len(labels), len(labels))
