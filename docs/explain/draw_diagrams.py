"""Draws the diagrams of the pages on ideas: what flows where in a cell, a block, a decoder, a graph.

Run it from anywhere: python docs/explain/draw_diagrams.py
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from diagram_parts import (
    ARROWHEAD,
    BLUE,
    COLOURS,
    GREEN,
    PICTURES,
    WORDS,
    YELLOW,
    arrow,
    box,
    circle,
    framed_svg,
    label,
    line,
    write_pictures,
)
from draw_concepts import two_layers

from jumok.attention import Additive, HeadShape, MultiHead, ScaledDot, SingleHead, attention_graph
from jumok.plots.heat_map import EDGE, FADED, INK

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from diagram_parts import Pictures
    from torch import Tensor

ORANGE = COLOURS[1]


# --- Recurrent models ---------------------------------------------------------------------------------------


def draw_lstm_cell() -> Pictures:
    """The cell of before-attention.md: from left to right forget gate, input gate, candidate, output gate."""
    gates = {"forget": ("σ", 130), "input": ("σ", 220), "candidate": ("tanh", 290), "output": ("σ", 390)}
    lines = [
        ARROWHEAD,
        f'<rect x="84" y="64" width="400" height="226" rx="16" fill="white" stroke="{EDGE}"/>',
    ]
    # Along the top: the cell c is multiplied by the forget gate, and then i · g is added to it.
    lines += [arrow("M36 96H117"), arrow("M143 96H242"), arrow("M268 96H532", colour=ORANGE)]
    lines += [label(36, 82, "c_t−1", colour=ORANGE), label(532, 82, "c_t", colour=ORANGE)]
    # Along the bottom: the inputs of all gates.
    lines += [line("M36 262H390"), line("M98 318V262"), label(36, 248, "h_t−1"), label(98, 330, "x_t")]
    for name, (symbol, x) in gates.items():
        lines += [arrow(f"M{x} 262V236"), box(x, 222, symbol, width=52, fill=YELLOW)]
        lines.append(label(x, 278, name, colour=FADED))
    lines += [arrow("M130 208V109"), label(116, 160, "f_t")]
    lines += [line("M220 208V160H242"), line("M290 208V160"), arrow("M290 160H268"), arrow("M220 160H242")]
    lines += [arrow("M255 147V109"), label(206, 186, "i_t"), label(304, 186, "g_t")]
    lines += [arrow("M440 96V132", colour=ORANGE), box(440, 146, "tanh", width=52, fill=BLUE)]
    lines += [arrow("M390 208V190H427"), arrow("M440 160V177"), label(376, 186, "o_t")]
    lines += [arrow("M453 190H532"), label(532, 176, "h_t")]
    lines += [circle(130, 96, "×"), circle(255, 96, "+"), circle(255, 160, "×"), circle(440, 190, "×")]
    yield "lstm-cell", framed_svg("An LSTM cell", 568, 350, lines)


def attend_by_hand() -> tuple[list[float], list[float], float]:
    """Scores, weights and context of the step that sequence-to-sequence.md computes by hand."""
    score = Additive(HeadShape(1, query=1, key=1)).requires_grad_(False)
    for weight, number in ((score.query, 1.0), (score.key, 1.0), (score.energy, 2.0)):  # W, U, v
        weight.fill_(number)
    states, query = torch.tensor([[[-1.0], [0.0], [2.0]]]), torch.tensor([[[1.0]]])
    attention = SingleHead(score)
    attended = attention(query, attention.prepare(states, states), need_weights=True)
    if attended.weights is None:
        raise RuntimeError("The attention returned no weights.")
    scores = score.scores(query[None], score.prepare_keys(states[None])).flatten().tolist()
    return scores, attended.weights.flatten().tolist(), attended.context.item()


def draw_attention_decoder() -> Pictures:
    """The five steps of one output word, with the numbers of `attend_by_hand` and the input at the bottom."""
    scores, weights, context = attend_by_hand()
    columns = (150, 250, 350)
    lines = [ARROWHEAD]
    for y, step in ((340, "1 states"), (266, "2 scores"), (192, "3 weights"), (100, "4 context")):
        lines.append(label(24, y, step, colour=FADED, anchor="start"))
    lines.append(label(490, 50, "5 decode", colour=FADED))
    for x, word, state, score, weight in zip(columns, WORDS, ("−1", "0", "2"), scores, weights, strict=True):
        lines += [label(x, 394, word), arrow(f"M{x} 384V354"), box(x, 340, state, width=76, fill=GREEN)]
        lines += [arrow(f"M{x} 326V280"), box(x, 266, f"{score:.4f}", width=76)]
        lines += [arrow(f"M{x} 252V206"), box(x, 192, f"{weight:.4f}", width=76, fill=YELLOW)]
        lines.append(
            f'<path d="M{x} 178L{246 + (x - 250) / 9:.0f} 114" fill="none" stroke="{ORANGE}" '
            f'stroke-width="{1 + 8 * weight:.1f}" stroke-opacity="0.7"/>'
        )
    for a, b in pairwise(columns):  # the encoder reads in both directions
        lines += [arrow(f"M{a + 38} 334H{b - 39}"), arrow(f"M{b - 38} 347H{a + 39}")]
    lines += [circle(250, 100, "Σ"), arrow("M263 100H452"), label(350, 88, f"c_t = {context:.4f}")]
    lines += [label(308, 229, "softmax", colour=FADED)]
    # The decoder: its state before the step is the query. The state before the step, the context and the
    # previous word give the new state.
    lines += [box(490, 266, "s_t−1 = 1", width=84, fill=BLUE), label(490, 292, "state before", colour=FADED)]
    lines += [arrow(f"M448 266H418V304H{x + 20}V281", colour=COLOURS[2]) for x in columns]
    lines.append(arrow("M490 252V114"))
    lines += [box(490, 100, "s_t", width=76, fill=BLUE), label(560, 122, "new state", colour=FADED)]
    lines += [
        arrow("M576 192V178H520V114"),
        label(576, 204, "y_t−1"),
        label(576, 220, "word before", colour=FADED),
    ]
    lines += [arrow("M528 100H592"), label(606, 100, "y_t"), label(606, 84, "next word", colour=FADED)]
    yield "attention-decoder", framed_svg("One step of a decoder with attention", 660, 416, lines)


# --- The Transformer ----------------------------------------------------------------------------------------


def head_weights(heads: int, length: int) -> Tensor:
    """Weights (head, query, key) of an attention that was not trained.

    The states are large (standard deviation 5), so that the weights visibly differ.
    """
    torch.manual_seed(3)
    attention = MultiHead(width=64, heads=heads, mechanism=ScaledDot()).requires_grad_(False)
    weights = attention.attend_self(5 * torch.randn(1, length, 64), need_weights=True).weights
    if weights is None:
        raise RuntimeError("The attention returned no weights.")
    return weights[0]


def small_map(x: float, y: float, weights: Tensor, *, cell: int = 12) -> str:
    """Weights (query, key) as squares, white for 0 and blue for 1. The top left corner is at (x, y)."""
    squares = (
        f'<rect x="{x + cell * column:g}" y="{y + cell * row:g}" width="{cell}" height="{cell}" '
        f'fill="#{255 - int(255 * weight):02x}{255 - int(200 * weight):02x}ff" stroke="{EDGE}"/>'
        for row, values in enumerate(weights.tolist())
        for column, weight in enumerate(values)
    )
    return "".join(squares)


def draw_heads() -> Pictures:
    """Eight heads of width 64 in a model of width 512: the projections are split, and W_O mixes the heads."""
    heads, left, step = 8, 40, 66
    middles = [left + step / 2 + step * head for head in range(heads)]
    middle, right = left + step * heads / 2, left + step * heads
    notes = right + 16
    lines = [ARROWHEAD, box(middle, 72, "states (n, 512)", width=220, fill=GREEN)]
    for x, name in ((middle - 110, "W_Q"), (middle, "W_K"), (middle + 110, "W_V")):
        lines += [arrow(f"M{middle} 86L{x:g} 112"), box(x, 126, name, width=90, fill=YELLOW)]
        lines.append(line(f"M{x:g} 140V158"))
    lines += [line(f"M{middles[0]:g} 158H{middles[-1]:g}")]
    for head, (x, weights) in enumerate(zip(middles, head_weights(heads, 4), strict=True)):
        lines += [arrow(f"M{x:g} 158V182"), label(x, 194, f"Q K V {head}", colour=FADED)]
        lines += [small_map(x - 24, 208, weights), arrow(f"M{x:g} 260V284")]
        lines.append(
            f'<rect x="{x - step / 2:g}" y="286" width="{step}" height="28" fill="{BLUE}" stroke="{INK}"/>'
        )
        lines.append(label(x, 300, f"Z{head}"))
    lines += [arrow(f"M{middle} 314V338"), box(middle, 352, "W_O", width=220, fill=YELLOW)]
    lines += [arrow(f"M{middle} 366V390"), box(middle, 404, "output (n, 512)", width=220, fill=GREEN)]
    for y, note in (
        (126, "the whole state, projected"),
        (170, "split into 8 heads of (n, 64)"),
        (232, "each head attends"),
        (300, "concatenate to (n, 512)"),
        (352, "mix the heads"),
    ):
        lines.append(label(notes, y, note, colour=FADED, anchor="start"))
    yield "heads", framed_svg("Split, attend, concatenate, W_O", 780, 436, lines)


def draw_block() -> Pictures:
    """The two blocks as published (add, then norm), with the input at the bottom."""
    blocks = {
        "encoder block": ["self-attention", "feed-forward"],
        "decoder block": ["masked self-attention", "cross-attention", "feed-forward"],
    }
    lines = [ARROWHEAD]
    bottom, step = 372, 94
    for middle, (name, sublayers) in zip((150, 420), blocks.items(), strict=True):
        lines.append(label(middle, bottom + 12, name, colour=FADED))
        for index, sublayer in enumerate(sublayers):
            y = bottom - index * step
            lines.append(arrow(f"M{middle} {y}V{y - 26}"))
            lines.append(box(middle, y - 40, sublayer))
            lines.append(arrow(f"M{middle} {y - 54}V{y - 64}"))
            lines.append(box(middle, y - 78, "add, then norm", fill=YELLOW))
            lines.append(arrow(f"M{middle} {y - 10}H{middle - 106}V{y - 78}H{middle - 86}", colour=ORANGE))
        top = bottom - len(sublayers) * step
        lines.append(arrow(f"M{middle} {top + 2}V{top - 14}"))
    top = bottom - 2 * step - 6
    lines.append(arrow(f"M150 {top}H285V{bottom - step - 40}H334", colour=COLOURS[2]))
    lines.append(label(222, top - 12, "keys and values", colour=COLOURS[2]))
    yield "block", framed_svg("Post-norm blocks: add, then norm, after each sublayer", 560, 412, lines)


def draw_norms() -> Pictures:
    """Post-norm and pre-norm side by side: whether the residual path goes through a norm."""
    lines = [ARROWHEAD]
    orders = {
        "post-norm": (("sublayer F", "white"), ("add", GREEN), ("norm", YELLOW)),
        "pre-norm": (("norm", YELLOW), ("sublayer F", "white"), ("add", GREEN)),
    }
    notes = ("norm(x + F(x))", "a norm in the residual path"), ("x + F(norm(x))", "a free residual path")
    for middle, (name, parts), (formula, note) in zip((150, 410), orders.items(), notes, strict=True):
        lines += [label(middle, 68, name), label(middle, 88, formula, colour=FADED)]
        for index, (part, fill) in enumerate(parts):
            y = 264 - 56 * index
            lines += [arrow(f"M{middle} {y + 42}V{y + 16}"), box(middle, y, part, width=120, fill=fill)]
            if part == "add":
                lines.append(arrow(f"M{middle} 296H{middle - 90}V{y}H{middle - 62}", colour=ORANGE))
        lines += [arrow(f"M{middle} 138V112"), label(middle, 318, "x")]
        lines.append(label(middle, 344, note, colour=ORANGE))
    yield "norms", framed_svg("Two places for the norm", 560, 366, lines)


def draw_shifted_right() -> Pictures:
    """Each target word is the next input; the mask hides all later inputs."""
    targets, columns = ("나는", "집에", "간다", "</s>"), (190, 290, 390, 490)
    inputs = ("<s>", *targets[:-1])
    lines = [
        ARROWHEAD,
        label(24, 86, "to predict", anchor="start"),
        label(24, 238, "decoder input", anchor="start"),
    ]
    for x, target, input_word in zip(columns, targets, inputs, strict=True):
        lines += [box(x, 238, input_word, width=76, fill=GREEN), arrow(f"M{x} 224V188")]
        lines += [arrow(f"M{x} 136V102"), box(x, 86, target, width=76, fill=YELLOW)]
    for x, following in pairwise(columns):
        lines.append(arrow(f"M{x + 38} 90C{x + 58} 96 {x + 50} 214 {following - 40} 234", colour=ORANGE))
    lines.append(f'<rect x="140" y="136" width="400" height="50" rx="8" fill="white" stroke="{INK}"/>')
    lines += [
        label(24, 161, "decoder", anchor="start"),
        label(340, 161, "masked: no later inputs", colour=FADED),
    ]
    yield "shifted-right", framed_svg("Shifted right", 564, 276, lines)


# --- The graph ----------------------------------------------------------------------------------------------


def draw_graph() -> Pictures:
    """The words of two layers as nodes, with the input at the bottom.

    The edges from a word to the layer below have a total weight of 1. Half of this total is the residual
    connection, an edge to the same word.
    """
    lines: list[str] = []
    heights, columns = (270, 170, 70), (130, 280, 430)
    for index, layer in enumerate(two_layers()):
        graph = attention_graph((layer + torch.eye(3)) / 2, WORDS, WORDS)
        for (_, query), (_, key), weight in graph.edges(data="weight"):
            start, end = (columns[key], heights[index] - 14), (columns[query], heights[index + 1] + 14)
            lines.append(
                f'<path d="M{start[0]} {start[1]}L{end[0]} {end[1]}" stroke="{ORANGE}" '
                f'stroke-width="{6 * weight:.1f}" stroke-opacity="0.6"/>'
            )
            share = 0.3 if query == key else 0.62  # so that labels of crossing lines do not overlap
            x, y = (a + share * (b - a) for a, b in zip(start, end, strict=True))
            lines.append(label(x + 16, y, f"{weight:g}", colour=FADED))
    for height, row in zip(heights, ("the words", "layer 1", "layer 2"), strict=True):
        lines.append(label(52, height, row, colour=FADED))
        for x, word in zip(columns, WORDS, strict=True):
            lines.append(box(x, height, word, width=68))
    yield "graph", framed_svg("Two layers as a graph", 500, 304, lines)


DRAWINGS: tuple[Callable[[], Pictures], ...] = (
    draw_lstm_cell,
    draw_attention_decoder,
    draw_heads,
    draw_block,
    draw_norms,
    draw_shifted_right,
    draw_graph,
)


def draw_all(folder: Path) -> None:
    for drawing in DRAWINGS:
        write_pictures(drawing(), folder)


if __name__ == "__main__":
    draw_all(PICTURES)
