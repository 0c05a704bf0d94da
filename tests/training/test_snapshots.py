"""Snapshots in metrics.jsonl: at every validation, sample translations and the attention map of one sentence.

A model without attention has no map, and a model of plain text has no samples.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

import jumok
from jumok.analysis.explainer import explain
from jumok.analysis.packing import unpack_weights
from jumok.analysis.tokenized_sentence import TokenizedSentence
from jumok.config.recipe import make_recipe
from jumok.text.tokenizer_training import train_tokenizers
from jumok.training.events import Event, Sample, Saved, Validated
from jumok.training.run.factories import fresh_model
from jumok.training.run.run_folder import RunFolder
from jumok.training.run.training_run import training_events
from jumok.training.validation.plain_text import TextValidation
from jumok.training.validation.snapshots import (
    MAX_TOKENS,
    cross_attention_map,
    pick_snapshot_sentence,
    snapshot_to_json,
)
from jumok.training.validation.translation import TranslationValidation
from jumok.types import Pair
from support.cycles import SMALL, write_cycles
from support.digits import TINY, digit_corpus, digit_pairs
from support.random_translators import small_translator, tokenizers

if TYPE_CHECKING:
    from pathlib import Path

SHORT = {"training.steps": 12, "training.validate_every": 5, "training.warmup_steps": 2}
SIZES = {name: TINY[name] for name in ("model.width", "model.feed_forward", "model.heads")}
OTHER_SETTINGS = {name: TINY[name] for name in TINY if not name.startswith("model.")}
TRANSLATOR_SETTINGS: dict[str, dict[str, Any]] = {
    "transformer": TINY,
    "decoder-only": {**OTHER_SETTINGS, **SIZES, "model.family": "decoder-only", "model.layers": 1},
    "bahdanau": {**OTHER_SETTINGS, "model.family": "recurrent", "model.width": 16, "model.embedding": 16},
    "no attention": {
        **OTHER_SETTINGS,
        "model.family": "recurrent",
        "model.width": 16,
        "model.embedding": 16,
        "model.attention": "none",
    },
}
EFFICIENT_ATTENTION = TINY | {
    f"model.{site}_attention": "efficient" for site in ("encoder", "decoder", "cross")
}


def run(out: Path, corpus: Any, **settings: Any) -> list[Event]:
    return list(training_events(corpus, out=out, **{**SHORT, **settings}))


def validation_lines(out: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line["kind"] == "validation"]


@pytest.mark.parametrize("name", TRANSLATOR_SETTINGS)
def test_every_validation_line_has_samples_and_the_map_of_the_first_sample(name: str, tmp_path: Path) -> None:
    events = run(tmp_path / "run", digit_corpus(200), **TRANSLATOR_SETTINGS[name])
    lines = validation_lines(tmp_path / "run")
    samples = [[Sample(**fields) for fields in line["samples"]] for line in lines]
    assert samples == [list(event.samples) for event in events if isinstance(event, Validated)]
    shown_pairs = [[(sample.source, sample.reference) for sample in validation] for validation in samples]
    assert [len(set(pairs)) for pairs in shown_pairs] == [3, 3, 3]
    assert shown_pairs[0] == shown_pairs[1] == shown_pairs[2], (
        "a validation shows other sentences than the one before"
    )
    if name == "no attention":
        assert not any("attention" in line for line in lines)
        return
    source, reference = shown_pairs[0][0]
    weights = []
    for line in lines:
        attention = line["attention"]
        assert attention["site"] == "cross"
        assert attention["keys"] == [*source.split(), "</s>"]
        assert attention["queries"] == [*reference.split(), "</s>"]
        weights.append(unpack_weights(attention["weights"]))
    assert weights[0].shape == (len(reference.split()) + 1, len(source.split()) + 1)
    sums = np.stack(weights).sum(axis=-1)
    # A decoder-only model also attends to its own words, so only some of the weight is on the source.
    assert ((sums > 0.1) & (sums < 1.05)).all() if name == "decoder-only" else np.allclose(sums, 1, atol=0.05)
    assert not np.allclose(weights[0], weights[-1], atol=0.01), "training has not changed the map"


def test_the_map_is_the_mean_over_the_layers_and_heads_of_the_validated_model(tmp_path: Path) -> None:
    """Here the last validation is the best, so the model folder must give the map of the last line."""
    run(tmp_path / "run", digit_corpus(200), **TINY, **{"training.average_checkpoints": 1})
    line = validation_lines(tmp_path / "run")[-1]
    translator = jumok.load(tmp_path / "run" / "model")
    sample = line["samples"][0]
    explanation = explain(translator, sample["source"], target=sample["reference"])
    expected = explanation.words("cross").weights.mean(axis=(0, 1))
    assert np.allclose(unpack_weights(line["attention"]["weights"]), expected, atol=0.005)


@pytest.mark.parametrize(("family", "site"), [("decoder-only", "decoder"), ("encoder-only", "encoder")])
def test_a_model_of_plain_text_shows_its_self_attention(family: str, site: str, tmp_path: Path) -> None:
    text, _ = write_cycles(tmp_path)
    run(tmp_path / "run", text, **SMALL, **{"model.family": family})
    lines = validation_lines(tmp_path / "run")
    assert len(lines) == 3
    assert not any("samples" in line for line in lines)
    [labels] = {(*line["attention"]["queries"],) for line in lines}
    assert labels[-1] == "</s>"
    attention = lines[-1]["attention"]
    assert attention["site"] == site
    assert attention["keys"] == ([*labels] if site == "encoder" else ["<s>", *labels[:-1]])
    weights = unpack_weights(attention["weights"])
    sums = weights.sum(axis=-1)
    # The decoder also attends to the </s> of its source, which has no other token.
    min_sum = 0.3 if site == "decoder" else 0.95
    assert ((sums > min_sum) & (sums < 1.05)).all()
    assert (np.triu(weights, 1) == 0).all() == (site == "decoder")


@pytest.mark.parametrize(
    "settings",
    [TRANSLATOR_SETTINGS["transformer"], TRANSLATOR_SETTINGS["bahdanau"], EFFICIENT_ATTENTION],
    ids=["transformer", "bahdanau", "efficient"],
)
def test_a_resumed_run_has_the_same_lines_and_the_same_weights(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    run(tmp_path / "uninterrupted", digit_corpus(200), **settings)
    events = training_events(digit_corpus(200), out=tmp_path / "resumed", **SHORT, **settings)
    steps_of_saves = (event.step for event in events if isinstance(event, Saved))
    assert [next(steps_of_saves), next(steps_of_saves)] == [5, 10]
    events.close()  # type: ignore[attr-defined]
    # Lines after the last checkpoint are removed.
    with (tmp_path / "resumed" / "metrics.jsonl").open("ab") as file:
        file.write(b'{"kind": "validation", "step": 11, "samples": []}\n')
    run(tmp_path / "resumed", digit_corpus(200), **settings)
    uninterrupted, resumed = (
        [
            {name: value for name, value in line.items() if name != "seconds"}
            for line in validation_lines(path)
        ]
        for path in (tmp_path / "uninterrupted", tmp_path / "resumed")
    )
    assert uninterrupted == resumed
    first, second = (
        tmp_path / path / "model" / "weights.safetensors" for path in ("uninterrupted", "resumed")
    )
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("name", TRANSLATOR_SETTINGS)
def test_a_snapshot_draws_no_random_number_and_changes_no_weight(name: str, tmp_path: Path) -> None:
    recipe = make_recipe(None, **{**TRANSLATOR_SETTINGS[name], "text.shared": True, "model.dropout": 0.5})
    pairs = digit_pairs(60)
    digit_tokenizers = train_tokenizers(
        (pair.source for pair in pairs), (pair.target for pair in pairs), recipe.text, 320
    )
    model = fresh_model(RunFolder(tmp_path), recipe, digit_tokenizers)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    validation = TranslationValidation(pairs, digit_tokenizers, recipe)
    rng_state = torch.get_rng_state()
    model.train()
    first, second = (validation.attention_snapshot(model) for _ in range(2))
    assert torch.equal(torch.get_rng_state(), rng_state)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert (first is None) == (second is None) == (name == "no attention")
    if first is not None and second is not None:
        assert np.array_equal(first.weights, second.weights), "dropout was on"


def test_the_longest_sentence_within_the_limit_is_picked() -> None:
    assert pick_snapshot_sentence([3, 16, 17, 7, 16, 0]) == 1  # the limit is 16 tokens
    assert pick_snapshot_sentence([17, 0, 300]) is None
    assert pick_snapshot_sentence([]) is None


def test_a_snapshot_is_one_short_line(tmp_path: Path) -> None:
    """Other separators than a line feed are replaced, because some readers split lines at them."""
    odd = "one\u2028two\x85three " + 500 * "four "
    fields = snapshot_to_json([Sample("one", odd, "나는 " * 1000)], None)
    [sample] = fields["samples"]
    assert sample["reference"].startswith("one two three four")
    assert max(map(len, sample.values())) == 300  # `MAX_CHARACTERS`
    assert sample["hypothesis"].endswith("…")
    assert "attention" not in fields
    line = json.dumps(fields, ensure_ascii=False)
    assert len(line.splitlines()) == 1
    assert snapshot_to_json([], None) == {}


def test_the_largest_map_takes_at_most_1200_bytes() -> None:
    tokenizer = tokenizers().source
    text = "the old house sees a small tree and the river knows the home near a tree"
    ids = tokenizer.encode(text)
    assert len(ids) == MAX_TOKENS
    sentence = TokenizedSentence.from_ids(tokenizer.decode(ids), ids, tokenizer)
    attention = cross_attention_map(small_translator("transformer").model, sentence, sentence)
    assert len(json.dumps(snapshot_to_json([], attention))) < 1200


@pytest.mark.parametrize("family", ["decoder-only", "encoder-only"])
def test_a_sentence_with_a_space_that_the_tokenizer_does_not_know_has_a_map(
    family: str, tmp_path: Path
) -> None:
    recipe = make_recipe(None, **{**SMALL, "model.family": family, "text.shared": True})
    texts = [pair.source for pair in digit_pairs(60)]
    digit_tokenizers = train_tokenizers(texts, texts, recipe.text, 320)
    validation = TextValidation([Pair("", "one\u00a0two three")], digit_tokenizers, recipe)
    attention = validation.attention_snapshot(fresh_model(RunFolder(tmp_path), recipe, digit_tokenizers))
    assert attention is not None
    assert attention.queries == ("one", "two", "three", "</s>")
