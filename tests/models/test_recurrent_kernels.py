"""The recurrent kernels compute the same results and gradients as their plain twins.

A plain twin is the same computation with torch's operations. Gradients are also compared with finite
differences.
"""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from torch import nn

from jumok.attention import Additive
from jumok.config.recipe import AttentionSettings, RecurrentSettings
from jumok.models import kernels, recurrent
from jumok.models.build import build_model
from jumok.models.kernels.bahdanau import run_decoder
from jumok.models.kernels.recurrent import (
    encode_layer,
    fast_encode_layer,
    fast_run_layer,
    plain_encode_layer,
    plain_run_layer,
    run_layer,
)
from jumok.models.kernels.recurrent_cells import CellActivations
from jumok.types import PAD, Batch

# A kernel and its twin add up in different orders, so they differ by rounding: on one CPU by up to 222 units
# in the last place of a tensor's largest number. A wrong formula differs in the leading digits.
MAX_UNITS_IN_LAST_PLACE = 2048
CELLS = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}
LENGTHS = torch.tensor([6, 2, 9, 1])

every_type = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
every_cell = pytest.mark.parametrize("cell", CELLS)


class FixedDropout(nn.Module):
    """Multiplies entries by 0, 1, 2, 0, 1, 2, … in every call, so that the kernel and its twin agree."""

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        return states * (torch.arange(states.shape[-1]) % 3).to(states.dtype)


def make_batch() -> Batch:
    random = torch.Generator().manual_seed(6)
    source = torch.randint(4, 30, (4, 9), generator=random)
    target = torch.randint(4, 30, (4, 7), generator=random)
    target_lengths = torch.tensor([7, 5, 3, 4])
    source[torch.arange(9) >= LENGTHS[:, None]] = PAD
    target[torch.arange(7) >= target_lengths[:, None]] = PAD
    return Batch(source, LENGTHS, target, target_lengths)


def make_model(dtype: torch.dtype, **changes: object) -> nn.Module:
    torch.manual_seed(2)
    settings = RecurrentSettings(width=16, embedding=12, dropout=0.0).model_copy(update=changes)
    model = build_model(settings, source_vocab_size=30, target_vocab_size=30, shared=True).to(dtype)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)  # so that attention and gates are far from uniform
    for part in (model.encoder, model.decoder):
        part.dropout = FixedDropout()
    return model


def train_once(model: nn.Module) -> dict[str, torch.Tensor]:
    """Return the states of one pass, 0 at padding, and the gradient of every parameter by name."""
    batch = make_batch()
    model.zero_grad()
    states = model(batch) * (batch.target[:, 1:] != PAD)[..., None]
    weights = torch.randn(states.shape, dtype=states.dtype, generator=torch.Generator().manual_seed(5))
    (states * weights).sum().backward()
    gradients = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    return {"states": states.detach(), **gradients}


