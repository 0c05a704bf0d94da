"""For every check of the contract, a mechanism with a mistake that the check must catch.

Many of these mistakes occur in real code. For each mechanism, `BROKEN` lists the checks that fail, beginning
with the check of the promise that the mechanism breaks. All other checks must pass: a check that always fails
would catch everything.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from jumok.attention import Attended, LinearAttention, MultiHead, ScaledDot, Supports, masked_softmax
from jumok.errors import UnsupportedError
from support.contract_checks import CHECKS, WIDTH, Case, Subject
from support.mechanism_checks import largest_step_tensor_size

TYPICAL = Case(batch=3, heads=2, queries=4, keys=5, density=0.6, seed=1)


class Plain(ScaledDot):
    """Does not use the fused kernel, so that a mistake in the formula affects both paths."""

    def attend(self, query, memory, call):
        attended = super().attend(query, memory, replace(call, need_weights=True))
        return attended if call.need_weights else Attended(attended.context)


class ReportsUnrequestedWeights(ScaledDot):
    """Returns weights that were not requested."""

    def attend(self, query, memory, call):
        return super().attend(query, memory, replace(call, need_weights=True))


class AveragesHeads(ScaledDot):
    """Reports one map for all heads, as torch's MultiheadAttention does by default."""

    def attend(self, query, memory, call):
        attended = super().attend(query, memory, call)
        weights = None if attended.weights is None else attended.weights.mean(dim=1, keepdim=True)
        return Attended(attended.context, weights)


class InvertsMask(Plain):
    """True = hidden, as in torch's `key_padding_mask`."""

    def allowed(self, query, memory, call):
        hidden = None if call.allowed is None else call.allowed.logical_not()
        return super().allowed(query, memory, replace(call, allowed=hidden))


class LeaksWeight(Plain):
    """Masks with a number that is not low enough: a masked key gets a little weight."""

    def normalise(self, scores, allowed, **_):
        if allowed is None:
            return scores.softmax(-1)
        leaky = scores.masked_fill(~allowed, -40.0).softmax(-1)
        return leaky * allowed.any(dim=-1, keepdim=True)


class ScalesByAllKeys(Plain):
    """Divides by the norm of all keys together, including those that are masked."""

    def scores(self, query, keys):
        return super().scores(query, keys) / keys.norm(dim=-1).sum(dim=-1)[..., None, None]


class LastMaskWins(ScaledDot):
    """The mask of a call replaces the padding."""

    def allowed(self, query, memory, call):
        if call.allowed is not None:
            memory = replace(memory, allowed=None)
        return super().allowed(query, memory, call)


class MasksFirstQueryOnly(ScaledDot):
    """Applies a mask with one row for all queries to the first query only."""

    def allowed(self, query, memory, call):
        mask = call.allowed
        if mask is not None and mask.dim() > 1 and mask.shape[-2] == 1:
            others = mask.new_ones(*mask.shape[:-2], query.shape[2] - 1, mask.shape[-1])
            mask = torch.cat([mask, others], dim=-2)
        return super().allowed(query, memory, replace(call, allowed=mask))


class AcceptsFloatMask(ScaledDot):
    """Everything that is not 0 is allowed: a float mask of 0 and -∞ would mean its opposite."""

    def allowed(self, query, memory, call):
        mask = None if call.allowed is None else call.allowed.bool()
        return super().allowed(query, memory, replace(call, allowed=mask))


class AcceptsFloatPadding(ScaledDot):
    """Treats a key as a word if its number in the padding mask is not 0."""

    def prepare(self, keys, values, allowed_keys):
        return self.build_memory(keys, values, None if allowed_keys is None else allowed_keys.bool())


class ScoresByPosition(Plain):
    """Prefers later keys by their position in the memory, which padding on the left shifts."""

    def scores(self, query, keys):
        return super().scores(query, keys) * torch.arange(1, keys.shape[2] + 1, dtype=keys.dtype)


class DividesByZeroKeys(ScaledDot):
    """Divides by the sum of the weights, which is 0 without keys."""

    def attend(self, query, memory, call):
        attended = super().attend(query, memory, call)
        return attended if memory.length else Attended(attended.context / 0, attended.weights)


class AveragesEmptyRows(Plain):
    """Ignores that a row may be empty: the softmax of equal scores gives the mean of all values."""

    def normalise(self, scores, allowed, **_):
        return scores.masked_fill(~allowed, -1e9).softmax(-1) if allowed is not None else scores.softmax(-1)


class NanInEmptyRows(Plain):
    """The softmax of a row of -∞ is NaN. Its gradient stays NaN even if the weights are then set to 0."""

    def normalise(self, scores, allowed, **_):
        if allowed is None:
            return scores.softmax(-1)
        weights = (scores + torch.where(allowed, 0.0, -torch.inf)).softmax(-1)
        return weights.masked_fill(~allowed, 0.0)


