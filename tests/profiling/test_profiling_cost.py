"""Bytes and chains by hand, multiply-adds by formula, exponents of synthetic data, timing in turns."""

from __future__ import annotations

import itertools
import math
import platform
import subprocess
import sys
import time
from functools import partial

import pytest
import torch

from jumok.profiling.cost import OperationCounter, count_cost, fit_exponent, time_in_turns
from jumok.profiling.layers import PROFILED_LAYERS, Shape
from jumok.profiling.table import growth_order

SMALL = Shape(heads=2, width=4, neighbours=4)


def cost_of(name, length, shape=SMALL):
    layer = PROFILED_LAYERS[name]
    return count_cost(partial(layer.build(shape), shape.states(length, one_head=layer.one_head)))


@pytest.mark.parametrize("exponent", [0.0, 1.0, 1.5, 2.0])
def test_the_exponent_of_a_power_law_is_fitted(exponent):
    amounts = {size: 3e-7 * size**exponent for size in (1024, 2048, 4096, 16384)}
    assert fit_exponent(amounts) == pytest.approx(exponent, abs=1e-9)


def test_an_exponent_is_the_least_squares_fit_if_amounts_are_not_a_power():
    """If the size doubles, the amount doubles; if it doubles again, the amount grows eightfold: slope 2."""
    assert fit_exponent({1: 1.0, 2: 2.0, 4: 16.0}) == pytest.approx(2.0)
    # 50 % too much at one end of four doublings raises the slope by log2(1.5) · 2 / (4 + 1 + 0 + 1 + 4).
    lifted = {2**step: 2.0**step * (1.5 if step == 4 else 1.0) for step in range(5)}
    assert fit_exponent(lifted) == pytest.approx(1 + math.log2(1.5) / 5)


def test_bytes_are_counted_while_a_tensor_lives():
    inputs = torch.zeros(1000)  # existed before the counter: not counted
    with OperationCounter() as counter:
        first = inputs + 1  # 4,000 bytes
        second = torch.cat([first, first])  # 8,000 more: 12,000
        assert counter.peak_bytes == 12_000
        del first  # 8,000
        view = second.view(2, 1000)[1].unsqueeze(0).expand(50, 1000)  # no new bytes
        second.mul_(2)  # in place: no new bytes
        third = inputs * 3  # 12,000
        assert counter.peak_bytes == 12_000
        del second  # `view` keeps the memory
        fourth = third.double()  # 8,000 more: 20,000
        assert counter.peak_bytes == 20_000
        del view, third, fourth  # 0
        fifth = torch.ones(4000)  # 16,000
        assert counter.peak_bytes == 20_000
        sixth = fifth[:1001].clone()  # 4,004 more: 20,004
    assert counter.peak_bytes == 20_004
    assert len(sixth) == 1001


def test_a_tensor_may_outlive_the_counter():
    with OperationCounter() as counter:
        tensor = torch.ones(10)
    del tensor
    assert counter.peak_bytes == 40


def test_a_chain_counts_operations_that_depend_on_one_another():
    inputs = torch.ones(8)
    with OperationCounter() as counter:
        one, other = inputs + 1, inputs * 2  # independent
        assert counter.longest_chain == 1
        both = one + other
        assert counter.longest_chain == 2
        other.view(2, 4).add_(1)  # `other` is now 2 operations deep, through a view
        assert counter.longest_chain == 2
        both = both + other
        assert counter.longest_chain == 3
        both.cumsum(0)  # of 8 terms
        assert counter.longest_chain == 3 + 8
        joined = torch.cat([both.cumsum(0), other])
        assert counter.longest_chain == 11
        assert len(joined + 1) == 16
    assert counter.longest_chain == 12


@pytest.mark.parametrize("name", ["self-attention", "scaled-dot", "efficient", "linear", "recurrent"])
def test_counted_multiply_adds_equal_the_formula(name):
    for length in (16, 40):
        assert cost_of(name, length).multiply_adds == PROFILED_LAYERS[name].multiply_adds(SMALL, length)


def test_a_convolution_has_the_multiply_adds_of_its_formula():
    # kernel size · length · input width · output width
    assert cost_of("convolutional", 40).multiply_adds == 3 * 40 * 8 * 8


