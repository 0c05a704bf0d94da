"""The attention contract of docs/design.md, one function per promise, for any attention.

A check takes a `Subject` (how to make the attention, and in which precision) and a `Case` (sizes, masks and
random states). It raises AssertionError if the promise is broken. The two paths of an attention are its
computations with and without requested weights.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from jumok.attention import (
    Attention,
    HeadShape,
    Mechanism,
    Memory,
    MultiHead,
    causal_mask,
    group_rows,
    padding_mask,
)
from jumok.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable

WIDTH = 8


@dataclass(frozen=True)
class Subject:
    """An attention that is checked: the function that makes it, and its precision."""

    make: Callable[..., Attention]  # make(heads=, causal=, dropout=)
    dtype: torch.dtype

    @classmethod
    def of(cls, kind: type[Mechanism], dtype: torch.dtype = torch.float64, **options: object) -> Subject:
        """Return the subject for multi-head attention with this mechanism."""

        def make(*, heads: int, causal: bool, dropout: nn.Module | None) -> Attention:
            shape = HeadShape(heads, WIDTH // heads, WIDTH // heads)
            mechanism = kind(shape, causal=causal, dropout=dropout, **options)
            return MultiHead(width=WIDTH, heads=heads, mechanism=mechanism)

        return cls(make, dtype)

    def attention(self, case: Case, *, causal: bool = False, dropout: nn.Module | None = None) -> Attention:
        torch.manual_seed(case.seed)
        return self.make(heads=case.heads, causal=causal, dropout=dropout).to(self.dtype).eval()

    def supports(self, *needs: str) -> bool:
        return not self.make(heads=1, causal=False, dropout=None).supports.missing(*needs)

    @property
    def tolerance(self) -> dict[str, float]:
        return {"atol": 5e-6, "rtol": 0.0} if self.dtype == torch.float32 else {"atol": 1e-12, "rtol": 0.0}


@dataclass(frozen=True)
class Case:
    """Sizes of a call. `batch`, `heads`, `queries` and `keys` are numbers."""

    batch: int
    heads: int
    queries: int
    keys: int
    density: float  # share of the (query, key) pairs that the random mask allows
    seed: int

    def inputs(self, subject: Subject) -> tuple[Tensor, Tensor, Tensor]:
        """Return random query states, key states and a mask (batch, 1, query, key)."""
        generator = torch.Generator().manual_seed(self.seed)
        query = torch.randn(self.batch, self.queries, WIDTH, generator=generator).to(subject.dtype)
        keys = torch.randn(self.batch, self.keys, WIDTH, generator=generator).to(subject.dtype)
        allowed = torch.rand(self.batch, 1, self.queries, self.keys, generator=generator) < self.density
        return query, keys, allowed

    def lengths(self) -> Tensor:
        """Return random numbers of keys per sentence, for a padding mask."""
        return torch.randint(
            0, self.keys + 1, (self.batch,), generator=torch.Generator().manual_seed(self.seed)
        )


# The cases have one key or many, more keys than queries or fewer, and allow all, some or none of the keys.
CASES = [
    Case(batch=1, heads=1, queries=1, keys=1, density=1.0, seed=0),
    Case(batch=2, heads=2, queries=3, keys=5, density=0.6, seed=1),
    Case(batch=3, heads=4, queries=5, keys=3, density=0.3, seed=2),
    Case(batch=2, heads=2, queries=2, keys=16, density=0.0, seed=3),
    Case(batch=3, heads=2, queries=4, keys=19, density=0.7, seed=4),
    Case(batch=2, heads=4, queries=1, keys=6, density=1.0, seed=5),
]


def prepare_masked(
    subject: Subject, attention: Attention, keys: Tensor, allowed: Tensor
) -> tuple[Memory, dict[str, Tensor], Tensor]:
    """Return a memory, the arguments with the mask for a call, and a mask of the allowed (query, key) pairs.

    If the mechanism does not support a mask in the call, the memory gets a padding mask for all queries
    instead. The third value is the mask that then applies: (batch, 1, query, key).
    """
    if subject.supports("mask"):
        return attention.prepare(keys, keys), {"allowed": allowed}, allowed
    shared = allowed.any(dim=2)  # (batch, 1, key)
    return attention.prepare(keys, keys, shared[:, 0]), {}, shared[:, :, None].expand_as(allowed)


def assert_refused(call: Callable[[], object], *, alternative: str) -> None:
    """Assert that the call raises an error that names an alternative."""
    message = "nothing"
    try:
        call()
    except UnsupportedError as error:
        message = str(error)
    assert alternative in message


def shapes(subject: Subject, case: Case) -> None:
    """Contexts have the shape (batch, query, width). Weights have the shape (batch, head, query, key).

    Weights that are not requested are None.
    """
    attention = subject.attention(case)
    query, keys, _ = case.inputs(subject)
    memory = attention.prepare(keys, keys)
    attended = attention(query, memory, need_weights=True)
    assert attended.context.shape == (case.batch, case.queries, WIDTH)
    assert attended.weights.shape == (case.batch, case.heads, case.queries, case.keys)
    assert attended.context.dtype == attended.weights.dtype == subject.dtype
    assert attention(query, memory).weights is None


def masked_keys_have_weight_zero(subject: Subject, case: Case) -> None:
    """A key that is not allowed has weight exactly 0, and its contents do not reach the context."""
    attention = subject.attention(case)
    query, keys, allowed = case.inputs(subject)
    memory, mask, allowed_together = prepare_masked(subject, attention, keys, allowed)
    attended = attention(query, memory, **mask, need_weights=True)
    assert torch.all(attended.weights.masked_select(~allowed_together.expand_as(attended.weights)) == 0)
    unseen = ~allowed.any(dim=2)[:, 0]  # (batch, key): keys that no query may attend to
    changed_keys = torch.where(unseen[..., None], keys + 100, keys)
    for need_weights in (False, True):
        memory, mask, _ = prepare_masked(subject, attention, changed_keys, allowed)
        changed = attention(query, memory, **mask, need_weights=need_weights)
        torch.testing.assert_close(changed.context, attended.context, **subject.tolerance)


def masks_compose(subject: Subject, case: Case) -> None:
    """Padding, causality and the mask of the call together act like one mask, their AND."""
    if not subject.supports("mask"):
        return
    query, keys, allowed = case.inputs(subject)
    allowed_keys = padding_mask(case.lengths(), case.keys)
    query_offset = max(0, case.keys - case.queries)
    for causal in {False, subject.supports("causal")}:
        attention = subject.attention(case, causal=causal)
        separate = attention(
            query, attention.prepare(keys, keys, allowed_keys), allowed=allowed, query_offset=query_offset
        )
        combined = allowed & allowed_keys[:, None, None]
        if causal:
            combined = combined & causal_mask(case.queries, case.keys, query_offset=query_offset)
        plain = subject.attention(case)
        at_once = plain(
            query, plain.prepare(keys, keys, allowed_keys), allowed=combined, query_offset=query_offset
        )
        torch.testing.assert_close(separate.context, at_once.context, **subject.tolerance)


def masks_broadcast(subject: Subject, case: Case) -> None:
    """A mask may lack the first axes of (batch, head, query, key), and any axis may have size 1."""
    if not subject.supports("mask"):
        return
    attention = subject.attention(case)
    query, keys, allowed = case.inputs(subject)
    memory = attention.prepare(keys, keys)
    for mask in (allowed[0, 0, 0], allowed[0, 0], allowed[:, :, :, :1], allowed[:, :, :1], allowed[:1]):
        full = mask.expand(case.batch, case.heads, case.queries, case.keys)
        short, long = attention(query, memory, allowed=mask), attention(query, memory, allowed=full)
        torch.testing.assert_close(short.context, long.context, **subject.tolerance)


def masks_are_bool(subject: Subject, case: Case) -> None:
    """A mask of numbers is refused, because only one of the two paths would add the numbers to the scores."""
    if not subject.supports("mask"):
        return
    attention = subject.attention(case)
    query, keys, allowed = case.inputs(subject)
    memory = attention.prepare(keys, keys)
    for need_weights in (False, True):
        call = {"allowed": allowed.to(subject.dtype), "need_weights": need_weights}
        assert_refused(lambda call=call: attention(query, memory, **call), alternative="bias")


def padding_is_bool(subject: Subject, case: Case) -> None:
    """Every mechanism refuses a padding mask of numbers."""
    attention = subject.attention(case)
    _, keys, _ = case.inputs(subject)
    allowed_keys = padding_mask(case.lengths(), case.keys)
    for dtype in (subject.dtype, torch.int64):
        numbers = allowed_keys.to(dtype)
        assert_refused(lambda numbers=numbers: attention.prepare(keys, keys, numbers), alternative="bias")


def padding_on_the_left(subject: Subject, case: Case) -> None:
    """If a mechanism supports left padding, padding before the keys does not change the context."""
    if not subject.supports("left_padding"):
        return
    query, keys, _ = case.inputs(subject)
    keys_and_padding = torch.cat([keys + 3, keys], dim=1)  # as many positions of padding as there are keys
    allowed_keys = torch.arange(2 * case.keys).expand(case.batch, -1) >= case.keys
    for causal in {False, subject.supports("causal")}:
        attention = subject.attention(case, causal=causal)
        plain = attention(query, attention.prepare(keys, keys))
        memory = attention.prepare(keys_and_padding, keys_and_padding, allowed_keys)
        for need_weights in (False, True):
            padded = attention(query, memory, query_offset=case.keys, need_weights=need_weights)
            torch.testing.assert_close(padded.context, plain.context, **subject.tolerance)


def sizes_of_zero(subject: Subject, case: Case) -> None:
    """0 sentences, queries or keys are valid. Without keys, the context is 0."""
    for axis in ("batch", "queries", "keys"):
        empty = replace(case, **{axis: 0})
        query, keys, _ = empty.inputs(subject)
        for causal in {False, subject.supports("causal")}:
            attention = subject.attention(empty, causal=causal)
            for allowed_keys in (None, torch.ones(empty.batch, empty.keys, dtype=torch.bool)):
                memory = attention.prepare(keys, keys, allowed_keys)
                for need_weights in (False, True):
                    attended = attention(query, memory, need_weights=need_weights)
                    assert attended.context.shape == (empty.batch, empty.queries, WIDTH)
                    assert axis != "keys" or torch.all(attended.context == 0)
                assert attended.weights.shape == (empty.batch, empty.heads, empty.queries, empty.keys)


def empty_rows(subject: Subject, case: Case) -> None:
    """A query without an allowed key has weight 0, context 0, gradient 0, never NaN, on either path."""
    attention = subject.attention(case)
    query, keys, allowed = case.inputs(subject)
    # An index into (batch, query): the first query of every sentence, or the whole first sentence.
    masked_queries = (slice(None), 0) if subject.supports("mask") else (0,)
    allowed.transpose(1, 2)[masked_queries] = False
    for need_weights in (False, True):
        query = query.detach().requires_grad_()
        keys = keys.detach().requires_grad_()
        memory, mask, _ = prepare_masked(subject, attention, keys, allowed)
        attended = attention(query, memory, **mask, need_weights=need_weights)
        assert torch.all(attended.context[masked_queries] == 0)
        if need_weights:
            assert torch.all(attended.weights.transpose(1, 2)[masked_queries] == 0)
        attended.context.square().sum().backward()
        for leaf in (query, keys, *attention.parameters()):
            assert leaf.grad is None or torch.isfinite(leaf.grad).all()
        assert torch.all(query.grad[masked_queries] == 0)
        memory, mask, _ = prepare_masked(subject, attention, keys, allowed)
        masked_context = attention(query, memory, **mask).context[masked_queries]
        (gradient,) = torch.autograd.grad(masked_context.sum(), keys)
        assert torch.all(gradient == 0)
        attention.zero_grad()


def requesting_weights_changes_nothing(subject: Subject, case: Case) -> None:
    """In eval mode, the context is the same with and without requested weights."""
    query, keys, allowed = case.inputs(subject)
    for causal in {False, subject.supports("causal")}:
        attention = subject.attention(case, causal=causal)
        memory = attention.prepare(keys, keys, padding_mask(case.lengths(), case.keys))
        mask = {"allowed": allowed} if subject.supports("mask") else {}
        with_weights = attention(query, memory, **mask, query_offset=1, need_weights=True)
        without = attention(query, memory, **mask, query_offset=1)
        torch.testing.assert_close(with_weights.context, without.context, **subject.tolerance)
        with_weights, without = attention.attend_self(keys, need_weights=True), attention.attend_self(keys)
        torch.testing.assert_close(with_weights.context, without.context, **subject.tolerance)


def gradients_agree(subject: Subject, case: Case) -> None:
    """Both paths have the same gradient."""
    attention = subject.attention(case)
    query, keys, allowed = case.inputs(subject)
    gradients = []
    for need_weights in (False, True):
        leaves = [query.clone().requires_grad_(), keys.clone().requires_grad_()]
        memory, mask, _ = prepare_masked(subject, attention, leaves[1], allowed)
        attended = attention(leaves[0], memory, **mask, need_weights=need_weights)
        attended.context.pow(2).sum().backward()
        gradients.append([leaf.grad for leaf in leaves])
    tolerance = 1e-4 if subject.dtype == torch.float32 else 1e-10
    for without_weights, with_weights in zip(*gradients, strict=True):
        torch.testing.assert_close(without_weights, with_weights, atol=tolerance, rtol=tolerance)


def attend_self_is_prepare_and_call(subject: Subject, case: Case) -> None:
    """`attend_self` gives the same result as `prepare` and a call with the same states."""
    _, keys, _ = case.inputs(subject)
    allowed_keys = padding_mask(case.lengths(), case.keys)
    for causal in {False, subject.supports("causal")}:
        attention = subject.attention(case, causal=causal)
        short = attention.attend_self(keys, allowed_keys=allowed_keys, need_weights=True)
        long = attention(keys, attention.prepare(keys, keys, allowed_keys), need_weights=True)
        torch.testing.assert_close(short.context, long.context, **subject.tolerance)
        torch.testing.assert_close(short.weights, long.weights, **subject.tolerance)


def steps_equal_the_full_pass(subject: Subject, case: Case) -> None:
    """A causal pass over the last positions, and cached steps, equal a pass over the whole sentence."""
    if not subject.supports("causal", "incremental"):
        return
    attention = subject.attention(case, causal=True)
    _, keys, _ = case.inputs(subject)
    full = attention.attend_self(keys, need_weights=True)
    half = case.keys // 2
    rest = attention(keys[:, half:], attention.prepare(keys, keys), query_offset=half)
    torch.testing.assert_close(rest.context, full.context[:, half:], **subject.tolerance)
    with torch.no_grad():
        memory = attention.prepare(keys[:, :0], keys[:, :0])
        for position in range(case.keys):
            state = keys[:, position : position + 1]
            memory = attention.extend(memory, state, state)
            for need_weights in (False, True):
                step = attention(state, memory, query_offset=position, need_weights=need_weights)
                torch.testing.assert_close(
                    step.context[:, 0], full.context[:, position].detach(), **subject.tolerance
                )
            torch.testing.assert_close(
                step.weights[:, :, 0], full.weights[:, :, position, : position + 1], **subject.tolerance
            )


def module_attributes(attention: Attention) -> list[dict[str, tuple[int, int]]]:
    """Return the name, identity and length of every attribute of each module."""
    return [
        {
            name: (id(value), len(value) if hasattr(value, "__len__") else 0)
            for name, value in vars(module).items()
        }
        for module in attention.modules()
    ]


def nothing_is_stored(subject: Subject, case: Case) -> None:
    """A call does not change the module. Otherwise two decodings could not be interleaved."""
    attention = subject.attention(case, causal=subject.supports("causal"))
    query, keys, allowed = case.inputs(subject)
    before = module_attributes(attention)
    state_before = copy.deepcopy(attention.state_dict())
    memory, mask, _ = prepare_masked(subject, attention, keys, allowed)
    first = attention(query, memory, **mask, query_offset=2, need_weights=True)
    other = attention.prepare(keys + 1, keys - 1)
    if subject.supports("incremental"):
        other = attention.extend(other, keys, keys)
    attention(query * 2, other, query_offset=3)
    again = attention(query, memory, **mask, query_offset=2, need_weights=True)
    assert torch.equal(first.context, again.context)
    assert before == module_attributes(attention)
    assert all(torch.equal(state_before[name], value) for name, value in attention.state_dict().items())


def edits(subject: Subject, case: Case) -> None:
    """An edit gets the weights and the query offset. The edited weights are used and reported."""
    attention = subject.attention(case)
    if not subject.supports("edit"):
        return
    query, keys, allowed = case.inputs(subject)
    memory, mask, _ = prepare_masked(subject, attention, keys, allowed)
    offsets: list[int] = []

    def identity(weights: Tensor, query_offset: int) -> Tensor:
        offsets.append(query_offset)
        return weights

    plain = attention(query, memory, **mask, query_offset=5, need_weights=True)
    edited = attention(query, memory, **mask, query_offset=5, edit=identity)
    assert offsets == [5]
    torch.testing.assert_close(edited.context, plain.context, **subject.tolerance)
    for need_weights in (False, True):
        silenced = attention(query, memory, edit=lambda weights, _: weights * 0, need_weights=need_weights)
        assert torch.all(silenced.context == 0)
    assert torch.all(silenced.weights == 0)


def weights_before_dropout(subject: Subject, case: Case) -> None:
    """Dropout applies after edits, even if no weights are requested. Reported weights are without dropout."""
    if not subject.supports("dropout"):
        return
    query, keys, allowed = case.inputs(subject)
    attention = subject.attention(case, dropout=nn.Dropout(1.0))
    memory, mask, _ = prepare_masked(subject, attention, keys, allowed)
    in_eval_mode = attention(query, memory, **mask, need_weights=True)
    attention.train()
    in_train_mode = attention(query, memory, **mask, need_weights=True)
    torch.testing.assert_close(in_train_mode.weights, in_eval_mode.weights, **subject.tolerance)
    calls = [{}, {"need_weights": True}]
    calls += [{"edit": lambda weights, _: torch.ones_like(weights)}] if subject.supports("edit") else []
    for call in calls:
        assert torch.all(attention(query, memory, **mask, **call).context == 0)


def beams_share_a_memory(subject: Subject, case: Case) -> None:
    """Rows that share one memory get the same result as rows with a copy each, in any order of the rows."""
    attention = subject.attention(case)
    query, keys, _ = case.inputs(subject)
    memory = attention.prepare(keys, keys, padding_mask(case.lengths(), case.keys))
    generator = torch.Generator().manual_seed(case.seed)
    two_rows_each = torch.arange(case.batch).repeat_interleave(2)
    for rows in (two_rows_each, torch.randint(0, case.batch, (case.batch + 2,), generator=generator)):
        states = query[rows] + torch.arange(len(rows), dtype=subject.dtype)[:, None, None]
        shared_memory = memory.with_beams(group_rows(rows, case.batch))
        with_copies = attention(states, memory.select(rows), need_weights=True)
        for need_weights in (False, True):
            with_shared = attention(states, shared_memory, need_weights=need_weights)
            torch.testing.assert_close(with_shared.context, with_copies.context, **subject.tolerance)
        torch.testing.assert_close(with_shared.weights, with_copies.weights, **subject.tolerance)
        if not subject.supports("mask"):
            continue
        allowed = torch.rand(len(rows), 1, case.queries, case.keys, generator=generator) < case.density
        masked = attention(states, shared_memory, allowed=allowed)
        expected = attention(states, memory.select(rows), allowed=allowed)
        torch.testing.assert_close(masked.context, expected.context, **subject.tolerance)


def bias_is_added(subject: Subject, case: Case) -> None:
    """A bias that is the same for every key changes nothing. A very low bias acts like a mask."""
    if not subject.supports("bias"):
        return
    attention = subject.attention(case)
    query, keys, allowed = case.inputs(subject)
    memory = attention.prepare(keys, keys)
    plain = attention(query, memory, need_weights=True)
    shifted = attention(query, memory, bias=torch.full((1, 1, 1, 1), 3.0, dtype=subject.dtype))
    torch.testing.assert_close(shifted.context, plain.context, **subject.tolerance)
    best = plain.weights.argmax(dim=-1, keepdim=True)  # so that every row keeps its largest weight
    allowed = allowed.expand_as(plain.weights).scatter(3, best, value=True)
    low = torch.where(allowed, 0.0, -1e4).to(subject.dtype)
    torch.testing.assert_close(
        attention(query, memory, bias=low).context,
        attention(query, memory, allowed=allowed).context,
        **subject.tolerance,
    )


def bias_of_minus_infinity_masks(subject: Subject, case: Case) -> None:
    """A bias of -∞ acts like a mask. If it masks all keys, the context is 0 and gradients are finite."""
    if not subject.supports("bias"):
        return
    attention = subject.attention(case)
    query, keys, allowed = case.inputs(subject)
    allowed[:, :, 0] = False
    bias = torch.where(allowed, 0.5, -torch.inf).to(subject.dtype).requires_grad_()
    memory = attention.prepare(keys, keys)
    biased = attention(query, memory, bias=bias, need_weights=True)
    masked_out = attention(query, memory, allowed=allowed, need_weights=True)
    torch.testing.assert_close(biased.weights, masked_out.weights, **subject.tolerance)
    assert torch.all(biased.context[:, 0] == 0)
    biased.context.square().sum().backward()
    assert bias.grad is None or torch.isfinite(bias.grad).all()


def unsupported_calls_are_refused(subject: Subject, case: Case) -> None:
    """An unsupported call raises an error that names a mechanism that supports this call."""
    attention = subject.attention(case)
    query, keys, allowed = case.inputs(subject)
    memory = attention.prepare(keys, keys)
    calls = {
        "causal": lambda: subject.attention(case, causal=True),
        "dropout": lambda: subject.attention(case, dropout=nn.Dropout(0.5)),
        "incremental": lambda: attention.extend(memory, keys, keys),
        "mask": lambda: attention(query, memory, allowed=allowed),
        "bias": lambda: attention(query, memory, bias=torch.zeros(1, dtype=subject.dtype)),
        "edit": lambda: attention(query, memory, edit=lambda weights, _: weights),
        "weights": lambda: attention(query, memory, need_weights=True),
    }
    for need, call in calls.items():
        if not subject.supports(need):
            assert_refused(call, alternative='"scaled-dot"')


CHECKS = [
    shapes,
    masked_keys_have_weight_zero,
    masks_compose,
    masks_broadcast,
    masks_are_bool,
    padding_is_bool,
    padding_on_the_left,
    sizes_of_zero,
    empty_rows,
    requesting_weights_changes_nothing,
    gradients_agree,
    attend_self_is_prepare_and_call,
    steps_equal_the_full_pass,
    nothing_is_stored,
    edits,
    weights_before_dropout,
    beams_share_a_memory,
    bias_is_added,
    bias_of_minus_infinity_masks,
    unsupported_calls_are_refused,
]
