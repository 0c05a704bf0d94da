"""Measures beside the weights: each equals an independent computation."""

from __future__ import annotations

import contextlib
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from jumok.analysis.bound_model import BoundModel
from jumok.analysis.change_edits import edit_from_changes
from jumok.analysis.changes import Paint, Silence
from jumok.analysis.cost import CostLimits
from jumok.analysis.explainer import explain
from jumok.analysis.json_format import explanation_from_json, explanation_to_json
from jumok.analysis.live_explanation import complete_explanation
from jumok.data.batching import padded_batch
from jumok.errors import DataError, UnsupportedError
from jumok.pictures.reading import picture_data_url, write_picture
from jumok.types import BEGIN, END, PAD
from support.picture_files import half_bright
from support.random_translators import (
    SENTENCE,
    SMALL_MODELS,
    TARGET,
    make_translator,
    picture_translator,
    small_translator,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from jumok.analysis.live_explanation import LiveExplanation

every_small_model = pytest.mark.parametrize("name", SMALL_MODELS)


def log_probs(explanation: LiveExplanation, source: list[int], target: list[int]) -> np.ndarray:
    """Return the log-probability of each token of the target and of `</s>`, from one plain pass."""
    model = explanation.bound_model.model
    with torch.inference_mode():
        states = model(padded_batch([source], [target]))[0]
        all_log_probs = model.output.log_probs(states)
    return all_log_probs[torch.arange(len(target) + 1), torch.tensor([*target, END])].numpy()


@every_small_model
def test_erasure_is_the_change_in_log_probability_when_the_word_is_deleted(name: str) -> None:
    explanation = explain(small_translator(name), SENTENCE, target=TARGET)
    erasure = explanation.measures().erasure
    source, target = explanation.source, list(explanation.target.ids)
    assert erasure is not None
    assert erasure.shape == (len(target) + 1, len(source.words))
    whole = log_probs(explanation, list(source.ids), target)
    for word in range(len(source.words)):
        rest = [id_ for id_, owner in zip(source.ids, source.word_of_token, strict=True) if owner != word]
        assert len(rest) < len(source.ids)
        np.testing.assert_allclose(erasure[:, word], log_probs(explanation, rest, target) - whole, atol=1e-4)


@pytest.mark.parametrize("site", ["encoder", "decoder", "cross"])
def test_erasure_under_a_silence_in_a_decoder_only_model_silences_the_same_site(site: Any) -> None:
    """In a decoder-only model, targets follow sources, so a deleted word could move the targets."""
    translator, silence = small_translator("decoder-only"), Silence(site)
    explanation = explain(translator, SENTENCE, target=TARGET, edit=silence)
    source, target = explanation.source, list(explanation.target.ids)
    erasure = explanation.measures().erasure
    assert erasure is not None

    def silenced_log_probs(ids: list[int]) -> np.ndarray:
        edit = edit_from_changes([silence], translator.model, source_length=len(ids) + 1)
        log_probs_by_token = BoundModel(translator.model, ids, edit).log_probs(target)
        return log_probs_by_token[torch.arange(len(target) + 1), torch.tensor([*target, END])].numpy()

    whole = silenced_log_probs(list(source.ids))
    for word in range(len(source.words)):
        rest = [id_ for id_, owner in zip(source.ids, source.word_of_token, strict=True) if owner != word]
        np.testing.assert_allclose(erasure[:, word], silenced_log_probs(rest) - whole, atol=1e-4)


@contextlib.contextmanager
def increased_embedding(table: torch.nn.Module, position: int, by: torch.Tensor) -> Iterator[None]:
    """Within the `with` block, `table` adds the vector `by` to its output at one position."""

    def add(module: torch.nn.Module, inputs: object, output: torch.Tensor) -> torch.Tensor:
        changed = output.clone()
        changed[:, position] += by
        return changed

    handle = table.dropout.register_forward_hook(add)
    yield
    handle.remove()


@every_small_model
def test_gradient_times_input_is_a_finite_difference(name: str) -> None:
    """An embedding that grows by a small share adds that share of the measure to the log-probability."""
    translator = make_translator(SMALL_MODELS[name])
    model = translator.model.double()
    explanation = explain(translator, SENTENCE, target=TARGET)
    measured = explanation.measures().gradient
    target, step, share = list(explanation.target.ids), 3, 1e-5
    tables = {"cross": model.source_embedding, "decoder": model.target_embedding}
    tokens = {"cross": [*explanation.source.ids, END], "decoder": [BEGIN, *target]}
    for (site, table), position in itertools.product(tables.items(), (0, 2)):
        assert measured[site].shape == (len(target) + 1, len(tokens[site]))
        embedded = table.weight.detach()[tokens[site][position]] * table.weight.shape[1] ** 0.5
        values = []
        for growth in (share, -share):
            with increased_embedding(table, position, growth * embedded):
                values.append(log_probs(explanation, list(explanation.source.ids), target)[step])
        expected = (values[0] - values[1]) / (2 * share)
        assert measured[site][step, position] == pytest.approx(expected, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("name", ["transformer", "post-norm", "projections", "decoder-only"])
@pytest.mark.parametrize("cell", [("encoder", 1, 1, 3, 2), ("decoder", 1, 0, 4, 1), ("cross", 0, 1, 2, 5)])
def test_value_norms_equal_the_norms_of_the_traced_values(name: str, cell: tuple) -> None:
    translator = small_translator(name)
    explanation = explain(translator, SENTENCE, target=TARGET)
    site, layer, head, _, key = cell
    steps, model = explanation.steps(*cell), translator.model
    blocks = model.blocks if name == "decoder-only" else model.encoder if site == "encoder" else model.decoder
    attention = blocks[layer].attention
    if site == "cross" and name != "decoder-only":
        attention = blocks[layer].cross_attention
    width = len(steps["value"])
    part = attention.out.weight[:, head * width : (head + 1) * width].detach().numpy()  # W_O of this head
    norms = explanation.measures().value_norms[site]
    assert norms.shape == tuple(np.array(explanation.attention[site].weights.shape)[[0, 1, 3]])
    assert norms[layer, head, key] == pytest.approx(np.linalg.norm(part @ steps["value"]), rel=1e-4)
    weighted = np.linalg.norm(part @ steps["weighted value"])
    assert weighted == pytest.approx(steps["weight"] * norms[layer, head, key], rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("name", ["bahdanau", "feeding"])
def test_the_values_of_a_recurrent_model_are_the_encoder_states(name: str) -> None:
    explanation = explain(small_translator(name), SENTENCE, target=TARGET)
    norms = explanation.measures().value_norms["cross"]
    for key in (0, 3):
        value = explanation.steps("cross", 0, 0, 1, key)["value"]
        assert norms[0, 0, key] == pytest.approx(np.linalg.norm(value), rel=1e-5)


def test_measures_follow_a_change_and_erasure_is_missing_if_cells_are_changed() -> None:
    translator = small_translator("transformer")
    silenced = explain(translator, SENTENCE, target=TARGET, edit=Silence("cross", 1, 0))
    plain = explain(translator, SENTENCE, target=TARGET).measures()
    changed = silenced.measures()
    assert changed.erasure is not None
    assert plain.erasure is not None
    assert not np.allclose(changed.erasure, plain.erasure)
    assert not np.allclose(changed.gradient["cross"], plain.gradient["cross"])
    painted = explain(translator, SENTENCE, target=TARGET, edit=Paint("cross", query=1, key=1, weight=1.0))
    assert painted.measures().erasure is None


@pytest.mark.parametrize("name", ["transformer", "post-norm", "decoder-only"])
def test_the_last_layer_predicts_the_same_tokens_as_the_model(name: str) -> None:
    explanation = explain(small_translator(name), SENTENCE, target=TARGET).with_layer_predictions()
    assert len(explanation.layers) == 3  # the input and two layers
    for step, candidates in enumerate(explanation.candidates):
        last = explanation.layers[-1][step]
        assert [token.id for token in last] == [token.id for token in candidates[: len(last)]]
        assert [token.probability for token in last] == pytest.approx(
            [token.probability for token in candidates[: len(last)]], abs=1e-4
        )
    first = [token.id for step in explanation.layers[0] for token in step]
    assert first != [token.id for step in explanation.layers[-1] for token in step]


def test_the_prediction_before_the_first_layer_is_made_from_the_embedding_alone() -> None:
    translator = small_translator("transformer")
    explanation = explain(translator, SENTENCE, target=TARGET).with_layer_predictions()
    model = translator.model
    with torch.inference_mode():
        inputs = model.target_embedding(torch.tensor([[BEGIN, *explanation.target.ids]]))
        log_probs_of_inputs = model.output.log_probs(model.after_decoder(inputs))[0]
    produced = log_probs_of_inputs.index_fill(1, torch.tensor([PAD, BEGIN]), -torch.inf)
    assert [step[0].id for step in explanation.layers[0]] == produced.argmax(dim=1).tolist()


def test_a_recurrent_model_has_no_layer_predictions() -> None:
    explanation = explain(small_translator("luong"), SENTENCE, target=TARGET)
    with pytest.raises(UnsupportedError, match="Recurrent"):
        explanation.with_layer_predictions()
    complete = complete_explanation(explanation)
    assert complete.layers == ()
    assert complete.measured is not None


def test_a_complete_explanation_survives_a_json_round_trip() -> None:
    explanation = complete_explanation(explain(small_translator("transformer"), SENTENCE))
    read = explanation_from_json(explanation_to_json(explanation))
    assert explanation.measured is not None
    assert read.measured is not None
    for site, norms in explanation.measured.value_norms.items():
        np.testing.assert_allclose(read.measured.value_norms[site], norms, rtol=1e-3, atol=1e-3)
        np.testing.assert_array_equal(
            read.statistics[site].token_effect, explanation.statistics[site].token_effect
        )
    np.testing.assert_array_equal(read.measured.gradient["cross"], explanation.measured.gradient["cross"])
    np.testing.assert_array_equal(read.measured.erasure, explanation.measured.erasure)
    assert [[[token.id for token in step] for step in layer] for layer in read.layers] == [
        [[token.id for token in step] for step in layer] for layer in explanation.layers
    ]
    shown = {steps.cell.query for steps in explanation.cells if steps.cell.site != "encoder"}
    for layer in read.layers:
        assert {step for step, tokens in enumerate(layer) if tokens} == shown


def test_a_caption_has_no_measures_because_patches_are_not_words(tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    write_picture(path, half_bright("left", 1))
    explanation = explain(picture_translator(), picture_data_url(path))
    with pytest.raises(UnsupportedError, match="patches"):
        explanation.measures()


def test_too_many_passes_are_refused_before_they_begin() -> None:
    limits = CostLimits(max_total_weights=5000)
    explanation = explain(small_translator("transformer"), SENTENCE, target=TARGET, limits=limits)
    with pytest.raises(DataError, match="in all passes together"):
        explanation.measures()