def test_blocks_of_restricted_attention_cost_a_third_more_than_the_band():
    """A block of r = 4 queries is scored against 3r = 12 keys.

    Each query attends to 2r + 1 = 9 of these keys, and the formula counts only these.
    """
    assert cost_of("restricted", 40).multiply_adds == 2 * 40 * (3 * 4) * 8
    assert PROFILED_LAYERS["restricted"].multiply_adds(SMALL, 40) == 2 * 40 * (2 * 4 + 1) * 8


@pytest.mark.parametrize("name", PROFILED_LAYERS)
def test_chains_grow_only_if_a_position_depends_on_the_previous_one(name):
    short, long = (cost_of(name, length).longest_chain for length in (128, 512))
    assert (long > short) == (name in {"recurrent", "linear causal", "efficient causal"})
    if name == "recurrent":
        assert (long - short) % (512 - 128) == 0  # a fixed number of operations per step
    if name == "linear causal":
        assert long - short == (512 - 128) // 64  # one step per chunk of 64 positions
    if name == "efficient causal":
        assert (long - short) % ((512 - 128) // 64) == 0  # a fixed number of operations per chunk


@pytest.mark.parametrize(
    ("amounts", "order"),
    [((15, 15, 15), "1"), ((11, 15, 15), "1"), ((4, 8, 12), "log n"), ((12, 21, 39), "n")],
)
def test_a_chain_grows_with_n_only_if_its_growth_doubles_with_the_length(amounts, order):
    assert growth_order(amounts) == order


@pytest.mark.parametrize("name", ["efficient", "linear"])
def test_chunks_of_a_long_sequence_are_independent(name):
    assert cost_of(name, 1500).longest_chain == cost_of(name, 700).longest_chain
    assert cost_of(name, 1500).multiply_adds == PROFILED_LAYERS[name].multiply_adds(SMALL, 1500)


@pytest.mark.parametrize("name", PROFILED_LAYERS)
def test_memory_does_not_grow_quadratically(name):
    short, long = (cost_of(name, length).peak_bytes for length in (256, 1024))
    assert (
        0 < long < 4.5 * short
    )  # the sequence is four times as long; quadratic memory would be 16 times as much
    assert cost_of(name, 256).peak_bytes == short  # to the byte


@pytest.mark.parametrize("name", PROFILED_LAYERS)
def test_a_layer_keeps_the_shape_of_its_states(name):
    states = SMALL.states(24, one_head=PROFILED_LAYERS[name].one_head)
    assert PROFILED_LAYERS[name].build(SMALL)(states).shape == states.shape
    assert PROFILED_LAYERS[name].build(SMALL, one_step=True)(states).shape == states.shape
    assert states.numel() == 24 * SMALL.total_width


def test_building_a_layer_does_not_touch_the_random_generator():
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    PROFILED_LAYERS["recurrent"].build(SMALL)
    assert torch.equal(torch.rand(1), expected)


def test_runs_take_turns_and_medians_tell_fast_from_slow():
    order = []

    def run(name, seconds):
        order.append(name)
        time.sleep(seconds)

    medians = time_in_turns(
        {"fast": partial(run, "fast", 0.001), "slow": partial(run, "slow", 0.21)}, seconds=0.8
    )
    turns = [name for name, _ in itertools.groupby(order)]
    assert turns == ["fast", "slow"] * (len(turns) // 2)
    assert order.count("slow") == len(turns) // 2 > 1  # a slow run takes a whole turn
    assert order.count("fast") > 2 * order.count("slow")
    assert 0.001 <= medians["fast"] < 0.2 < medians["slow"]


PAGE_COUNTER = """
import resource, torch
from jumok.profiling.cost import keep_freed_memory

def new_pages():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(2**24)  # 64 MB
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

new_pages()
print(keep_freed_memory(), *(new_pages() for _ in range(20)))
"""


def test_freed_memory_is_reused_without_new_pages():
    result = subprocess.run(
        [sys.executable, "-c", PAGE_COUNTER], capture_output=True, check=True, text=True, timeout=60
    )
    memory_kept, *pages = result.stdout.split()
    assert memory_kept == str(platform.libc_ver()[0] == "glibc")
    # Small blocks allocated inside freed memory may prevent reuse a few times, not every time.
    assert memory_kept == "False" or sum(int(count) < 100 for count in pages) > len(pages) // 2


def test_there_is_at_least_one_round():
    calls = []
    time_in_turns({"only": lambda: (calls.append(1), time.sleep(0.21))}, seconds=0)
    assert len(calls) == 1