class RoundsWhenReporting(ScaledDot):
    """The path that reports weights uses another precision."""

    def normalise(self, scores, allowed, **_):
        return masked_softmax(scores.bfloat16(), allowed).to(scores.dtype)


class HalvesGradient(ScaledDot):
    """The path that reports weights has the correct values, but half the gradient."""

    def normalise(self, scores, allowed, **_):
        return masked_softmax((scores + scores.detach()) / 2, allowed)


class SelfWithoutPadding(MultiHead):
    """`attend_self` ignores its mask."""

    def attend_self(self, states, *, allowed_keys=None, edit=None, need_weights=False):
        return super().attend_self(states, edit=edit, need_weights=need_weights)


class AlignsCausalMaskToStart(ScaledDot):
    """Aligns the causal mask to the start, as torch's `is_causal` does."""

    def allowed(self, query, memory, call):
        return super().allowed(query, memory, replace(call, query_offset=0))


class ForgetsEarlierKeys(ScaledDot):
    """After extending, the memory has only the added keys."""

    def extend(self, memory, keys, values):
        return self.prepare(keys, values, None)


class StoresKeysOnModule(ScaledDot):
    """Stores the keys on the module, where a second sentence replaces them."""

    def prepare(self, keys, values, allowed_keys):
        self.keys = keys
        return super().prepare(keys, values, allowed_keys)


class CountsCalls(ScaledDot):
    """Appends to a list on the module."""

    def __init__(self, *shape, **options):
        super().__init__(*shape, **options)
        self.calls = []

    def attend(self, query, memory, call):
        self.calls.append(query.shape)
        return super().attend(query, memory, call)


class IgnoresEdits(ScaledDot):
    """Ignores the edit."""

    def attend(self, query, memory, call):
        return super().attend(query, memory, replace(call, edit=None))


class PassesOffsetZero(ScaledDot):
    """Passes a query offset of 0 to every edit."""

    def attend(self, query, memory, call):
        edit = call.edit
        at_zero = None if edit is None else lambda weights, _: edit(weights, 0)
        return super().attend(query, memory, replace(call, edit=at_zero))


class EditsOnlyTheReport(ScaledDot):
    """Edits the reported weights, but computes the context with the original weights."""

    def attend(self, query, memory, call):
        attended = super().attend(query, memory, replace(call, edit=None))
        if call.edit is None:
            return attended
        weights = super().attend(query, memory, replace(call, need_weights=True)).weights
        return Attended(attended.context, weights if call.need_weights else None)


class ReportsDroppedWeights(ScaledDot):
    """Reports the weights after dropout."""

    def attend(self, query, memory, call):
        attended = super().attend(query, memory, call)
        return Attended(
            attended.context, None if attended.weights is None else self.dropout(attended.weights)
        )


class DropsOnlyWhenReporting(ScaledDot):
    """Takes the fused path, which has no dropout, in training."""

    def attend(self, query, memory, call):
        if call.must_form_weights:
            return super().attend(query, memory, call)
        return Attended(self._fused(query, memory, call))


class EditsAfterDropout(ScaledDot):
    """Applies the edit after dropout."""

    def attend(self, query, memory, call):
        if call.edit is None:
            return super().attend(query, memory, call)
        plain = super().attend(query, memory, replace(call, edit=None, need_weights=True))
        weights = call.edit(self.dropout(plain.weights), call.query_offset)
        return Attended(weights @ memory.values, weights if call.need_weights else None)


class AssumesSortedRows(ScaledDot):
    """Assumes that hypotheses are grouped by sentence, in the order of the sentences."""

    def forward_call(self, query, memory, call):
        if memory.beams is not None:
            memory = memory.select(memory.beams.sentence.sort().values).with_beams(None)
        return super().forward_call(query, memory, call)


class IgnoresBias(ScaledDot):
    """Ignores the bias."""

    def attend(self, query, memory, call):
        return super().attend(query, memory, replace(call, bias=None))


class MultipliesByBias(Plain):
    """Multiplies the weights by the bias instead of adding it to the scores."""

    def attend(self, query, memory, call):
        if call.bias is None:
            return super().attend(query, memory, call)
        return super().attend(query, memory, replace(call, bias=None, edit=lambda old, _: old * call.bias))


class ClampsBias(MultiHead):
    """Treats -∞ as a low number: if a whole row of the bias is -∞, the context is the mean of all values."""

    def forward(self, query, memory, *, bias=None, **call):
        return super().forward(query, memory, bias=None if bias is None else bias.clamp(min=-1e9), **call)


class RefusesNothing(ScaledDot):
    """Claims to support little, but refuses nothing."""

    supports = Supports(causal=False, incremental=False, mask=False, bias=False, edit=False, dropout=False)

    def _require(self, *needs):
        pass


