"""Draws maps and curves of the pages on ideas (recurrence, self-attention, masks, cost and others).

Run it from anywhere: python docs/explain/draw_concepts.py
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import torch
from diagram_parts import COLOURS, PICTURES, WORDS, framed_svg, write_pictures

from jumok.attention import (
    ScaledDot,
    SingleHead,
    causal_mask,
    masked_softmax,
    padding_mask,
    roll_out,
    sinusoids,
)
from jumok.config.recipe import TrainingSettings
from jumok.plots.heat_map import EDGE, FADED, draw_alignment
from jumok.profiling.layers import PROFILED_LAYERS, Shape
from jumok.training.loop.schedule import Plan, learning_rate
from jumok.types import AttentionMap

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from diagram_parts import Pictures
    from torch import Tensor

# --- Maps ---------------------------------------------------------------------------------------------------


def draw_map(
    title: str,
    weights: Tensor,
    *,
    rows: tuple[str, ...],
    columns: tuple[str, ...],
    site: str = "encoder",
    **facts: str,
) -> str:
    """Weights (row, column) as a picture, with the facts in its caption."""
    attention = AttentionMap(site, weights.numpy(), rows, columns, facts)
    return draw_alignment(attention, title=title)


def draw_self_attention() -> Pictures:
    words = torch.tensor([[1.0, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1]])
    # With W_K, the key of each word is the vector of the previous word. The key of I is the vector of home.
    attention = SingleHead(ScaledDot())
    for name, title, keys in (
        ("itself", "Without projections", words),
        ("projected", "With W_K", words @ (words.T @ words.roll(1, dims=0) / 4)),
    ):
        attended = attention(words[None], attention.prepare(keys[None], words[None]), need_weights=True)
        yield name, draw_map(title, attended.weights[0, 0], rows=WORDS, columns=WORDS)


def draw_masks() -> Pictures:
    allowed = padding_mask(torch.tensor([5, 8, 3]), 8).float()
    rows = ("5 words", "8 words", "3 words")
    columns = tuple(str(position) for position in range(1, 9))
    yield "padding", draw_map("Lengths 5, 8 and 3", allowed, rows=rows, columns=columns, white="allowed")

    inputs = ("<s>", "나는", "집에", "간다")
    weights = masked_softmax(torch.zeros(4, 4), causal_mask(4, 4, query_offset=0))
    title = "The look-ahead triangle"
    triangle = draw_map(title, weights, rows=inputs, columns=inputs, site="decoder", scores="all equal")
    yield "look-ahead", triangle


def draw_offspring() -> Pictures:
    """For offspring.md (BERT, GPT): what each word attends to in an encoder alone, and in a decoder alone."""
    words = ("I", "go", "home", "now")
    for site, title in (
        ("encoder", "The encoder alone: all words"),
        ("decoder", "The decoder alone: the past"),
    ):
        attention = SingleHead(ScaledDot(causal=site == "decoder"))
        weights = attention.attend_self(torch.zeros(1, 4, 8), need_weights=True).weights[0, 0]
        picture = draw_map(title, weights, rows=words, columns=words, site=site, scores="all equal")
        yield f"offspring-{site}", picture


def two_layers() -> Tensor:
    """Weights (layer, query, key) of two layers in which every word attends to the previous one."""
    layer = torch.tensor([[1.0, 0, 0], [1, 0, 0], [0, 1, 0]])  # the first word attends to itself
    return torch.stack([layer, layer])


def draw_roll_out() -> Pictures:
    layers = two_layers()
    title = "Each layer: the previous word"
    yield "roll-out-layer", draw_map(title, layers[0], rows=WORDS, columns=WORDS, head="one of one")
    flow = torch.from_numpy(roll_out(list(layers))).float()
    title = "Rolled out over two layers"
    yield "roll-out", draw_map(title, flow, rows=WORDS, columns=WORDS, residual="0.5")


# --- Curves -------------------------------------------------------------------------------------------------

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 300, 76, 150, 48, 48
DASHES = ("", "", "", "", "8 8", "2 8")
"""The dashes of up to six curves. The fifth and the sixth are dashed, to be visible on other curves."""


@dataclass(frozen=True)
class Scale:
    """Maps numbers (`low` to `high`) to pixels (`begin` to `end`); `ticks`: number → label."""

    low: float
    high: float
    begin: float
    end: float
    ticks: dict[float, str]

    def __call__(self, value: float) -> float:
        return self.begin + (value - self.low) / (self.high - self.low) * (self.end - self.begin)


def draw_curves(
    title: str, axis: str, across: Scale, up: Scale, curves: dict[str, list[tuple[float, float]]]
) -> str:
    """Curves through points, with their names on the right.

    `across` and `up` are the scales of the two axes, `axis` is the label of the horizontal one.
    """
    lines = []
    for value, tick in up.ticks.items():
        y = up(value)
        lines.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="{EDGE}"/>')
        lines.append(
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="{FADED}">{escape(tick)}</text>'
        )
    for value, tick in across.ticks.items():
        position = f'x="{across(value):.1f}" y="{HEIGHT - BOTTOM + 18}"'
        lines.append(f'<text {position} text-anchor="middle" fill="{FADED}">{escape(tick)}</text>')
    lines.append(
        f'<text x="{WIDTH - RIGHT + 28}" y="{HEIGHT - BOTTOM + 18}" fill="{FADED}">{escape(axis)}</text>'
    )
    for index, (curve, points) in enumerate(curves.items()):
        colour = COLOURS[index % len(COLOURS)]
        path = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in points)
        dash = f' stroke-dasharray="{DASHES[index]}"' if DASHES[index] else ""
        lines.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        y = TOP + 14 + 20 * index
        lines.append(f'<text x="{WIDTH - RIGHT + 12}" y="{y}" fill="{colour}">{escape(curve)}</text>')
    return framed_svg(title, WIDTH, HEIGHT, lines)


def draw_sines() -> Pictures:
    points_per_position = 8  # with fewer points, the fast sine would have corners
    length = 60
    across = Scale(0, length, LEFT, WIDTH - RIGHT, {p: str(p) for p in range(0, length + 1, 10)})
    up = Scale(-1, 1, HEIGHT - BOTTOM, TOP, {-1: "−1", 0: "0", 1: "1"})
    table = sinusoids(length + 1, 8)  # (position, column): the even columns are sines
    names = {0: "sin p", 2: "sin p/10", 4: "sin p/100", 6: "sin p/1000"}
    curves = {}
    for column, name in names.items():
        positions = torch.arange(length * points_per_position + 1) / points_per_position
        curve = torch.sin(positions / 10 ** (column / 2))
        torch.testing.assert_close(curve[::points_per_position], table[:, column], atol=1e-5, rtol=0)
        curves[name] = list(zip(positions.tolist(), curve.tolist(), strict=True))
    yield "sines", draw_curves("Positions of width 8: the sines", "position p", across, up, curves)


def draw_warm_up() -> Pictures:
    warmup, last = 4000, 40_000
    peak = (512 * warmup) ** -0.5
    settings = TrainingSettings(learning_rate=peak, warmup_steps=warmup, schedule="inverse-sqrt")
    across = Scale(0, last, LEFT, WIDTH - RIGHT, {step: f"{step:,}" for step in (0, 4000, 16_000, 40_000)})
    up = Scale(0, peak, HEIGHT - BOTTOM, TOP, {0: "0", peak / 2: "0.00035", peak: "0.00070"})
    plan = Plan(((0, None),))  # no planned end
    steps = [1, *range(200, last + 1, 200)]
    curve = [(0.0, 0.0), *((step, learning_rate(step, settings, plan)) for step in steps)]
    title = "Width 512, 4,000 steps of warm-up"
    yield "warm-up", draw_curves(title, "step", across, up, {"learning rate": curve})


def draw_forgetting() -> Pictures:
    """What the last state retains of the first word: its gradient with respect to the first word.

    The plain step has U = 0.5, the LSTM cell a forget gate of 0.95. All words after the first are 0.
    """
    max_length = 50
    gradients: dict[str, list[tuple[float, float]]] = {"plain step": [], "LSTM cell": []}
    for length in range(1, max_length + 1):
        first = torch.zeros((), requires_grad=True)
        state = cell = first + 0
        for _ in range(length - 1):
            state = torch.tanh(0.5 * state)
            cell = 0.95 * cell
        for points, end in zip(gradients.values(), (state, cell), strict=True):
            points.append((length, torch.autograd.grad(end, first)[0].item()))
    across = Scale(1, max_length, LEFT, WIDTH - RIGHT, {n: str(n) for n in (1, 10, 20, 30, 40, 50)})
    up = Scale(0, 1, HEIGHT - BOTTOM, TOP, {0: "0", 0.5: "0.5", 1: "1"})
    yield "forgetting", draw_curves("What is left of the first word", "words", across, up, gradients)


def draw_gradients() -> Pictures:
    """The gradient at the first layer of stacks of 1 to 12 layers, each with the derivative F′ = 0.1.

    The vertical axis is logarithmic.
    """
    depths = range(1, 13)
    curves = {
        "with add": [(depth, depth * math.log10(1.1)) for depth in depths],
        "without add": [(depth, depth * math.log10(0.1)) for depth in depths],
    }
    across = Scale(1, 12, LEFT, WIDTH - RIGHT, {depth: str(depth) for depth in (1, 4, 8, 12)})
    ticks = {0.0: "1", -4: "0.0001", -8: "10⁻⁸", -12: "10⁻¹²"}
    up = Scale(-12, 1, HEIGHT - BOTTOM, TOP, ticks)
    yield "gradients", draw_curves("Gradient at the first layer", "layers", across, up, curves)


def draw_operations() -> Pictures:
    """Multiplications of each kind of layer, by the formulas of `jumok bench attention`.

    Both axes are logarithmic.
    """
    shape, sizes = Shape(), [2**power for power in range(6, 15)]
    names = {
        "self-attention": "self-attention",
        "convolutional": f"convolutional, k = {shape.kernel}",
        "recurrent": "recurrent",
        "restricted": f"restricted, r = {shape.neighbours}",
        "efficient": "efficient",
        "linear": "linear",
    }
    curves = {
        name: [(math.log2(n), math.log10(PROFILED_LAYERS[row].multiply_adds(shape, n))) for n in sizes]
        for row, name in names.items()
    }
    across = Scale(6, 14, LEFT, WIDTH - RIGHT, {6: "64", 8: "256", 10: "1,024", 12: "4,096", 14: "16,384"})
    up = Scale(6, 12, HEIGHT - BOTTOM, TOP, {6: "10⁶", 8: "10⁸", 10: "10¹⁰", 12: "10¹²"})
    title = "Multiplications of a layer, 8 heads of 64"
    yield "operations", draw_curves(title, "tokens n", across, up, curves)


DRAWINGS: tuple[Callable[[], Pictures], ...] = (
    draw_self_attention,
    draw_masks,
    draw_offspring,
    draw_roll_out,
    draw_sines,
    draw_warm_up,
    draw_forgetting,
    draw_gradients,
    draw_operations,
)


def draw_all(folder: Path) -> None:
    for drawing in DRAWINGS:
        write_pictures(drawing(), folder)


if __name__ == "__main__":
    draw_all(PICTURES)
