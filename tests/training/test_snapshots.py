"""Samples and the map of one sentence stand in every validation line, whatever the model is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from cycles import SMALL, write_cycles
from digits import TINY, digit_corpus, digit_pairs

import jumok
from explain_translators import family_translator, vocabularies
from jumok.explain import Side
from jumok.explain.packing import unpack_weights
from jumok.recipe import make_recipe
from jumok.text import learn_vocabularies
from jumok.training import Event, Saved, Validated, training_events
from jumok.training.events import Sample
from jumok.training.exhibits import exhibits_to_json, fixed_sentence, look_at_pair
from jumok.training.folder import RunFolder
from jumok.training.prepared import fresh_model
from jumok.training.validation import ValidationSet

if TYPE_CHECKING:
    from pathlib import Path

SHORT = {"training.steps": 12, "training.validate_every": 5, "training.warmup": 2}
BODY = {name: TINY[name] for name in ("model.width", "model.feed_forward", "model.heads")}
REST = {name: TINY[name] for name in TINY if not name.startswith("model.")}
TRANSLATORS: dict[str, dict[str, Any]] = {
    "transformer": TINY,
    "decoder alone": {**REST, **BODY, "model.family": "decoder-only", "model.layers": 1},
    "bahdanau": {**REST, "model.family": "recurrent", "model.width": 16, "model.embedding": 16},
    "no attention": {
        **REST,
        "model.family": "recurrent",
        "model.width": 16,
        "model.embedding": 16,
        "model.attention": "none",
    },
}


def run(out: Path, corpus: Any, **settings: Any) -> list[Event]:
    return list(training_events(corpus, out=out, **{**SHORT, **settings}))


def lines_of(out: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line["kind"] == "validation"]


@pytest.mark.parametrize("name", TRANSLATORS)
def test_every_validation_line_has_the_samples_and_the_map_of_the_first(name: str, tmp_path: Path) -> None:
    events = run(tmp_path / "run", digit_corpus(200), **TRANSLATORS[name])
    lines = lines_of(tmp_path / "run")
    told = [[Sample(**one) for one in line["samples"]] for line in lines]
    assert told == [list(event.samples) for event in events if isinstance(event, Validated)]
    shown = [[(one.source, one.reference) for one in samples] for samples in told]
    assert [len(set(pairs)) for pairs in shown] == [3, 3, 3]
    assert shown[0] == shown[1] == shown[2], "the same sentences at every validation"
    if name == "no attention":
        assert not any("attention" in line for line in lines)
        return
    source, reference = shown[0][0]
    weights = []
    for line in lines:
        attention = line["attention"]
        assert attention["site"] == "cross"
        assert attention["keys"] == [*source.split(), "</s>"]
        assert attention["queries"] == [*reference.split(), "</s>"]
        weights.append(unpack_weights(attention["weights"]))
    assert weights[0].shape == (len(reference.split()) + 1, len(source.split()) + 1)
    sums = np.stack(weights).sum(axis=-1)
    # A decoder alone looks at its own words too, so what it gives to the source is a part.
    assert (
        ((sums > 0.1) & (sums < 1.05)).all() if name == "decoder alone" else np.allclose(sums, 1, atol=0.05)
    )
    assert not np.allclose(weights[0], weights[-1], atol=0.01), "it has learnt something meanwhile"


def test_the_map_is_the_mean_of_the_model_that_was_validated(tmp_path: Path) -> None:
    """The best model is that of the last step here, so its folder tells what the last line must tell."""
    run(tmp_path / "run", digit_corpus(200), **TINY, **{"training.average": 1})
    line = lines_of(tmp_path / "run")[-1]
    translator = jumok.load(tmp_path / "run" / "model")
    sample = line["samples"][0]
    explanation = translator.explain(sample["source"], target=sample["reference"])
    expected = explanation.words("cross").weights.mean(axis=(0, 1))
    assert np.allclose(unpack_weights(line["attention"]["weights"]), expected, atol=0.005)


@pytest.mark.parametrize(("family", "site"), [("decoder-only", "decoder"), ("encoder-only", "encoder")])
def test_a_model_of_plain_text_is_seen_reading_one_sentence(family: str, site: str, tmp_path: Path) -> None:
    text, _ = write_cycles(tmp_path)
    run(tmp_path / "run", text, **SMALL, **{"model.family": family})
    lines = lines_of(tmp_path / "run")
    assert len(lines) == 3
    assert not any("samples" in line for line in lines)
    [labels] = {(*line["attention"]["queries"],) for line in lines}
    assert labels[-1] == "</s>"
    attention = lines[-1]["attention"]
    assert attention["site"] == site
    assert attention["keys"] == ([*labels] if site == "encoder" else ["<s>", *labels[:-1]])
    weights = unpack_weights(attention["weights"])
    sums = weights.sum(axis=-1)
    # A decoder alone always has the end of a source before it, which is empty here and gets its part.
    least = 0.3 if site == "decoder" else 0.95
    assert ((sums > least) & (sums < 1.05)).all()
    assert (np.triu(weights, 1) == 0).all() == (site == "decoder")


@pytest.mark.parametrize("name", ["transformer", "bahdanau"])
def test_stopped_and_continued_a_run_has_the_same_lines_and_the_same_weights(
    name: str, tmp_path: Path
) -> None:
    run(tmp_path / "whole", digit_corpus(200), **TRANSLATORS[name])
    settings = {**SHORT, **TRANSLATORS[name]}
    events = training_events(digit_corpus(200), out=tmp_path / "half", **settings)
    saved = (event.step for event in events if isinstance(event, Saved))
    assert [next(saved), next(saved)] == [5, 10]
    events.close()  # type: ignore[attr-defined]
    # What was validated after the last checkpoint is lost with it.
    with (tmp_path / "half" / "metrics.jsonl").open("ab") as file:
        file.write(b'{"kind": "validation", "step": 11, "samples": []}\n')
    run(tmp_path / "half", digit_corpus(200), **TRANSLATORS[name])
    whole, half = (
        [{name: told for name, told in line.items() if name != "seconds"} for line in lines_of(path)]
        for path in (tmp_path / "whole", tmp_path / "half")
    )
    assert whole == half
    one, other = (tmp_path / path / "model" / "weights.safetensors" for path in ("whole", "half"))
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("name", TRANSLATORS)
def test_looking_draws_no_random_number_and_changes_no_weight(name: str, tmp_path: Path) -> None:
    recipe = make_recipe(None, **{**TRANSLATORS[name], "text.shared": True, "model.dropout": 0.5})
    pairs = digit_pairs(60)
    learnt = learn_vocabularies(
        (pair.source for pair in pairs), (pair.target for pair in pairs), recipe.text, 320
    )
    model = fresh_model(RunFolder(tmp_path), recipe, learnt)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    validation = ValidationSet(pairs, learnt, recipe)
    random = torch.get_rng_state()
    model.train()
    first, second = (validation.look(model) for _ in range(2))
    assert torch.equal(torch.get_rng_state(), random)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert (first is None) == (second is None) == (name == "no attention")
    if first is not None and second is not None:
        assert np.array_equal(first.weights, second.weights), "dropout is off, whatever was going on before"


def test_the_sentence_that_is_looked_at_is_long_but_not_too_long() -> None:
    assert fixed_sentence([3, 16, 17, 7, 16, 0]) == 1
    assert fixed_sentence([17, 0, 300]) is None
    assert fixed_sentence([]) is None


def test_a_line_stays_one_line_and_small(tmp_path: Path) -> None:
    """Whatever a text has in it: several readers end lines at more than a line feed."""
    odd = "one\u2028two\x85three " + 500 * "four "
    told = exhibits_to_json([Sample("one", odd, "나는 " * 1000)], None)
    [sample] = told["samples"]
    assert sample["reference"].startswith("one two three four")
    assert max(map(len, sample.values())) == 300
    assert sample["hypothesis"].endswith("…")
    assert "attention" not in told
    line = json.dumps(told, ensure_ascii=False)
    assert len(line.splitlines()) == 1
    assert exhibits_to_json([], None) == {}


def test_the_largest_map_takes_little_more_than_a_thousand_bytes() -> None:
    pieces = vocabularies().source
    text = "the old house sees a small tree and the river knows home near a tree"
    ids = pieces.encode(text)[:16]
    side = Side.of(pieces.decode(ids), ids, pieces)
    attention = look_at_pair(family_translator("transformer").model, side, side)
    assert len(json.dumps(exhibits_to_json([], attention))) < 1200
