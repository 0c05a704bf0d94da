"""For every point of the contract a mechanism that breaks it, and is caught.

Each is a sound mechanism with one mistake, often one that somebody really made. Beside it stand the checks
that catch it, that of the broken promise first. All other checks pass: one that always fails would catch
everything.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from attention_costs import largest_of_a_step
from contract_checks import CHECKS, WIDTH, Case, Subject
from torch import nn

from jumok.attention import Attended, LinearAttention, MultiHead, ScaledDot, Supports, masked_softmax
from jumok.errors import UnsupportedError

TYPICAL = Case(batch=3, heads=2, queries=4, keys=5, density=0.6, seed=1)


class Plain(ScaledDot):
    """Without the fused kernel, so that one mistake in the formula is a mistake on either path."""

    def attend(self, query, memory, call):
        attended = super().attend(query, memory, replace(call, need_weights=True))
        return attended if call.need_weights else Attended(attended.context)


class ReportsUnasked(ScaledDot):
    """Forms weights that nobody asked for, and hands them out."""

    def attend(self, query, memory, call):
        return super().attend(query, memory, replace(call, need_weights=True))


class AveragesHeads(ScaledDot):
    """Reports one map for all heads, as torch's MultiheadAttention does unless told otherwise."""

    def attend(self, query, memory, call):
        attended = super().attend(query, memory, call)
        weights = None if attended.weights is None else attended.weights.mean(dim=1, keepdim=True)
        return Attended(attended.context, weights)


class MasksUpsideDown(Plain):
    """True = hidden, as in torch's `key_padding_mask`."""

    def allowed(self, query, memory, call):
        hidden = None if call.allowed is None else call.allowed.logical_not()
        return super().allowed(query, memory, replace(call, allowed=hidden))


class LeaksALittle(Plain):
    """A large negative number that is not large enough: what is masked keeps a trace of weight."""

    def normalise(self, scores, allowed, **_):
        if allowed is None:
            return scores.softmax(-1)
        leaky = scores.masked_fill(~allowed, -40.0).softmax(-1)
        return leaky * allowed.any(dim=-1, keepdim=True)


class MeasuresAllKeys(Plain):
    """Divides by the length of all keys together, also of those that may not be seen."""

    def scores(self, query, keys):
        return super().scores(query, keys) / keys.norm(dim=-1).sum(dim=-1)[..., None, None]


class LastMaskWins(ScaledDot):
    """The mask of a call replaces the padding."""

    def allowed(self, query, memory, call):
        padded = memory if call.allowed is None else replace(memory, allowed=None)
        return super().allowed(query, padded, call)


class ReadsOneRow(ScaledDot):
    """A mask with one row for all queries is taken for that of the first."""

    def allowed(self, query, memory, call):
        mask = call.allowed
        if mask is not None and mask.dim() > 1 and mask.shape[-2] == 1:
            others = mask.new_ones(*mask.shape[:-2], query.shape[2] - 1, mask.shape[-1])
            mask = torch.cat([mask, others], dim=-2)
        return super().allowed(query, memory, replace(call, allowed=mask))


class TakesNumbers(ScaledDot):
    """Whatever is not 0 may be seen: a float mask of 0 and -∞ would mean its opposite."""

    def allowed(self, query, memory, call):
        mask = None if call.allowed is None else call.allowed.bool()
        return super().allowed(query, memory, replace(call, allowed=mask))


class PadsWithNumbers(ScaledDot):
    """Whatever is not 0 is no padding."""

    def prepare(self, keys, values, allowed_keys):
        return self.remember(keys, values, None if allowed_keys is None else allowed_keys.bool())


class CountsPadding(Plain):
    """Prefers later keys by their place in the memory, and padding on the left makes all of them later."""

    def scores(self, query, keys):
        return super().scores(query, keys) * torch.arange(1, keys.shape[2] + 1, dtype=keys.dtype)


class NothingFromNothing(ScaledDot):
    """The weights of no keys, divided by their sum, are 0 / 0."""

    def attend(self, query, memory, call):
        attended = super().attend(query, memory, call)
        return attended if memory.length else Attended(attended.context / 0, attended.weights)


class MeanOfNothing(Plain):
    """Forgets that a row may be empty: the softmax of equal scores is the mean of all values."""

    def normalise(self, scores, allowed, **_):
        return scores.masked_fill(~allowed, -1e9).softmax(-1) if allowed is not None else scores.softmax(-1)


class NothingIsNan(Plain):
    """-∞ added everywhere in a row is NaN; zeroed afterwards, it is still NaN in the gradient."""

    def normalise(self, scores, allowed, **_):
        if allowed is None:
            return scores.softmax(-1)
        weights = (scores + torch.where(allowed, 0.0, -torch.inf)).softmax(-1)
        return weights.masked_fill(~allowed, 0.0)