def use_plain_twins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the plain twins, as on another device."""
    for module in (kernels.recurrent, recurrent):
        monkeypatch.setattr(module, "runs_fast_kernels", lambda tensor: False)


def assert_close(actual: torch.Tensor, expected: torch.Tensor, name: str = "") -> None:
    scale = float(expected.detach().abs().max())
    tolerance = MAX_UNITS_IN_LAST_PLACE * torch.finfo(expected.dtype).eps * max(scale, 1e-3)
    torch.testing.assert_close(
        actual, expected, rtol=0, atol=tolerance, msg=lambda message: f"{name}: {message}"
    )


def assert_all_close(actual: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    for name, tensor in expected.items():
        assert_close(actual[name], tensor, name)


@every_type
@every_cell
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_a_bahdanau_model_trains_like_its_plain_twin(cell, layers, dtype, monkeypatch):
    model = make_model(
        dtype,
        cell=cell,
        encoder_layers=layers,
        decoder_layers=layers,
        attention=AttentionSettings(kind="bahdanau", units=10, normed=layers == 2),
        encoder_width=14 if layers == 3 else None,
    )
    fast = train_once(model)
    use_plain_twins(monkeypatch)
    plain = train_once(model)
    assert_all_close(fast, plain)
    assert all(gradient.abs().max() > 1e-4 for gradient in plain.values())


@every_cell
@pytest.mark.parametrize("kind", ["none", "luong-general", "luong-concat"])
def test_other_recurrent_models_train_like_their_plain_twins(cell, kind, monkeypatch):
    model = make_model(
        torch.float64,
        cell=cell,
        decoder_layers=2,
        bidirectional=False,
        attention=AttentionSettings(kind=kind),
    )
    fast = train_once(model)
    use_plain_twins(monkeypatch)
    assert_all_close(fast, train_once(model))


class SharperAdditive(Additive):
    """A third-party mechanism with a formula that the kernel does not implement."""

    def scores(self, query: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
        return 5 * super().scores(query, keys)


def test_a_subclass_of_additive_attention_trains_with_its_own_formula(monkeypatch):
    model = make_model(torch.float64)
    bahdanau = train_once(model)
    model.decoder.attention.mechanism.__class__ = SharperAdditive
    sharper = train_once(model)
    assert (sharper["states"] - bahdanau["states"]).abs().max() > 0.01
    use_plain_twins(monkeypatch)
    assert_all_close(sharper, train_once(model))


def test_a_wrong_gradient_exceeds_the_tolerance(monkeypatch):
    """The tolerance for float32 still notices a gradient that is off by a thousandth."""
    model = make_model(torch.float32, cell="rnn", encoder_layers=3, decoder_layers=3)
    expected = train_once(model)
    gradients = kernels.bahdanau._AttentionBackward.gradients

    def wrong_gradients(self):
        exact = gradients(self)
        return exact._replace(score_vector=exact.score_vector * 1.001)

    monkeypatch.setattr(kernels.bahdanau._AttentionBackward, "gradients", wrong_gradients)
    actual = train_once(model)
    # The model calls the parameter that is the score vector `energy`.
    with pytest.raises(AssertionError, match="energy"):
        assert_all_close(actual, expected)


@pytest.mark.parametrize("kind", ["bahdanau", "luong-concat"])
def test_kernels_run_only_on_the_cpu_and_with_gradients(kind, monkeypatch):
    """The kernel of the decoder also does not run in a pass that edits or collects attention weights."""
    model = make_model(torch.float64, attention=AttentionSettings(kind=kind), order="before")
    batch, calls = make_batch(), []
    for module, name in ((recurrent, "run_decoder"), (kernels.recurrent, "fast_encode_layer")):
        kernel = getattr(module, name)
        monkeypatch.setattr(
            module, name, lambda *inputs, name=name, kernel=kernel: calls.append(name) or kernel(*inputs)
        )
    without_edit = model(batch)
    assert calls == ["fast_encode_layer", "run_decoder"]
    calls.clear()
    with_halved_weights = model(batch, edit=lambda weights, _: weights / 2)
    model.attention(batch)
    assert calls == ["fast_encode_layer"] * 2
    calls.clear()
    with torch.no_grad():
        model(batch)
    use_plain_twins(monkeypatch)
    model(batch)
    assert calls == []
    assert not torch.allclose(without_edit, with_halved_weights, atol=1e-3)


@every_type
@every_cell
@pytest.mark.parametrize("bidirectional", [True, False])
def test_sentences_are_encoded_like_packed_sequences(cell, bidirectional, dtype):
    torch.manual_seed(3)
    layer = CELLS[cell](5, 4, batch_first=True, bidirectional=bidirectional).to(dtype)
    inputs = torch.randn(4, 9, 5, dtype=dtype, requires_grad=True)
    results = []
    for encode in (fast_encode_layer, plain_encode_layer):
        states, last = encode(layer, inputs, LENGTHS)
        assert torch.all(states[1, 2:] == 0)
        gradients = torch.autograd.grad(states.sin().sum() + last.cos().sum(), [inputs, *layer.parameters()])
        results.append([states, last, *gradients])
    for fast, plain in zip(*results, strict=True):
        assert_close(fast, plain)


@every_type
@every_cell
def test_a_layer_equals_the_layer_of_torch(cell, dtype):
    torch.manual_seed(3)
    layer = CELLS[cell](5, 4, batch_first=True).to(dtype)
    inputs = torch.randn(3, 6, 5, dtype=dtype, requires_grad=True)
    initial = tuple(part.requires_grad_() for part in random_state(cell, dtype))
    results = []
    for run in (fast_run_layer, plain_run_layer):
        states, last = run(layer, inputs, initial)
        loss = states.sin().sum() + sum(part.cos().sum() for part in last)
        results.append([states, *last, *torch.autograd.grad(loss, [inputs, *initial, *layer.parameters()])])
    for fast, plain in zip(*results, strict=True):
        assert_close(fast, plain)


def random_state(cell: str, dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, ...]:
    return tuple(torch.randn(1, 3, 4, dtype=dtype) for _ in range(2 if cell == "lstm" else 1))


@pytest.fixture
def several_backward_passes(monkeypatch):
    """Keep the activations after a backward pass, because gradcheck calls backward repeatedly."""
    for module in (kernels.recurrent, kernels.bahdanau):
        monkeypatch.setattr(module, "pop_saved", getattr)


@every_cell
@pytest.mark.usefixtures("several_backward_passes")
def test_gradients_of_a_layer_equal_finite_differences(cell):
    torch.manual_seed(3)
    layer = CELLS[cell](2, 4, batch_first=True).double()
    inputs = torch.randn(3, 4, 2, dtype=torch.float64, requires_grad=True)
    initial = tuple(part.requires_grad_() for part in random_state(cell))

    def run(inputs, *rest):
        states, last = run_layer(layer, inputs, rest[: len(initial)])
        return states, *last

    assert torch.autograd.gradcheck(run, (inputs, *initial, *layer.parameters()))


@every_cell
@pytest.mark.usefixtures("several_backward_passes")
def test_gradients_of_an_encoder_layer_equal_finite_differences(cell):
    torch.manual_seed(3)
    layer = CELLS[cell](2, 3, batch_first=True, bidirectional=True).double()
    inputs = torch.randn(3, 4, 2, dtype=torch.float64, requires_grad=True)

    def run(inputs, *_):
        return encode_layer(layer, inputs, torch.tensor([4, 1, 3]))

    assert torch.autograd.gradcheck(run, (inputs, *layer.parameters()))


@pytest.mark.parametrize(
    "cell", ["lstm", *(pytest.param(cell, marks=pytest.mark.slow) for cell in ("rnn", "gru"))]
)
@pytest.mark.usefixtures("several_backward_passes")
def test_gradients_of_the_bahdanau_decoder_equal_finite_differences(cell):
    settings = {"width": 4, "embedding": 2, "attention": AttentionSettings(kind="bahdanau", units=3)}
    decoder = make_model(torch.float64, cell=cell, decoder_layers=2, **settings).decoder
    tokens = torch.randn(3, 3, 2, dtype=torch.float64, requires_grad=True)
    encoded = torch.randn(3, 4, 4, dtype=torch.float64, requires_grad=True)
    allowed = torch.tensor([[True, True, True, True], [True, False, False, False], [True, True, True, False]])
    initial = tuple(part.requires_grad_() for _ in range(2) for part in random_state(cell))
    parts = len(initial) // 2  # tensors of the state of one layer; there are two layers

    def run(tokens, encoded, *rest):
        states = (rest[:parts], rest[parts : 2 * parts])
        memory = decoder.attention.prepare(encoded, encoded, allowed)
        mechanism = decoder.attention.mechanism
        top, contexts, last = run_decoder(
            list(decoder.layers), mechanism, tokens, states, memory, decoder.dropout
        )
        return top, contexts, *(part for state in last for part in state)

    parameters = [*decoder.layers.parameters(), *decoder.attention.parameters()]
    assert torch.autograd.gradcheck(run, (tokens, encoded, *initial, *parameters))


@pytest.fixture
def no_garbage_collection():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def activations(monkeypatch):
    """The set of all activations in memory."""
    alive = weakref.WeakSet()
    initialise = CellActivations.__init__
    monkeypatch.setattr(
        CellActivations, "__init__", lambda self, *arguments: alive.add(self) or initialise(self, *arguments)
    )
    return alive


def count_tensors():
    return sum(type(thing) is torch.Tensor for thing in gc.get_objects())


@pytest.mark.parametrize(
    ("cell", "kind"), [("gru", "bahdanau"), ("lstm", "bahdanau"), ("lstm", "luong-general")]
)
@pytest.mark.usefixtures("no_garbage_collection")
def test_an_update_leaves_no_reference_cycles(cell, kind, activations):
    model = make_model(torch.float64, cell=cell, decoder_layers=2, attention=AttentionSettings(kind=kind))
    train_once(model)  # so that every parameter has a gradient
    before = count_tensors()
    loss = model(make_batch()).sum()
    assert len(activations) >= 2
    loss.backward()
    assert not activations, "backward did not free the activations while the loss still existed"
    del loss
    assert count_tensors() == before
    model(make_batch())
    assert not activations, "a forward pass without backward left activations in memory"
    assert count_tensors() == before


@pytest.mark.usefixtures("no_garbage_collection")
def test_backward_can_run_only_once():
    loss = make_model(torch.float64)(make_batch()).sum()
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="only once"):
        loss.backward()
