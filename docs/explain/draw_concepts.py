"""Draws the pictures of the pages on ideas (recurrence, self-attention, masks, blocks, cost and others).

Run it from anywhere: python docs/explain/draw_concepts.py
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import torch

from jumok.attention import (
    ScaledDot,
    SingleHead,
    attention_graph,
    causal_mask,
    masked_softmax,
    padding_mask,
    roll_out,
    sinusoids,
)
from jumok.config.recipe import TrainingSettings
from jumok.plots.heat_map import BACKGROUND, EDGE, FADED, FONTS, INK, draw_alignment
from jumok.profiling.layers import PROFILED_LAYERS, Shape
from jumok.training.loop.schedule import Plan, learning_rate
from jumok.types import AttentionMap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch import Tensor

Pictures: TypeAlias = "Iterator[tuple[str, str]]"  # name and SVG of each picture

PICTURES = Path(__file__).with_name("pictures")
WORDS = ("I", "go", "home")


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
    """The words that each of four words attends to, in an encoder alone and in a decoder alone."""
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
    before = torch.tensor([[1.0, 0, 0], [1, 0, 0], [0, 1, 0]])  # the first attends to itself
    return torch.stack([before, before])


def draw_roll_out() -> Pictures:
    layers = two_layers()
    title = "Each layer: the previous word"
    yield "roll-out-layer", draw_map(title, layers[0], rows=WORDS, columns=WORDS, head="one of one")
    flow = torch.from_numpy(roll_out(list(layers))).float()
    title = "Rolled out over two layers"
    yield "roll-out", draw_map(title, flow, rows=WORDS, columns=WORDS, residual="0.5")


# --- Frames, lines and boxes --------------------------------------------------------------------------------


def framed(title: str, width: int, height: int, elements: list[str]) -> str:
    """An SVG of that size with a title, a frame and these elements."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img" font-family="{FONTS}" font-size="12">',
            f"<title>{escape(title)}</title>",
            f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="10" '
            f'fill="{BACKGROUND}" stroke="{EDGE}"/>',
            f'<text x="24" y="30" font-size="16" font-weight="600" fill="{INK}">{escape(title)}</text>',
            *elements,
            "</svg>\n",
        ]
    )


def label(x: float, y: float, text: str, *, colour: str = INK) -> str:
    return f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle" fill="{colour}">{escape(text)}</text>'


