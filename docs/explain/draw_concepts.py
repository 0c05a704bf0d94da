"""Draws the pictures of the pages about ideas (masks, self-attention, positions, training).

Run it from anywhere: python docs/explain/draw_concepts.py
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from jumok.attention import Direct, ScaledDot, look_ahead, masked_softmax, padding, sinusoids
from jumok.look import draw_alignment
from jumok.look.heat_map import EDGE, FADED, FONTS, INK, PAPER
from jumok.recipe import TrainingSettings
from jumok.training.schedule import Plan, learning_rate
from jumok.values import AttentionMap

if TYPE_CHECKING:
    from torch import Tensor

PICTURES = Path(__file__).with_name("pictures")
WORDS = ("I", "go", "home")


# --- Maps ---------------------------------------------------------------------------------------------------


def draw_map(
    name: str, title: str, weights: Tensor, *, rows: tuple[str, ...], columns: tuple[str, ...], **facts: str
) -> None:
    """Weights (row, column) of self-attention as a picture; the facts stand in its caption."""
    site = "decoder" if "<s>" in rows else "encoder"
    attention = AttentionMap(site, weights.numpy(), rows, columns, facts)
    write(name, draw_alignment(attention, title=title))


def draw_self_attention() -> None:
    words = torch.tensor([[1.0, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1]])
    attention = Direct(ScaledDot())
    for name, title, keys in (
        ("itself", "Without projections", words),
        ("projected", "With W_K", words @ (words.T @ words.roll(1, dims=0) / 4)),
    ):
        attended = attention(words[None], attention.prepare(keys[None], words[None]), need_weights=True)
        draw_map(name, title, attended.weights[0, 0], rows=WORDS, columns=WORDS)


def draw_masks() -> None:
    allowed = padding(torch.tensor([5, 8, 3]), 8).float()
    rows = ("5 words", "8 words", "3 words")
    columns = tuple(str(place) for place in range(1, 9))
    draw_map("padding", "Lengths 5, 8 and 3", allowed, rows=rows, columns=columns, white="may be seen")

    fed = ("<s>", "나는", "집에", "간다")
    weights = masked_softmax(torch.zeros(4, 4), look_ahead(4, 4, first=0))
    draw_map("look-ahead", "The look-ahead triangle", weights, rows=fed, columns=fed, scores="all equal")


# --- Curves -------------------------------------------------------------------------------------------------

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 300, 76, 150, 48, 48
COLOURS = ("#1c1d21", "#d9480f", "#1971c2", "#2f9e44")


@dataclass(frozen=True)
class Scale:
    """From numbers to pixels; the marks are the numbers that are written beside the axis."""

    low: float
    high: float
    begin: float
    end: float
    marks: dict[float, str]

    def __call__(self, value: float) -> float:
        return self.begin + (value - self.low) / (self.high - self.low) * (self.end - self.begin)


def draw_curves(
    name: str, title: str, axis: str, across: Scale, up: Scale, curves: dict[str, list[tuple[float, float]]]
) -> None:
    """Curves of points, each with its name at the right."""
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" role="img" font-family="{FONTS}" font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="10" '
        f'fill="{PAPER}" stroke="{EDGE}"/>',
        f'<text x="24" y="30" font-size="16" font-weight="600" fill="{INK}">{escape(title)}</text>',
    ]
    for value, label in up.marks.items():
        y = up(value)
        lines.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="{EDGE}"/>')
        lines.append(
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="{FADED}">{escape(label)}</text>'
        )
    for value, label in across.marks.items():
        place = f'x="{across(value):.1f}" y="{HEIGHT - BOTTOM + 18}"'
        lines.append(f'<text {place} text-anchor="middle" fill="{FADED}">{escape(label)}</text>')
    lines.append(
        f'<text x="{WIDTH - RIGHT + 28}" y="{HEIGHT - BOTTOM + 18}" fill="{FADED}">{escape(axis)}</text>'
    )
    for number, (label, points) in enumerate(curves.items()):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in points)
        lines.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        y = TOP + 14 + 20 * number
        lines.append(f'<text x="{WIDTH - RIGHT + 12}" y="{y}" fill="{colour}">{escape(label)}</text>')
    write(name, "\n".join([*lines, "</svg>"]) + "\n")


def draw_sines() -> None:
    steps = 8  # a place is drawn in so many steps, or a fast sine would have corners
    places = 60
    across = Scale(0, places, LEFT, WIDTH - RIGHT, {place: str(place) for place in range(0, places + 1, 10)})
    up = Scale(-1, 1, HEIGHT - BOTTOM, TOP, {-1: "−1", 0: "0", 1: "1"})
    table = sinusoids(places + 1, 8)  # (place, column): the even columns are sines
    names = {0: "sin p", 2: "sin p/10", 4: "sin p/100", 6: "sin p/1000"}
    curves = {}
    for column, name in names.items():
        fine = torch.arange(places * steps + 1) / steps
        curve = torch.sin(fine / 10 ** (column / 2))
        torch.testing.assert_close(curve[::steps], table[:, column], atol=1e-5, rtol=0)
        curves[name] = list(zip(fine.tolist(), curve.tolist(), strict=True))
    draw_curves("sines", "Positions of width 8: the sines", "place p", across, up, curves)


def draw_warm_up() -> None:
    warmup, last = 4000, 40_000
    peak = (512 * warmup) ** -0.5
    settings = TrainingSettings(learning_rate=peak, warmup=warmup, schedule="inverse-sqrt")
    across = Scale(0, last, LEFT, WIDTH - RIGHT, {step: f"{step:,}" for step in (0, 4000, 16_000, 40_000)})
    up = Scale(0, peak, HEIGHT - BOTTOM, TOP, {0: "0", peak / 2: "0.00035", peak: "0.00070"})
    plan = Plan(((0, None),))
    steps = [1, *range(200, last + 1, 200)]
    curve = [(0.0, 0.0), *((step, learning_rate(step, settings, plan)) for step in steps)]
    draw_curves("warm-up", "Width 512, 4,000 steps of warm-up", "step", across, up, {"learning rate": curve})


def write(name: str, picture: str) -> None:
    PICTURES.mkdir(exist_ok=True)
    (PICTURES / f"{name}.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    draw_self_attention()
    draw_masks()
    draw_sines()
    draw_warm_up()
