"""The attention contract of docs/design.md, one function a point, for any attention.

A check is given a `Subject` (how to make the attention, and in which precision) and a `Case` (sizes, masks
and numbers). It raises AssertionError where the promise is broken.
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
    group_rows,
    look_ahead,
    padding,
)
from jumok.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable

WIDTH = 8


@dataclass(frozen=True)
class Subject:
    make: Callable[..., Attention]  # make(heads=, causal=, dropout=)
    dtype: torch.dtype

    @classmethod
    def of(cls, kind: type[Mechanism], dtype: torch.dtype = torch.float64, **options: object) -> Subject:
        """The mechanism in the heads of an attention."""

        def make(*, heads: int, causal: bool, dropout: nn.Module | None) -> Attention:
            shape = HeadShape(heads, WIDTH // heads, WIDTH // heads)
            mechanism = kind(shape, causal=causal, dropout=dropout, **options)
            return MultiHead(width=WIDTH, heads=heads, mechanism=mechanism)

        return cls(make, dtype)

    def attention(self, case: Case, *, causal: bool = False, dropout: nn.Module | None = None) -> Attention:
        torch.manual_seed(case.seed)
        return self.make(heads=case.heads, causal=causal, dropout=dropout).to(self.dtype).eval()

    def can(self, *needs: str) -> bool:
        return not self.make(heads=1, causal=False, dropout=None).supports.missing(*needs)

    @property
    def close(self) -> dict[str, float]:
        return {"atol": 5e-6, "rtol": 0.0} if self.dtype == torch.float32 else {"atol": 1e-12, "rtol": 0.0}


@dataclass(frozen=True)
class Case:
    batch: int
    heads: int
    queries: int
    keys: int
    density: float  # share of (query, key) that the random mask allows
    seed: int

    def numbers(self, subject: Subject) -> tuple[Tensor, Tensor, Tensor]:
        """Query states, key states and the mask (batch, 1, query, key)."""
        random = torch.Generator().manual_seed(self.seed)
        query = torch.randn(self.batch, self.queries, WIDTH, generator=random).to(subject.dtype)
        keys = torch.randn(self.batch, self.keys, WIDTH, generator=random).to(subject.dtype)
        allowed = torch.rand(self.batch, 1, self.queries, self.keys, generator=random) < self.density
        return query, keys, allowed

    def lengths(self) -> Tensor:
        return torch.randint(
            0, self.keys + 1, (self.batch,), generator=torch.Generator().manual_seed(self.seed)
        )


# One key and many; more than queries and fewer; all, some and none of them allowed.
CASES = [
    Case(batch=1, heads=1, queries=1, keys=1, density=1.0, seed=0),
    Case(batch=2, heads=2, queries=3, keys=5, density=0.6, seed=1),
    Case(batch=3, heads=4, queries=5, keys=3, density=0.3, seed=2),
    Case(batch=2, heads=2, queries=2, keys=16, density=0.0, seed=3),
    Case(batch=3, heads=2, queries=4, keys=19, density=0.7, seed=4),
    Case(batch=2, heads=4, queries=1, keys=6, density=1.0, seed=5),
]


def masked(
    subject: Subject, attention: Attention, keys: Tensor, allowed: Tensor
) -> tuple[Memory, dict[str, Tensor], Tensor]:
    """A memory, the call's mask and what both allow together, (batch, 1, query, key).

    What takes no mask a query is given one that all queries share, as padding.
    """
    if subject.can("mask"):
        return attention.prepare(keys, keys), {"allowed": allowed}, allowed
    shared = allowed.any(dim=2)  # (batch, 1, key)
    return attention.prepare(keys, keys, shared[:, 0]), {}, shared[:, :, None].expand_as(allowed)


def assert_refused(ask: Callable[[], object], *, way_out: str) -> None:
    """What is asked raises an error that names a way out, and is neither done nor ignored."""
    said = "nothing"
    try:
        ask()
    except UnsupportedError as error:
        said = str(error)
    assert way_out in said


def shapes(subject: Subject, case: Case) -> None:
    """Contexts are (batch, query, width); weights have a head axis, or are None when nobody asked."""
    attention = subject.attention(case)
    query, keys, _ = case.numbers(subject)
    memory = attention.prepare(keys, keys)
    attended = attention(query, memory, need_weights=True)
    assert attended.context.shape == (case.batch, case.queries, WIDTH)
    assert attended.weights.shape == (case.batch, case.heads, case.queries, case.keys)
    assert attended.context.dtype == attended.weights.dtype == subject.dtype
    assert attention(query, memory).weights is None


def masked_means_zero(subject: Subject, case: Case) -> None:
    """What is not allowed has weight exactly 0, and its numbers cannot reach the context."""
    attention = subject.attention(case)
    query, keys, allowed = case.numbers(subject)
    memory, mask, seen = masked(subject, attention, keys, allowed)
    attended = attention(query, memory, **mask, need_weights=True)
    assert torch.all(attended.weights.masked_select(~seen.expand_as(attended.weights)) == 0)
    unseen = ~allowed.any(dim=2)[:, 0]  # (batch, key): keys that no query may see
    other = torch.where(unseen[..., None], keys + 100, keys)
    for need_weights in (False, True):
        memory, mask, _ = masked(subject, attention, other, allowed)
        changed = attention(query, memory, **mask, need_weights=need_weights)
        torch.testing.assert_close(changed.context, attended.context, **subject.close)


def masks_compose(subject: Subject, case: Case) -> None:
    """Padding, look-ahead and the mask of the call hold together, as their AND would alone."""
    if not subject.can("mask"):
        return
    query, keys, allowed = case.numbers(subject)
    allowed_keys = padding(case.lengths(), case.keys)
    first = max(0, case.keys - case.queries)
    for causal in {False, subject.can("causal")}:
        attention = subject.attention(case, causal=causal)
        three = attention(query, attention.prepare(keys, keys, allowed_keys), allowed=allowed, first=first)
        every = allowed & allowed_keys[:, None, None]
        if causal:
            every = every & look_ahead(case.queries, case.keys, first=first)
        plain = subject.attention(case)
        once = plain(query, plain.prepare(keys, keys, allowed_keys), allowed=every, first=first)
        torch.testing.assert_close(three.context, once.context, **subject.close)


def masks_broadcast(subject: Subject, case: Case) -> None:
    """A mask may leave out or shrink any axis of (batch, head, query, key)."""
    if not subject.can("mask"):
        return
    attention = subject.attention(case)
    query, keys, allowed = case.numbers(subject)
    memory = attention.prepare(keys, keys)
    for mask in (allowed[0, 0, 0], allowed[0, 0], allowed[:, :, :, :1], allowed[:, :, :1], allowed[:1]):
        full = mask.expand(case.batch, case.heads, case.queries, case.keys)
        short, long = attention(query, memory, allowed=mask), attention(query, memory, allowed=full)
        torch.testing.assert_close(short.context, long.context, **subject.close)


def masks_are_bool(subject: Subject, case: Case) -> None:
    """Numbers in the place of a mask are refused: one path would add them to the scores, and another not."""
    if not subject.can("mask"):
        return
    attention = subject.attention(case)
    query, keys, allowed = case.numbers(subject)
    memory = attention.prepare(keys, keys)
    for need_weights in (False, True):
        call = {"allowed": allowed.to(subject.dtype), "need_weights": need_weights}
        assert_refused(lambda call=call: attention(query, memory, **call), way_out="bias")


def padding_is_bool(subject: Subject, case: Case) -> None:
    """So are numbers in the place of what says which keys are padding, by every mechanism."""
    attention = subject.attention(case)
    _, keys, _ = case.numbers(subject)
    allowed_keys = padding(case.lengths(), case.keys)
    for dtype in (subject.dtype, torch.int64):
        numbers = allowed_keys.to(dtype)
        assert_refused(lambda numbers=numbers: attention.prepare(keys, keys, numbers), way_out="bias")


def padding_on_the_left(subject: Subject, case: Case) -> None:
    """What says that keys may begin after padding gives the same when they do."""
    if not subject.can("left_padding"):
        return
    query, keys, _ = case.numbers(subject)
    moved = torch.cat([keys + 3, keys], dim=1)  # as much padding as there are keys
    allowed_keys = torch.arange(2 * case.keys).expand(case.batch, -1) >= case.keys
    for causal in {False, subject.can("causal")}:
        attention = subject.attention(case, causal=causal)
        plain = attention(query, attention.prepare(keys, keys))
        padded = attention.prepare(moved, moved, allowed_keys)
        for need_weights in (False, True):
            later = attention(query, padded, first=case.keys, need_weights=need_weights)
            torch.testing.assert_close(later.context, plain.context, **subject.close)


def sizes_of_zero(subject: Subject, case: Case) -> None:
    """No sentence, no query or no key is no mistake; where there is no key, the context is 0."""
    for nothing in ("batch", "queries", "keys"):
        none = replace(case, **{nothing: 0})
        query, keys, _ = none.numbers(subject)
        for causal in {False, subject.can("causal")}:
            attention = subject.attention(none, causal=causal)
            for allowed_keys in (None, torch.ones(none.batch, none.keys, dtype=torch.bool)):
                memory = attention.prepare(keys, keys, allowed_keys)
                for need_weights in (False, True):
                    attended = attention(query, memory, need_weights=need_weights)
                    assert attended.context.shape == (none.batch, none.queries, WIDTH)
                    assert nothing != "keys" or torch.all(attended.context == 0)
                assert attended.weights.shape == (none.batch, none.heads, none.queries, none.keys)


def empty_rows(subject: Subject, case: Case) -> None:
    """A query that may see nothing: weight 0, context 0, gradient 0, never NaN; on either path."""
    attention = subject.attention(case)
    query, keys, allowed = case.numbers(subject)
    blind = (slice(None), 0) if subject.can("mask") else (0,)  # of (batch, query): a query, or a sentence
    allowed.transpose(1, 2)[blind] = False
    for need_weights in (False, True):
        query = query.detach().requires_grad_()
        keys = keys.detach().requires_grad_()
        memory, mask, _ = masked(subject, attention, keys, allowed)
        attended = attention(query, memory, **mask, need_weights=need_weights)
        assert torch.all(attended.context[blind] == 0)
        if need_weights:
            assert torch.all(attended.weights.transpose(1, 2)[blind] == 0)
        attended.context.square().sum().backward()
        for leaf in (query, keys, *attention.parameters()):
            assert leaf.grad is None or torch.isfinite(leaf.grad).all()
        assert torch.all(query.grad[blind] == 0)
        memory, mask, _ = masked(subject, attention, keys, allowed)
        (only,) = torch.autograd.grad(attention(query, memory, **mask).context[blind].sum(), keys)
        assert torch.all(only == 0)
        attention.zero_grad()


def asking_changes_nothing(subject: Subject, case: Case) -> None:
    """In eval mode the context is the same whether or not weights are asked for."""
    query, keys, allowed = case.numbers(subject)
    for causal in {False, subject.can("causal")}:
        attention = subject.attention(case, causal=causal)
        memory = attention.prepare(keys, keys, padding(case.lengths(), case.keys))
        mask = {"allowed": allowed} if subject.can("mask") else {}
        with_weights = attention(query, memory, **mask, first=1, need_weights=True)
        without = attention(query, memory, **mask, first=1)
        torch.testing.assert_close(with_weights.context, without.context, **subject.close)
        alone = attention.attend_self(keys, need_weights=True)
        torch.testing.assert_close(alone.context, attention.attend_self(keys).context, **subject.close)


def gradients_agree(subject: Subject, case: Case) -> None:
    """Both paths have the same gradient."""
    attention = subject.attention(case)
    query, keys, allowed = case.numbers(subject)
    gradients = []
    for need_weights in (False, True):
        leaves = [query.clone().requires_grad_(), keys.clone().requires_grad_()]
        memory, mask, _ = masked(subject, attention, leaves[1], allowed)
        attended = attention(leaves[0], memory, **mask, need_weights=need_weights)
        attended.context.pow(2).sum().backward()
        gradients.append([leaf.grad for leaf in leaves])
    tolerance = 1e-4 if subject.dtype == torch.float32 else 1e-10
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, atol=tolerance, rtol=tolerance)


def self_is_prepare_and_call(subject: Subject, case: Case) -> None:
    """`attend_self` is prepare and call on the same states."""
    _, keys, _ = case.numbers(subject)
    allowed_keys = padding(case.lengths(), case.keys)
    for causal in {False, subject.can("causal")}:
        attention = subject.attention(case, causal=causal)
        short = attention.attend_self(keys, allowed_keys=allowed_keys, need_weights=True)
        long = attention(keys, attention.prepare(keys, keys, allowed_keys), need_weights=True)
        torch.testing.assert_close(short.context, long.context, **subject.close)
        torch.testing.assert_close(short.weights, long.weights, **subject.close)


def steps_are_the_whole(subject: Subject, case: Case) -> None:
    """Cached step by step, causal attention is that of the whole sentence: aligned to the end of the keys."""
    if not subject.can("causal", "incremental"):
        return
    attention = subject.attention(case, causal=True)
    _, keys, _ = case.numbers(subject)
    whole = attention.attend_self(keys, need_weights=True)
    half = case.keys // 2
    rest = attention(keys[:, half:], attention.prepare(keys, keys), first=half)
    torch.testing.assert_close(rest.context, whole.context[:, half:], **subject.close)
    with torch.no_grad():
        memory = attention.prepare(keys[:, :0], keys[:, :0])
        for place in range(case.keys):
            state = keys[:, place : place + 1]
            memory = attention.extend(memory, state, state)
            for need_weights in (False, True):
                step = attention(state, memory, first=place, need_weights=need_weights)
                torch.testing.assert_close(
                    step.context[:, 0], whole.context[:, place].detach(), **subject.close
                )
            torch.testing.assert_close(
                step.weights[:, :, 0], whole.weights[:, :, place, : place + 1], **subject.close
            )


def held_by(attention: Attention) -> list[dict[str, tuple[int, int]]]:
    """For each module its attributes: which object each is, and how much is in it."""
    return [
        {
            name: (id(value), len(value) if hasattr(value, "__len__") else 0)
            for name, value in vars(part).items()
        }
        for part in attention.modules()
    ]


def nothing_is_stored(subject: Subject, case: Case) -> None:
    """A call leaves the module as it was, so that two decodings may be interleaved."""
    attention = subject.attention(case, causal=subject.can("causal"))
    query, keys, allowed = case.numbers(subject)
    before = held_by(attention)
    buffers = copy.deepcopy(attention.state_dict())
    memory, mask, _ = masked(subject, attention, keys, allowed)
    once = attention(query, memory, **mask, first=2, need_weights=True)
    other = attention.prepare(keys + 1, keys - 1)
    if subject.can("incremental"):
        other = attention.extend(other, keys, keys)
    attention(query * 2, other, first=3)
    again = attention(query, memory, **mask, first=2, need_weights=True)
    assert torch.equal(once.context, again.context)
    assert before == held_by(attention)
    assert all(torch.equal(buffers[name], value) for name, value in attention.state_dict().items())


def edits(subject: Subject, case: Case) -> None:
    """The edit sees the weights and the step; what it returns is what is read and reported."""
    attention = subject.attention(case)
    if not subject.can("edit"):
        return
    query, keys, allowed = case.numbers(subject)
    memory, mask, _ = masked(subject, attention, keys, allowed)
    told: list[int] = []

    def keep(weights: Tensor, first: int) -> Tensor:
        told.append(first)
        return weights

    plain = attention(query, memory, **mask, first=5, need_weights=True)
    kept = attention(query, memory, **mask, first=5, edit=keep)
    assert told == [5]
    torch.testing.assert_close(kept.context, plain.context, **subject.close)
    for need_weights in (False, True):
        knocked = attention(query, memory, edit=lambda weights, _: weights * 0, need_weights=need_weights)
        assert torch.all(knocked.context == 0)
    assert torch.all(knocked.weights == 0)


def weights_before_dropout(subject: Subject, case: Case) -> None:
    """Dropout falls on what is read, asked for or not, and never on what is edited or reported."""
    if not subject.can("dropout"):
        return
    query, keys, allowed = case.numbers(subject)
    attention = subject.attention(case, dropout=nn.Dropout(1.0))
    memory, mask, _ = masked(subject, attention, keys, allowed)
    quiet = attention(query, memory, **mask, need_weights=True)
    attention.train()
    loud = attention(query, memory, **mask, need_weights=True)
    torch.testing.assert_close(loud.weights, quiet.weights, **subject.close)
    calls = [{}, {"need_weights": True}]
    calls += [{"edit": lambda weights, _: torch.ones_like(weights)}] if subject.can("edit") else []
    for call in calls:
        assert torch.all(attention(query, memory, **mask, **call).context == 0)


def beams_share(subject: Subject, case: Case) -> None:
    """Several rows that read one memory get what they would get from a copy each, in whatever order."""
    attention = subject.attention(case)
    query, keys, _ = case.numbers(subject)
    memory = attention.prepare(keys, keys, padding(case.lengths(), case.keys))
    random = torch.Generator().manual_seed(case.seed)
    regular = torch.arange(case.batch).repeat_interleave(2)
    for rows in (regular, torch.randint(0, case.batch, (case.batch + 2,), generator=random)):
        states = query[rows] + torch.arange(len(rows), dtype=subject.dtype)[:, None, None]
        shared = memory.shared(group_rows(rows, case.batch))
        copied = attention(states, memory.select(rows), need_weights=True)
        for need_weights in (False, True):
            together = attention(states, shared, need_weights=need_weights)
            torch.testing.assert_close(together.context, copied.context, **subject.close)
        torch.testing.assert_close(together.weights, copied.weights, **subject.close)
        if not subject.can("mask"):
            continue
        allowed = torch.rand(len(rows), 1, case.queries, case.keys, generator=random) < case.density
        apart = attention(states, shared, allowed=allowed)
        expected = attention(states, memory.select(rows), allowed=allowed)
        torch.testing.assert_close(apart.context, expected.context, **subject.close)


def bias_is_added(subject: Subject, case: Case) -> None:
    """A bias that is the same for every key changes nothing; a very low one takes a key away."""
    if not subject.can("bias"):
        return
    attention = subject.attention(case)
    query, keys, allowed = case.numbers(subject)
    memory = attention.prepare(keys, keys)
    plain = attention(query, memory, need_weights=True)
    shifted = attention(query, memory, bias=torch.full((1, 1, 1, 1), 3.0, dtype=subject.dtype))
    torch.testing.assert_close(shifted.context, plain.context, **subject.close)
    best = plain.weights.argmax(dim=-1, keepdim=True)  # so that no row is left with nothing it looks at
    allowed = allowed.expand_as(plain.weights).scatter(3, best, value=True)
    low = torch.where(allowed, 0.0, -1e4).to(subject.dtype)
    torch.testing.assert_close(
        attention(query, memory, bias=low).context,
        attention(query, memory, allowed=allowed).context,
        **subject.close,
    )


def a_bias_of_minus_infinity_hides(subject: Subject, case: Case) -> None:
    """-∞ in the bias is what a mask says, be it along a whole row: weight 0, context 0, never NaN."""
    if not subject.can("bias"):
        return
    attention = subject.attention(case)
    query, keys, allowed = case.numbers(subject)
    allowed[:, :, 0] = False
    bias = torch.where(allowed, 0.5, -torch.inf).to(subject.dtype).requires_grad_()
    memory = attention.prepare(keys, keys)
    hidden = attention(query, memory, bias=bias, need_weights=True)
    masked_out = attention(query, memory, allowed=allowed, need_weights=True)
    torch.testing.assert_close(hidden.weights, masked_out.weights, **subject.close)
    assert torch.all(hidden.context[:, 0] == 0)
    hidden.context.square().sum().backward()
    assert bias.grad is None or torch.isfinite(bias.grad).all()


def what_it_cannot_do_is_refused(subject: Subject, case: Case) -> None:
    """What `supports` denies raises an error that names a mechanism which can."""
    attention = subject.attention(case)
    query, keys, allowed = case.numbers(subject)
    memory = attention.prepare(keys, keys)
    asked = {
        "causal": lambda: subject.attention(case, causal=True),
        "dropout": lambda: subject.attention(case, dropout=nn.Dropout(0.5)),
        "incremental": lambda: attention.extend(memory, keys, keys),
        "mask": lambda: attention(query, memory, allowed=allowed),
        "bias": lambda: attention(query, memory, bias=torch.zeros(1, dtype=subject.dtype)),
        "edit": lambda: attention(query, memory, edit=lambda weights, _: weights),
        "weights": lambda: attention(query, memory, need_weights=True),
    }
    for need, ask in asked.items():
        if not subject.can(need):
            assert_refused(ask, way_out='"scaled-dot"')


CHECKS = [
    shapes,
    masked_means_zero,
    masks_compose,
    masks_broadcast,
    masks_are_bool,
    padding_is_bool,
    padding_on_the_left,
    sizes_of_zero,
    empty_rows,
    asking_changes_nothing,
    gradients_agree,
    self_is_prepare_and_call,
    steps_are_the_whole,
    nothing_is_stored,
    edits,
    weights_before_dropout,
    beams_share,
    bias_is_added,
    a_bias_of_minus_infinity_hides,
    what_it_cannot_do_is_refused,
]
