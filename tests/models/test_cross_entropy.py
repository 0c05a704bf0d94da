import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some
from torch import nn

from jumok.models import OutputLayer
from jumok.pages import reuse_pages
from jumok.training import loss as loss_module
from jumok.training.loss import plain_sequence_loss, sequence_loss
from jumok.values import PAD


def example(*, batch=3, target=5, width=4, pieces=9, bias=False, dtype=torch.float64, seed=0):
    random = torch.Generator().manual_seed(seed)
    output = OutputLayer(nn.Parameter(torch.randn(pieces, width, generator=random, dtype=dtype)), bias=bias)
    output = output.to(dtype)
    if bias:
        nn.init.normal_(output.bias, generator=random)
    states = torch.randn(batch, target, width, generator=random, dtype=dtype, requires_grad=True)
    labels = torch.randint(0, pieces, (batch, target), generator=random)
    labels[0, 0] = 1  # at least one that is not PAD
    return states, labels, output


def gradients(loss, states, labels, output, smoothing):
    leaves = [states, *output.parameters()]
    summed = loss(states, labels, output, smoothing=smoothing)
    return summed, torch.autograd.grad(summed.total / summed.tokens, leaves)


@given(
    batch=some.integers(1, 4),
    target=some.integers(1, 6),
    pieces=some.integers(2, 20),
    bias=some.booleans(),
    smoothing=some.sampled_from([0.0, 0.1, 0.5]),
    chunk=some.sampled_from([1, 30, 10**6]),
    seed=some.integers(0, 2**20),
)
def test_fused_is_plain(batch, target, pieces, bias, smoothing, chunk, seed):
    states, labels, output = example(batch=batch, target=target, pieces=pieces, bias=bias, seed=seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loss_module, "SCORES_IN_A_CHUNK", chunk)
        fused, fused_gradients = gradients(sequence_loss, states, labels, output, smoothing)
    plain, plain_gradients = gradients(plain_sequence_loss, states, labels, output, smoothing)
    torch.testing.assert_close(fused.total, plain.total)
    torch.testing.assert_close(fused.nll, plain.nll)
    assert fused.tokens == plain.tokens == int((labels != PAD).sum())
    assert fused.correct.item() == plain.correct.item()
    assert not fused.nll.requires_grad
    for one, other in zip(fused_gradients, plain_gradients, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("bias", [False, True])
def test_gradcheck(bias):
    states, labels, output = example(bias=bias)

    def total(states, weight, *bias):
        layer = OutputLayer(nn.Parameter(weight), bias=bool(bias))
        layer.weight = weight if isinstance(weight, nn.Parameter) else layer.weight
        return loss_module._FusedLoss.apply(
            states.flatten(0, 1), labels.flatten(), weight, bias[0] if bias else None, 0.1
        )[0]

    assert torch.autograd.gradcheck(total, (states, *output.parameters()))


def test_single_precision_and_large_scores():
    """Scores in the thousands overflow exp; the largest is taken away first."""
    states, labels, output = example(dtype=torch.float32, pieces=50, width=16)
    with torch.no_grad():
        output.weight.mul_(300)
    fused, fused_gradients = gradients(sequence_loss, states, labels, output, 0.1)
    plain, plain_gradients = gradients(plain_sequence_loss, states, labels, output, 0.1)
    torch.testing.assert_close(fused.total, plain.total, rtol=1e-5, atol=0)
    for one, other in zip(fused_gradients, plain_gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-3)


def test_uniform_scores_cost_the_log_of_the_pieces():
    states, labels, output = example()
    with torch.no_grad():
        output.weight.zero_()
    summed = sequence_loss(states, labels, output, smoothing=0.3)
    assert summed.total.item() == pytest.approx(summed.tokens * torch.tensor(9.0).log().item())
    assert summed.nll.item() == pytest.approx(summed.total.item())


def test_padding_states_get_no_gradient():
    states, labels, output = example()
    labels[1] = PAD
    _, (of_states, _) = gradients(sequence_loss, states, labels, output, 0.1)
    assert torch.all(of_states[1] == 0)
    assert torch.all(of_states[labels != PAD].abs().sum(-1) > 0)


def test_without_gradients():
    states, labels, output = example()
    expected = sequence_loss(states, labels, output, smoothing=0.1)
    with torch.no_grad():
        quiet = sequence_loss(states, labels, output, smoothing=0.1)
    assert torch.equal(quiet.total, expected.total.detach())
    assert not quiet.total.requires_grad


def test_nothing_but_padding():
    states, labels, output = example()
    summed = sequence_loss(states, torch.zeros_like(labels), output, smoothing=0.1)
    assert summed.tokens == 0
    assert summed.total.item() == 0
    summed.total.backward()
    assert torch.all(states.grad == 0)


def test_pages_are_reused_where_there_is_a_glibc(monkeypatch):
    assert reuse_pages() in (True, False)  # musl and others have no mallopt
    monkeypatch.setattr("sys.platform", "darwin")
    assert reuse_pages() is False


def test_the_weight_of_an_embedding_collects_both_gradients():
    """Tied: what the loss gives and what the embedding gives add up."""
    states, labels, output = example()
    looked_up = nn.functional.embedding(labels, output.weight)
    sequence_loss(states + looked_up, labels, output, smoothing=0.1).total.backward()
    fused, output.weight.grad = output.weight.grad, None
    looked_up = nn.functional.embedding(labels, output.weight)
    plain_sequence_loss(states.detach() + looked_up, labels, output, smoothing=0.1).total.backward()
    torch.testing.assert_close(fused, output.weight.grad)