class RoundsWhenAsked(ScaledDot):
    """The path that reports weights works in another precision."""

    def normalise(self, scores, allowed, **_):
        return masked_softmax(scores.bfloat16(), allowed).to(scores.dtype)


class LearnsHalf(ScaledDot):
    """The path that reports weights has the right numbers, and half of their gradient."""

    def normalise(self, scores, allowed, **_):
        return masked_softmax((scores + scores.detach()) / 2, allowed)


class SelfWithoutPadding(MultiHead):
    """The short cut for self-attention forgets its mask."""

    def attend_self(self, states, *, allowed_keys=None, edit=None, need_weights=False):
        return super().attend_self(states, edit=edit, need_weights=need_weights)


class CountsFromTheStart(ScaledDot):
    """Causal aligned to the start: the mistake that torch's `is_causal` invites."""

    def allowed(self, query, memory, call):
        return super().allowed(query, memory, replace(call, first=0))


class ForgetsTheFirst(ScaledDot):
    """Extended, the memory is what was added."""

    def extend(self, memory, keys, values):
        return self.prepare(keys, values, None)


class RemembersKeys(ScaledDot):
    """Keeps the keys on the module, where a second sentence replaces them."""

    def prepare(self, keys, values, allowed_keys):
        self.keys = keys
        return super().prepare(keys, values, allowed_keys)


class CountsCalls(ScaledDot):
    """Adds to a list that was there from the start."""

    def __init__(self, *shape, **options):
        super().__init__(*shape, **options)
        self.seen = []

    def attend(self, query, memory, call):
        self.seen.append(query.shape)
        return super().attend(query, memory, call)


class IgnoresEdits(ScaledDot):
    """Takes an edit and does nothing with it."""

    def attend(self, query, memory, call):
        return super().attend(query, memory, replace(call, edit=None))


class EditsAtZero(ScaledDot):
    """Tells every edit that it stands at the first step."""

    def attend(self, query, memory, call):
        edit = call.edit
        told = None if edit is None else lambda weights, _: edit(weights, 0)
        return super().attend(query, memory, replace(call, edit=told))


class EditsOnlyTheReport(ScaledDot):
    """Edits what is shown, and reads what was there before."""

    def attend(self, query, memory, call):
        attended = super().attend(query, memory, replace(call, edit=None))
        if call.edit is None:
            return attended
        weights = super().attend(query, memory, replace(call, need_weights=True)).weights
        return Attended(attended.context, weights if call.need_weights else None)


class DropsReported(ScaledDot):
    """Reports the weights after dropout."""

    def attend(self, query, memory, call):
        attended = super().attend(query, memory, call)
        return Attended(
            attended.context, None if attended.weights is None else self.dropout(attended.weights)
        )


class DropsOnlyWhenAsked(ScaledDot):
    """The fused path knows no dropout, and is taken all the same."""

    def attend(self, query, memory, call):
        if call.needs_weights:
            return super().attend(query, memory, call)
        return Attended(self._fused(query, memory, call))


class EditsAfterDropout(ScaledDot):
    """The edit writes over the dropout."""

    def attend(self, query, memory, call):
        if call.edit is None:
            return super().attend(query, memory, call)
        plain = super().attend(query, memory, replace(call, edit=None, need_weights=True))
        weights = call.edit(self.dropout(plain.weights), call.first)
        return Attended(weights @ memory.values, weights if call.need_weights else None)


class RowsInOrder(ScaledDot):
    """Believes that the hypotheses of a sentence stand together, in the order of the sentences."""

    def respond(self, query, memory, call):
        if memory.beams is not None:
            memory = memory.select(memory.beams.sentence.sort().values).shared(None)
        return super().respond(query, memory, call)


class IgnoresBias(ScaledDot):
    """Takes a bias and does nothing with it."""

    def attend(self, query, memory, call):
        return super().attend(query, memory, replace(call, bias=None))


class MultipliesByBias(Plain):
    """Uses the bias on the weights in the place of the scores."""

    def attend(self, query, memory, call):
        if call.bias is None:
            return super().attend(query, memory, call)
        return super().attend(query, memory, replace(call, bias=None, edit=lambda old, _: old * call.bias))


class HidesTooLittle(MultiHead):
    """Takes -∞ for a low number: along a whole row it is the mean of all values."""

    def forward(self, query, memory, *, bias=None, **call):
        return super().forward(query, memory, bias=None if bias is None else bias.clamp(min=-1e9), **call)


class SaysNothing(ScaledDot):
    """Can do none of this by its own account, and is called all the same."""

    supports = Supports(causal=False, incremental=False, mask=False, bias=False, edit=False, dropout=False)

    def _require(self, *needs):
        pass


