"""The fused loss against the plain loss: values, gradients, padding, tied weights and chunks."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from jumok.models.kernels import cross_entropy as kernel
from jumok.models.kernels.cross_entropy import plain_sequence_loss, sequence_loss
from jumok.models.model import OutputLayer
from jumok.types import PAD


def example(*, batch=3, target=5, width=4, vocab_size=9, bias=False, dtype=torch.float64, seed=0):
    random = torch.Generator().manual_seed(seed)
    output = OutputLayer(
        nn.Parameter(torch.randn(vocab_size, width, generator=random, dtype=dtype)), bias=bias
    )
    output = output.to(dtype)
    if bias:
        nn.init.normal_(output.bias, generator=random)
    states = torch.randn(batch, target, width, generator=random, dtype=dtype, requires_grad=True)
    labels = torch.randint(0, vocab_size, (batch, target), generator=random)
    labels[0, 0] = 1  # at least one label that is not PAD, which is 0
    return states, labels, output


def loss_and_gradients(loss, states, labels, output, smoothing):
    leaves = [states, *output.parameters()]
    sums = loss(states, labels, output, smoothing=smoothing)
    return sums, torch.autograd.grad(sums.total / sums.tokens, leaves)


@given(
    batch=st.integers(1, 4),
    target=st.integers(1, 6),
    vocab_size=st.integers(2, 20),
    bias=st.booleans(),
    smoothing=st.sampled_from([0.0, 0.1, 0.5]),
    chunk=st.sampled_from([1, 30, 10**6]),  # scores per chunk: one token, a few tokens, all tokens
    seed=st.integers(0, 2**20),
)
def test_the_fused_loss_equals_the_plain_loss(batch, target, vocab_size, bias, smoothing, chunk, seed):
    states, labels, output = example(batch=batch, target=target, vocab_size=vocab_size, bias=bias, seed=seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "CHUNK_SCORES", chunk)
        fused, fused_gradients = loss_and_gradients(sequence_loss, states, labels, output, smoothing)
    plain, plain_gradients = loss_and_gradients(plain_sequence_loss, states, labels, output, smoothing)
    torch.testing.assert_close(fused.total, plain.total)
    torch.testing.assert_close(fused.nll, plain.nll)
    assert fused.tokens == plain.tokens == int((labels != PAD).sum())
    assert fused.correct.item() == plain.correct.item()
    assert not fused.nll.requires_grad
    for actual, expected in zip(fused_gradients, plain_gradients, strict=True):
        torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("bias", [False, True])
def test_gradients_equal_finite_differences(bias):
    states, labels, output = example(bias=bias)

    def total(states, weight, *bias):
        return kernel._FusedLoss.apply(
            states.flatten(0, 1), labels.flatten(), weight, bias[0] if bias else None, 0.1, weight.dtype
        )[0]

    assert torch.autograd.gradcheck(total, (states, *output.parameters()))


def test_large_scores_do_not_overflow_in_single_precision():
    """exp would overflow for scores in the thousands, so the largest score is subtracted first."""
    states, labels, output = example(dtype=torch.float32, vocab_size=50, width=16)
    with torch.no_grad():
        output.weight.mul_(300)
    fused, fused_gradients = loss_and_gradients(sequence_loss, states, labels, output, 0.1)
    plain, plain_gradients = loss_and_gradients(plain_sequence_loss, states, labels, output, 0.1)
    torch.testing.assert_close(fused.total, plain.total, rtol=1e-5, atol=0)
    for actual, expected in zip(fused_gradients, plain_gradients, strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-3)


def test_the_loss_of_uniform_scores_is_the_log_of_the_vocabulary_size():
    states, labels, output = example()
    with torch.no_grad():
        output.weight.zero_()
    sums = sequence_loss(states, labels, output, smoothing=0.3)
    assert sums.total.item() == pytest.approx(sums.tokens * math.log(len(output.weight)))
    assert sums.nll.item() == pytest.approx(sums.total.item())


def test_padding_states_get_no_gradient():
    states, labels, output = example()
    labels[1] = PAD
    _, (grad_states, _) = loss_and_gradients(sequence_loss, states, labels, output, 0.1)
    assert torch.all(grad_states[1] == 0)
    assert torch.all(grad_states[labels != PAD].abs().sum(-1) > 0)


def test_the_loss_is_the_same_without_gradients():
    states, labels, output = example()
    expected = sequence_loss(states, labels, output, smoothing=0.1)
    with torch.no_grad():
        actual = sequence_loss(states, labels, output, smoothing=0.1)
    assert torch.equal(actual.total, expected.total.detach())
    assert not actual.total.requires_grad


def test_the_loss_of_padding_alone_is_zero():
    states, labels, output = example()
    sums = sequence_loss(states, torch.full_like(labels, PAD), output, smoothing=0.1)
    assert sums.tokens == 0
    assert sums.total.item() == 0
    sums.total.backward()
    assert torch.all(states.grad == 0)


def test_a_weight_that_is_also_the_embedding_gets_the_sum_of_both_gradients():
    """A tied weight is used twice: to embed tokens and to compute the scores."""
    states, labels, output = example()
    embedded = nn.functional.embedding(labels, output.weight)
    sequence_loss(states + embedded, labels, output, smoothing=0.1).total.backward()
    fused_gradient, output.weight.grad = output.weight.grad, None
    embedded = nn.functional.embedding(labels, output.weight)
    plain_sequence_loss(states.detach() + embedded, labels, output, smoothing=0.1).total.backward()
    torch.testing.assert_close(fused_gradient, output.weight.grad)


def test_other_devices_compute_the_same_loss_in_larger_chunks(monkeypatch):
    states, labels, output = example()
    monkeypatch.setattr(kernel, "CHUNK_SCORES", 2 * len(output.weight))  # two tokens per chunk
    chunk_sizes = []
    multiply = kernel._multiply
    monkeypatch.setattr(
        kernel,
        "_multiply",
        lambda left, right, out: chunk_sizes.append(len(left)) or multiply(left, right, out),
    )
    expected = sequence_loss(states, labels, output, smoothing=0.1)
    assert max(chunk_sizes) == 2
    monkeypatch.setattr(kernel, "on_cpu", lambda tensor: False)
    chunk_sizes.clear()
    received = sequence_loss(states, labels, output, smoothing=0.1)
    assert set(chunk_sizes) == {expected.tokens}  # all tokens in one chunk
    torch.testing.assert_close(received.total, expected.total)
    assert received.tokens == expected.tokens