class RefusesWithoutAlternative(ScaledDot):
    """Refuses without naming an alternative."""

    supports = Supports(bias=False)

    def _require(self, *needs):
        if self.supports.missing(*needs):
            raise UnsupportedError("That cannot be done.")


class RecomputesSums(LinearAttention):
    """Adds up all keys again at every step."""

    def extend(self, memory, keys, values):
        extended = memory.key_values.extend(keys, values)
        return self.prepare(extended.keys, extended.values, None)


BROKEN: dict[type[nn.Module], tuple[str, ...]] = {
    ReportsUnrequestedWeights: ("shapes",),
    AveragesHeads: ("shapes", "sizes_of_zero"),
    LeaksWeight: ("masked_keys_have_weight_zero",),
    ScalesByAllKeys: ("masked_keys_have_weight_zero", "steps_equal_the_full_pass", "padding_on_the_left"),
    InvertsMask: (
        "masked_keys_have_weight_zero",
        "masks_compose",
        "masks_are_bool",
        "empty_rows",
        "bias_is_added",
        "bias_of_minus_infinity_masks",
    ),
    LastMaskWins: ("masks_compose",),
    MasksFirstQueryOnly: ("masks_broadcast",),
    AcceptsFloatMask: ("masks_are_bool",),
    AcceptsFloatPadding: ("padding_is_bool",),
    ScoresByPosition: ("padding_on_the_left",),
    DividesByZeroKeys: ("sizes_of_zero",),
    AveragesEmptyRows: ("empty_rows", "bias_of_minus_infinity_masks"),
    NanInEmptyRows: ("empty_rows",),
    RoundsWhenReporting: (
        "requesting_weights_changes_nothing",
        "masked_keys_have_weight_zero",
        "gradients_agree",
        "steps_equal_the_full_pass",
        "padding_on_the_left",
        "beams_share_a_memory",
        "bias_is_added",
        "bias_of_minus_infinity_masks",
    ),
    HalvesGradient: ("gradients_agree",),
    SelfWithoutPadding: ("attend_self_is_prepare_and_call",),
    AlignsCausalMaskToStart: ("steps_equal_the_full_pass", "masks_compose", "padding_on_the_left"),
    ForgetsEarlierKeys: ("steps_equal_the_full_pass",),
    StoresKeysOnModule: ("nothing_is_stored",),
    CountsCalls: ("nothing_is_stored",),
    IgnoresEdits: ("edits",),
    PassesOffsetZero: ("edits",),
    EditsOnlyTheReport: ("edits",),
    ReportsDroppedWeights: ("weights_before_dropout",),
    DropsOnlyWhenReporting: ("weights_before_dropout",),
    EditsAfterDropout: ("weights_before_dropout",),
    AssumesSortedRows: ("beams_share_a_memory",),
    IgnoresBias: ("bias_is_added",),
    MultipliesByBias: ("bias_is_added", "bias_of_minus_infinity_masks"),
    ClampsBias: ("bias_of_minus_infinity_masks",),
    RefusesNothing: ("unsupported_calls_are_refused",),
    RefusesWithoutAlternative: ("unsupported_calls_are_refused",),
}


def make_subject(kind: type[nn.Module]) -> Subject:
    """The subject for a mechanism, or for a class of multi-head attention around a sound mechanism."""
    if not issubclass(kind, MultiHead):
        return Subject.of(kind)

    def make(*, heads, causal, dropout):
        return kind(width=WIDTH, heads=heads, mechanism=ScaledDot(causal=causal, dropout=dropout))

    return Subject(make, torch.float64)


def test_every_check_catches_some_mechanism():
    assert {failing_checks[0] for failing_checks in BROKEN.values()} == {check.__name__ for check in CHECKS}


@pytest.mark.parametrize("sound", [ScaledDot, Plain, MultiHead], ids=lambda kind: kind.__name__)
def test_a_sound_mechanism_passes(sound):
    for check in CHECKS:
        check(make_subject(sound), TYPICAL)


@pytest.mark.parametrize(("broken", "failing_checks"), BROKEN.items(), ids=[kind.__name__ for kind in BROKEN])
def test_a_broken_mechanism_is_caught_by_the_listed_checks_and_no_other(broken, failing_checks):
    for check in CHECKS:
        if check.__name__ in failing_checks:
            with pytest.raises(AssertionError):
                check(make_subject(broken), TYPICAL)
        else:
            check(make_subject(broken), TYPICAL)


def test_sums_recomputed_at_every_step_are_caught_by_their_cost():
    for check in CHECKS:
        check(make_subject(RecomputesSums), TYPICAL)
    sound, broken = LinearAttention(causal=True), RecomputesSums(causal=True)
    assert largest_step_tensor_size(sound, 100) == largest_step_tensor_size(sound, 10)
    assert largest_step_tensor_size(broken, 100) > largest_step_tensor_size(broken, 10)