class SaysOnlyNo(ScaledDot):
    """Refuses, and leaves the caller there."""

    supports = Supports(bias=False)

    def _require(self, *needs):
        if self.supports.missing(*needs):
            raise UnsupportedError("That cannot be done.")


class SumsAnew(LinearAttention):
    """Adds up all keys again at every step."""

    def extend(self, memory, keys, values):
        seen = memory.seen.extend(keys, values)
        return self.prepare(seen.keys, seen.values, None)


BROKEN: dict[type[nn.Module], tuple[str, ...]] = {
    ReportsUnasked: ("shapes",),
    AveragesHeads: ("shapes", "sizes_of_zero"),
    LeaksALittle: ("masked_means_zero",),
    MeasuresAllKeys: ("masked_means_zero", "steps_are_the_whole", "padding_on_the_left"),
    MasksUpsideDown: (
        "masked_means_zero",
        "masks_compose",
        "masks_are_bool",
        "empty_rows",
        "bias_is_added",
        "a_bias_of_minus_infinity_hides",
    ),
    LastMaskWins: ("masks_compose",),
    ReadsOneRow: ("masks_broadcast",),
    TakesNumbers: ("masks_are_bool",),
    PadsWithNumbers: ("padding_is_bool",),
    CountsPadding: ("padding_on_the_left",),
    NothingFromNothing: ("sizes_of_zero",),
    MeanOfNothing: ("empty_rows", "a_bias_of_minus_infinity_hides"),
    NothingIsNan: ("empty_rows",),
    RoundsWhenAsked: (
        "asking_changes_nothing",
        "masked_means_zero",
        "gradients_agree",
        "steps_are_the_whole",
        "padding_on_the_left",
        "beams_share",
        "bias_is_added",
        "a_bias_of_minus_infinity_hides",
    ),
    LearnsHalf: ("gradients_agree",),
    SelfWithoutPadding: ("self_is_prepare_and_call",),
    CountsFromTheStart: ("steps_are_the_whole", "masks_compose", "padding_on_the_left"),
    ForgetsTheFirst: ("steps_are_the_whole",),
    RemembersKeys: ("nothing_is_stored",),
    CountsCalls: ("nothing_is_stored",),
    IgnoresEdits: ("edits",),
    EditsAtZero: ("edits",),
    EditsOnlyTheReport: ("edits",),
    DropsReported: ("weights_before_dropout",),
    DropsOnlyWhenAsked: ("weights_before_dropout",),
    EditsAfterDropout: ("weights_before_dropout",),
    RowsInOrder: ("beams_share",),
    IgnoresBias: ("bias_is_added",),
    MultipliesByBias: ("bias_is_added", "a_bias_of_minus_infinity_hides"),
    HidesTooLittle: ("a_bias_of_minus_infinity_hides",),
    SaysNothing: ("what_it_cannot_do_is_refused",),
    SaysOnlyNo: ("what_it_cannot_do_is_refused",),
}


def make_subject(part: type[nn.Module]) -> Subject:
    """The subject of a broken mechanism, or of a broken attention round a sound one."""
    if not issubclass(part, MultiHead):
        return Subject.of(part)

    def make(*, heads, causal, dropout):
        return part(width=WIDTH, heads=heads, mechanism=ScaledDot(causal=causal, dropout=dropout))

    return Subject(make, torch.float64)


def test_every_check_has_something_to_catch():
    assert {caught_by[0] for caught_by in BROKEN.values()} == {check.__name__ for check in CHECKS}


@pytest.mark.parametrize("sound", [ScaledDot, Plain, MultiHead], ids=lambda kind: kind.__name__)
def test_a_sound_one_passes(sound):
    for check in CHECKS:
        check(make_subject(sound), TYPICAL)


@pytest.mark.parametrize(("broken", "caught_by"), BROKEN.items(), ids=[kind.__name__ for kind in BROKEN])
def test_a_broken_one_is_caught_where_it_is_broken(broken, caught_by):
    for check in CHECKS:
        if check.__name__ in caught_by:
            with pytest.raises(AssertionError):
                check(make_subject(broken), TYPICAL)
        else:
            check(make_subject(broken), TYPICAL)


def test_sums_that_are_taken_anew_at_every_step_are_noticed_by_their_cost():
    for check in CHECKS:
        check(make_subject(SumsAnew), TYPICAL)
    sound, broken = LinearAttention(causal=True), SumsAnew(causal=True)
    assert largest_of_a_step(sound, 100) == largest_of_a_step(sound, 10)
    assert largest_of_a_step(broken, 100) > largest_of_a_step(broken, 10)
