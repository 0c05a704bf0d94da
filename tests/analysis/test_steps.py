"""The steps of one weight: each step follows from the previous steps, and results equal the model's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from jumok.analysis.changes import Paint
from jumok.analysis.explainer import explain
from jumok.attention import CATALOGUE, POSITIONS
from jumok.config.recipe import AttentionSettings, RecurrentSettings, TransformerSettings
from jumok.data.batching import padded_batch
from jumok.errors import DataError
from jumok.models.norms import NORMS
from jumok.models.validate import ATTENTION_NEEDS
from support.random_translators import SENTENCE, SMALL, TARGET, make_translator, small_translator

if TYPE_CHECKING:
    from jumok.analysis.explanation import Explanation
    from jumok.inference.translator import Translator

# (site, layer, head, query, key)
CELLS = [("encoder", 1, 1, 3, 2), ("decoder", 1, 0, 4, 1), ("cross", 1, 1, 2, 5), ("cross", 0, 0, 0, 0)]
MECHANISM_SITES = [
    (name, setting.removesuffix("_attention"))
    for name, entry in CATALOGUE.items()
    for setting, needs in ATTENTION_NEEDS["transformer"].items()
    if not entry.supports.missing(*needs)
]


def model_weight(explanation: Explanation, site: str, *index: int) -> float:
    return float(explanation.attention[site].weights[index])


def layer_output(translator: Translator, explanation: Explanation, site: str, layer: int) -> np.ndarray:
    """Return the states (query, width) after an attention layer, from the input of the next sublayer."""
    model = translator.model
    if site == "encoder":
        following = model.encoder[layer].around_feed_forward
    else:
        block = model.decoder[layer]
        following = block.around_cross if site == "decoder" else block.around_feed_forward
    inputs, original = [], following.sublayer_input
    following.sublayer_input = lambda states, mask=None: inputs.append(states) or original(states, mask)
    try:
        with torch.inference_mode():
            model(padded_batch([explanation.source.ids], [explanation.target.ids]))
    finally:
        del following.sublayer_input
    return inputs[0][0].numpy()


@pytest.mark.parametrize("name", ["transformer", "post-norm", "projections"])
@pytest.mark.parametrize("cell", CELLS)
def test_every_step_of_a_transformer_follows_from_the_steps_before(name: str, cell: tuple) -> None:
    translator = small_translator(name)
    explanation = explain(translator, SENTENCE, target=TARGET)
    site, layer, head, query, _ = cell
    steps = explanation.steps(*cell)
    np.testing.assert_allclose(
        steps["query embedding"] + steps["query position"], steps["query input"], atol=1e-6
    )
    if layer == 0 and site != "cross":
        np.testing.assert_allclose(steps["query state"], steps["query input"], atol=1e-6)
    product = steps["query"] @ steps["key"]
    assert product == pytest.approx(steps["product"], abs=1e-4)
    assert steps["score"] == pytest.approx(product / np.sqrt(len(steps["query"])), abs=1e-4)
    exponentials = np.where(steps["allowed"] > 0, np.exp(steps["scores"]), 0.0)
    np.testing.assert_allclose(steps["weights"], exponentials / exponentials.sum(), atol=1e-5)
    assert steps["weight"] == pytest.approx(model_weight(explanation, *cell), abs=1e-5)
    np.testing.assert_allclose(steps["weighted value"], steps["weight"] * steps["value"], atol=1e-6)
    width = len(steps["context"])
    np.testing.assert_allclose(steps["heads"][head * width : (head + 1) * width], steps["context"], atol=1e-5)
    np.testing.assert_allclose(steps["added"], steps["query state"] + steps["output"], atol=1e-5)
    last = steps["normed"] if name == "post-norm" else steps["added"]
    np.testing.assert_allclose(last, layer_output(translator, explanation, site, layer)[query], atol=1e-4)
    assert ("mask" in steps) == (site == "decoder")  # only the decoder's mask hides keys
    if site == "decoder":
        all_allowed = np.ones((len(explanation.attention[site].queries), len(steps["weights"])))
        np.testing.assert_array_equal(steps["mask"], np.tril(all_allowed))
        np.testing.assert_array_equal(steps["allowed"], steps["mask"][query])
    else:
        assert steps["allowed"].all()


@pytest.mark.parametrize(
    "settings",
    [{"positions": kind} for kind in POSITIONS] + [{"norm_kind": kind, "norm": "post"} for kind in NORMS],
    ids=lambda settings: " ".join(settings.values()),
)
@pytest.mark.parametrize("cell", CELLS[:3])
def test_steps_support_every_kind_of_positions_and_norms(settings: dict, cell: tuple) -> None:
    model = TransformerSettings(encoder_layers=2, decoder_layers=2, **SMALL, **settings)
    translator = make_translator(model)
    explanation = explain(translator, SENTENCE, target=TARGET)
    site, layer, _, query, _ = cell
    steps = explanation.steps(*cell)
    bias = steps["position bias"] if "position bias" in steps else np.zeros_like(steps["scores"])
    product = steps["query"] @ steps["key"] / np.sqrt(len(steps["query"]))
    assert steps["score"] == pytest.approx(product + bias[cell[-1]], rel=1e-4, abs=1e-3)
    assert steps["weight"] == pytest.approx(model_weight(explanation, *cell), abs=1e-5)
    last = steps["normed"] if settings.get("norm") == "post" else steps["added"]
    expected = layer_output(translator, explanation, site, layer)[query]
    np.testing.assert_allclose(last, expected, atol=1e-4 * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("name", ["transformer", "post-norm", "projections", "decoder-only"])
@pytest.mark.parametrize("cell", CELLS[1:])
def test_the_steps_lead_through_the_feed_forward_network_to_the_written_token(name: str, cell: tuple) -> None:
    translator = small_translator(name)
    explanation = explain(translator, SENTENCE, target=TARGET)
    site, layer, _, query, _ = cell
    steps, model = explanation.steps(*cell), translator.model
    block = (model.blocks if name == "decoder-only" else model.decoder)[layer]
    network = block.feed_forward
    narrow = network.narrow.weight.detach().numpy() @ steps["feed-forward hidden"]
    expected = narrow + network.narrow.bias.detach().numpy()
    np.testing.assert_allclose(steps["feed-forward output"], expected, atol=1e-4)
    assert steps["feed-forward hidden"].min() >= 0  # relu
    # After self-attention, cross-attention comes first; with post-norm, a norm follows.
    if site == "cross" and name != "post-norm":
        after = steps["added"] + steps["feed-forward output"]
        np.testing.assert_allclose(steps["block output"], after, atol=1e-4)
    logits = model.output.weight.detach().numpy() @ steps["final state"]
    assert steps["logit"] == pytest.approx(logits[explanation.target.ids[query]], abs=1e-3)
    assert steps["log sum"] == pytest.approx(
        np.log(np.exp(logits - logits.max()).sum()) + logits.max(), abs=1e-3
    )
    assert steps["log-probability"] == pytest.approx(explanation.log_probs[query], abs=1e-4)


def test_the_steps_of_an_encoder_cell_end_at_the_output_of_its_layer() -> None:
    translator = small_translator("transformer")
    explanation = explain(translator, SENTENCE, target=TARGET)
    steps = explanation.steps("encoder", 0, 1, 3, 2)
    after = steps["added"] + steps["feed-forward output"]
    np.testing.assert_allclose(steps["block output"], after, atol=1e-4)
    next_layer = explanation.steps("encoder", 1, 1, 3, 2)
    np.testing.assert_allclose(steps["block output"], next_layer["query state"], atol=1e-5)
    assert "logit" not in steps


@pytest.mark.parametrize("name", ["bahdanau", "luong", "feeding"])
def test_the_steps_of_a_recurrent_model_lead_to_the_written_token(name: str) -> None:
    explanation = explain(small_translator(name), SENTENCE, target=TARGET)
    steps = explanation.steps("cross", 0, 0, 3, 2)
    np.testing.assert_array_equal(steps["final state"], steps["output"])
    assert steps["log-probability"] == pytest.approx(explanation.log_probs[3], abs=1e-4)


@pytest.mark.parametrize(("kind", "site"), MECHANISM_SITES)
def test_the_steps_of_every_mechanism_give_the_weights_of_the_model(kind: str, site: str) -> None:
    base = TransformerSettings(encoder_layers=1, decoder_layers=2, **SMALL)
    settings = base.model_copy(update={f"{site}_attention": AttentionSettings(kind=kind)})
    explanation = explain(make_translator(settings), SENTENCE, target=TARGET)
    cell = (site, 0 if site == "encoder" else 1, 1, 3, 2)
    steps = explanation.steps(*cell)
    assert steps["weight"] == pytest.approx(model_weight(explanation, *cell), abs=1e-5)
    row = explanation.attention[site].weights[cell[1], cell[2], cell[3]]
    np.testing.assert_allclose(steps["weights"], row, atol=1e-5)


@pytest.mark.parametrize("cell", [("encoder", 1, 0, 3, 1), ("decoder", 1, 1, 3, 2), ("cross", 1, 0, 2, 4)])
def test_the_steps_of_a_decoder_only_model_lead_to_its_weights(cell: tuple) -> None:
    explanation = explain(small_translator("decoder-only"), SENTENCE, target=TARGET)
    steps = explanation.steps(*cell)
    assert steps["weight"] == pytest.approx(model_weight(explanation, *cell), abs=1e-5)
    source_length = len(explanation.source.ids) + 1  # with `</s>`
    target_length = len(explanation.target.ids) + 1  # with `<s>`
    assert len(steps["weights"]) == source_length + target_length
    np.testing.assert_allclose(
        steps["query embedding"] + steps["query position"], steps["query input"], atol=1e-6
    )


@pytest.mark.parametrize("name", ["bahdanau", "luong", "feeding"])
def test_the_steps_of_a_recurrent_model_lead_to_its_output_state(name: str) -> None:
    translator = small_translator(name)
    explanation = explain(translator, SENTENCE, target=TARGET)
    for query, key in [(0, 0), (3, 2), (5, 7)]:
        steps = explanation.steps("cross", 0, 0, query, key)
        assert steps["weight"] == pytest.approx(
            model_weight(explanation, "cross", 0, 0, query, key), abs=1e-5
        )
        if name == "bahdanau":
            hidden = np.tanh(steps["query part"] + steps["key part"])
            np.testing.assert_allclose(steps["hidden"], hidden, atol=1e-6)
            assert steps["score"] == pytest.approx(hidden @ steps["energy"], abs=1e-5)
        exponentials = np.exp(steps["scores"] - steps["scores"].max())
        np.testing.assert_allclose(steps["weights"], exponentials / exponentials.sum(), atol=1e-5)
        with torch.inference_mode():
            states = translator.model(padded_batch([explanation.source.ids], [explanation.target.ids]))
        np.testing.assert_allclose(steps["output"], states[0, query].numpy(), atol=1e-5)


@pytest.mark.parametrize("kind", [name for name, entry in CATALOGUE.items() if entry.supports.cross])
def test_every_mechanism_shows_its_steps_in_a_recurrent_model(kind: str) -> None:
    settings = RecurrentSettings(width=16, embedding=12, attention=AttentionSettings(kind=kind))
    explanation = explain(make_translator(settings), SENTENCE, target=TARGET)
    steps = explanation.steps("cross", 0, 0, 4, 3)
    np.testing.assert_allclose(steps["weights"], explanation.attention["cross"].weights[0, 0, 4], atol=1e-5)


@pytest.mark.parametrize("name", ["transformer", "bahdanau", "decoder-only"])
def test_steps_under_an_edit_have_the_weights_before_and_after_the_edit(name: str) -> None:
    translator = small_translator(name)
    paint = Paint("cross", 0, 0, query=2, key=1, weight=0.9)
    explanation = explain(translator, SENTENCE, target=TARGET, edit=paint)
    steps = explanation.steps("cross", 0, 0, 2, 1)
    assert steps["weight"] == pytest.approx(0.9)
    assert steps["edited weights"][1] == pytest.approx(0.9)
    plain = explain(translator, SENTENCE, target=TARGET).attention["cross"].weights[0, 0, 2, 1]
    assert steps["weights"][1] == pytest.approx(plain, abs=1e-5)
    np.testing.assert_allclose(steps["weighted value"], 0.9 * steps["value"], atol=1e-5)
    for query, head in ((3, 0), (2, 1)):  # neither another row nor another head is edited
        if head < explanation.attention["cross"].weights.shape[1]:
            other = explanation.steps("cross", 0, head, query, 1)
            assert "edited weights" not in [step.name for step in other.steps]


def test_missing_cells_and_steps_are_refused() -> None:
    explanation = explain(small_translator("transformer"), SENTENCE, target=TARGET)
    with pytest.raises(DataError, match=r"shape \(2, 2, "):
        explanation.steps("cross", 2, 0, 0, 0)
    with pytest.raises(DataError, match='Did you mean "weights"'):
        explanation.steps("cross", 0, 0, 0, 0)["wights"]


@pytest.mark.parametrize("name", ["transformer", "post-norm", "decoder-only", "luong"])
def test_the_stored_example_of_a_site_has_a_weight_near_one_half(name: str) -> None:
    """With a weight of almost 1, all other weights would be almost 0, and the steps would show little."""
    explanation = explain(small_translator(name), SENTENCE, target=TARGET)
    for steps in explanation.with_steps().cells:
        site, weights = steps.cell.site, explanation.attention[steps.cell.site].weights
        # Without the special tokens: <s> is the first key of the decoder, </s> the last key elsewhere.
        ordinary = weights[:, :, :-1, 1:] if site == "decoder" else weights[:, :, :-1, :-1]
        is_possible = bool((np.abs(ordinary - 0.5) <= 0.2).any())
        assert (abs(float(steps["weight"]) - 0.5) <= 0.2) == is_possible
        assert (steps.cell.key > 0) if site == "decoder" else (steps.cell.key < weights.shape[3] - 1)
