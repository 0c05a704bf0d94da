"""The fast ways of the recurrent family against their plain twins, gradients included."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from torch import nn

from jumok.models import build_model, recurrent
from jumok.models.recurrent import read_packed
from jumok.models.recurrent_cells import Trace
from jumok.models.recurrent_fast import read_sentences, run_layer
from jumok.recipe import AttentionSettings, RecurrentSettings
from jumok.values import PAD, Batch

SIZES = {torch.float64: 1e-11, torch.float32: 2e-5}  # what may differ, of the largest number
CELLS = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}
LENGTHS = torch.tensor([6, 2, 9, 1])

every_type = pytest.mark.parametrize("dtype", SIZES, ids=str)
every_cell = pytest.mark.parametrize("cell", CELLS)


class Pattern(nn.Module):
    """Drops the same entries at every step, so that both ways drop alike."""

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
    model = build_model(settings, source_pieces=30, target_pieces=30, shared=True).to(dtype)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)  # so that attention and gates are far from even
    for part in (model.encoder, model.decoder):
        part.dropout = Pattern()
    return model


def train_once(model: nn.Module) -> dict[str, torch.Tensor]:
    """What a pass gives at real places, and the gradient of every parameter."""
    batch = make_batch()
    model.zero_grad()
    states = model(batch) * (batch.target[:, 1:] != PAD)[..., None]
    wanted = torch.randn(states.shape, dtype=states.dtype, generator=torch.Generator().manual_seed(5))
    (states * wanted).sum().backward()
    return {"states": states.detach(), **{name: part.grad.clone() for name, part in model.named_parameters()}}


def assert_same(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor], size: float) -> None:
    for name, tensor in expected.items():
        torch.testing.assert_close(
            found[name], tensor, rtol=size, atol=size, msg=lambda m, n=name: f"{n}: {m}"
        )


@every_type
@every_cell
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_a_bahdanau_model_trains_as_its_plain_twin(cell, layers, dtype, monkeypatch):
    model = make_model(
        dtype,
        cell=cell,
        encoder_layers=layers,
        decoder_layers=layers,
        attention=AttentionSettings(kind="bahdanau", units=10, normed=layers == 2),
    )
    fast = train_once(model)
    monkeypatch.setattr(recurrent, "wants_gradients", lambda: False)
    plain = train_once(model)
    assert_same(fast, plain, SIZES[dtype])
    assert all(gradient.abs().max() > 1e-4 for gradient in plain.values())


@every_cell
@pytest.mark.parametrize("kind", ["none", "luong-general", "luong-concat"])
def test_every_other_model_does_too(cell, kind, monkeypatch):
    model = make_model(
        torch.float64,
        cell=cell,
        decoder_layers=2,
        bidirectional=False,
        attention=AttentionSettings(kind=kind),
    )
    fast = train_once(model)
    monkeypatch.setattr(recurrent, "wants_gradients", lambda: False)
    assert_same(fast, train_once(model), 1e-11)


def test_bahdanau_takes_the_fast_way_where_nothing_is_edited(monkeypatch):
    model, batch, taken = make_model(torch.float64), make_batch(), []
    every_step = recurrent.attend_before_steps
    monkeypatch.setattr(
        recurrent, "attend_before_steps", lambda *parts: taken.append(1) or every_step(*parts)
    )
    plain = model(batch)
    assert len(taken) == 1
    halved = model(batch, edit=lambda weights, _: weights / 2)
    model.attention(batch)
    with torch.no_grad():
        model(batch)
    assert len(taken) == 1
    assert not torch.allclose(plain, halved, atol=1e-3)


@every_type
@every_cell
@pytest.mark.parametrize("bidirectional", [True, False])
def test_sentences_are_read_as_packed_ones(cell, bidirectional, dtype):
    torch.manual_seed(3)
    layer = CELLS[cell](5, 4, batch_first=True, bidirectional=bidirectional).to(dtype)
    inputs = torch.randn(4, 9, 5, dtype=dtype, requires_grad=True)
    answers = []
    for read in (read_sentences, read_packed):
        states, last = read(layer, inputs, LENGTHS)
        assert torch.all(states[1, 2:] == 0)
        gradients = torch.autograd.grad(states.sin().sum() + last.cos().sum(), [inputs, *layer.parameters()])
        answers.append([states, last, *gradients])
    for fast, plain in zip(*answers, strict=True):
        torch.testing.assert_close(fast, plain, rtol=SIZES[dtype], atol=SIZES[dtype])


@every_type
@every_cell
def test_a_layer_runs_as_torch_runs_it(cell, dtype):
    torch.manual_seed(3)
    layer = CELLS[cell](5, 4, batch_first=True).to(dtype)
    inputs = torch.randn(3, 6, 5, dtype=dtype, requires_grad=True)
    first = tuple(
        torch.randn(1, 3, 4, dtype=dtype, requires_grad=True) for _ in range(2 if cell == "lstm" else 1)
    )
    answers = []
    for states, last in (
        run_layer(layer, inputs, first),
        layer(inputs, first if cell == "lstm" else first[0]),
    ):
        last = last if isinstance(last, tuple) else (last,)
        loss = states.sin().sum() + sum(part.cos().sum() for part in last)
        answers.append([states, *last, *torch.autograd.grad(loss, [inputs, *first, *layer.parameters()])])
    for fast, plain in zip(*answers, strict=True):
        torch.testing.assert_close(fast, plain, rtol=SIZES[dtype], atol=SIZES[dtype])


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def traces(monkeypatch):
    """Every trace that is made, as long as it lives."""
    made = weakref.WeakSet()
    begin = Trace.__init__
    monkeypatch.setattr(Trace, "__init__", lambda self, *parts: made.add(self) or begin(self, *parts))
    return made


def living_tensors():
    return sum(type(thing) is torch.Tensor for thing in gc.get_objects())


@every_cell
@pytest.mark.parametrize("kind", ["bahdanau", "luong-general"])
@pytest.mark.usefixtures("no_collector")
def test_an_update_leaves_nothing_behind_for_the_collector(cell, kind, traces):
    model = make_model(torch.float64, cell=cell, decoder_layers=2, attention=AttentionSettings(kind=kind))
    train_once(model)  # which leaves every parameter its gradient
    before = living_tensors()
    loss = model(make_batch()).sum()
    assert len(traces) >= 2
    loss.backward()
    assert not traces, "a loss that is kept keeps no traces"
    del loss
    assert living_tensors() == before
    model(make_batch())
    assert not traces, "nor does a pass that is never gone back"
    assert living_tensors() == before


@pytest.mark.usefixtures("no_collector")
def test_a_loss_is_gone_back_once_only():
    loss = make_model(torch.float64)(make_batch()).sum()
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="once only"):
        loss.backward()