def arrow(path: str, *, colour: str = INK) -> str:
    """A path with an arrowhead at its end."""
    return f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.5" marker-end="url(#head)"/>'


def box(middle: float, y: float, text: str, *, width: int = 168, fill: str = "white") -> str:
    shape = f'x="{middle - width / 2:g}" y="{y - 14:g}" width="{width}" height="28" rx="6"'
    return f'<rect {shape} fill="{fill}" stroke="{INK}"/>' + label(middle, y, text)


HEAD = (
    '<defs><marker id="head" viewBox="0 0 6 6" refX="5.5" refY="3" markerWidth="6" markerHeight="6" '
    f'orient="auto"><path d="M0 0L6 3L0 6z" fill="{INK}"/></marker></defs>'
)


def draw_graph() -> Pictures:
    """The words of two layers as nodes, with the input at the bottom; half of each weight is the residual."""
    lines: list[str] = []
    heights, columns = (270, 170, 70), (130, 280, 430)
    for index, layer in enumerate(two_layers()):
        graph = attention_graph((layer + torch.eye(3)) / 2, WORDS, WORDS)
        for (_, query), (_, key), weight in graph.edges(data="weight"):
            start, end = (columns[key], heights[index] - 14), (columns[query], heights[index + 1] + 14)
            lines.append(
                f'<path d="M{start[0]} {start[1]}L{end[0]} {end[1]}" stroke="{COLOURS[1]}" '
                f'stroke-width="{6 * weight:.1f}" stroke-opacity="0.6"/>'
            )
            share = 0.3 if query == key else 0.62  # so that labels of crossing lines do not overlap
            x, y = (a + share * (b - a) for a, b in zip(start, end, strict=True))
            lines.append(label(x + 16, y, f"{weight:g}", colour=FADED))
    for height, row in zip(heights, ("the words", "layer 1", "layer 2"), strict=True):
        lines.append(label(52, height, row, colour=FADED))
        for x, word in zip(columns, WORDS, strict=True):
            lines.append(box(x, height, word, width=68))
    yield "graph", framed("Two layers as a graph", 500, 304, lines)


def draw_block() -> Pictures:
    """The two blocks as published (add, then norm), with the input at the bottom."""
    blocks = {
        "encoder block": ["self-attention", "feed-forward"],
        "decoder block": ["masked self-attention", "cross-attention", "feed-forward"],
    }
    lines = [HEAD]
    bottom, step = 372, 94
    for middle, (name, sublayers) in zip((150, 420), blocks.items(), strict=True):
        lines.append(label(middle, bottom + 12, name, colour=FADED))
        for index, sublayer in enumerate(sublayers):
            y = bottom - index * step
            lines.append(arrow(f"M{middle} {y}V{y - 26}"))
            lines.append(box(middle, y - 40, sublayer))
            lines.append(arrow(f"M{middle} {y - 54}V{y - 64}"))
            lines.append(box(middle, y - 78, "add, then norm", fill="#fff3bf"))
            lines.append(
                arrow(f"M{middle} {y - 10}H{middle - 106}V{y - 78}H{middle - 86}", colour=COLOURS[1])
            )
        top = bottom - len(sublayers) * step
        lines.append(arrow(f"M{middle} {top + 2}V{top - 14}"))
    top = bottom - 2 * step - 6
    lines.append(arrow(f"M150 {top}H285V{bottom - step - 40}H334", colour=COLOURS[2]))
    lines.append(label(222, top - 12, "keys and values", colour=COLOURS[2]))
    yield "block", framed("A block: add and norm after each sublayer", 560, 412, lines)


# --- Curves -------------------------------------------------------------------------------------------------

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 300, 76, 150, 48, 48
COLOURS = ("#1c1d21", "#d9480f", "#1971c2", "#2f9e44")


@dataclass(frozen=True)
class Scale:
    """Maps numbers to pixels; `ticks` are the labels of the axis."""

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
    """Curves through points, with their names on the right."""
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
        lines.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        y = TOP + 14 + 20 * index
        lines.append(f'<text x="{WIDTH - RIGHT + 12}" y="{y}" fill="{colour}">{escape(curve)}</text>')
    return framed(title, WIDTH, HEIGHT, lines)


def draw_sines() -> Pictures:
    steps = 8  # points per position: with fewer a fast sine would have corners
    length = 60
    across = Scale(0, length, LEFT, WIDTH - RIGHT, {p: str(p) for p in range(0, length + 1, 10)})
    up = Scale(-1, 1, HEIGHT - BOTTOM, TOP, {-1: "−1", 0: "0", 1: "1"})
    table = sinusoids(length + 1, 8)  # (position, column): the even columns are sines
    names = {0: "sin p", 2: "sin p/10", 4: "sin p/100", 6: "sin p/1000"}
    curves = {}
    for column, name in names.items():
        fine = torch.arange(length * steps + 1) / steps
        curve = torch.sin(fine / 10 ** (column / 2))
        torch.testing.assert_close(curve[::steps], table[:, column], atol=1e-5, rtol=0)
        curves[name] = list(zip(fine.tolist(), curve.tolist(), strict=True))
    yield "sines", draw_curves("Positions of width 8: the sines", "position p", across, up, curves)


def draw_warm_up() -> Pictures:
    warmup, last = 4000, 40_000
    peak = (512 * warmup) ** -0.5
    settings = TrainingSettings(learning_rate=peak, warmup_steps=warmup, schedule="inverse-sqrt")
    across = Scale(0, last, LEFT, WIDTH - RIGHT, {step: f"{step:,}" for step in (0, 4000, 16_000, 40_000)})
    up = Scale(0, peak, HEIGHT - BOTTOM, TOP, {0: "0", peak / 2: "0.00035", peak: "0.00070"})
    plan = Plan(((0, None),))
    steps = [1, *range(200, last + 1, 200)]
    curve = [(0.0, 0.0), *((step, learning_rate(step, settings, plan)) for step in steps)]
    title = "Width 512, 4,000 steps of warm-up"
    yield "warm-up", draw_curves(title, "step", across, up, {"learning rate": curve})


def draw_forgetting() -> Pictures:
    """What the last state retains of the first word: the gradient of the last state by the first word."""
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
    """The gradient at the first layer of stacks with F′ = 0.1 per layer; the vertical axis is logarithmic."""
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
    """Multiplications of a layer by the formulas of `jumok bench attention`; both axes are logarithmic."""
    shape, sizes = Shape(), [2**power for power in range(6, 15)]
    curves = {
        name: [(math.log2(n), math.log10(PROFILED_LAYERS[name].multiply_adds(shape, n))) for n in sizes]
        for name in ("self-attention", "recurrent", "efficient")
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
    draw_graph,
    draw_block,
    draw_sines,
    draw_warm_up,
    draw_forgetting,
    draw_gradients,
    draw_operations,
)


def draw_all(folder: Path) -> None:
    """Write every picture into the folder, as `<name>.svg`."""
    folder.mkdir(parents=True, exist_ok=True)
    for drawing in DRAWINGS:
        for name, picture in drawing():
            (folder / f"{name}.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    draw_all(PICTURES)
