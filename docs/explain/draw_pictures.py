"""Draws the maps of the pages on mechanisms, from the same examples in every run.

Run it from anywhere: python docs/explain/draw_pictures.py
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from diagram_parts import PICTURES, write_pictures

from jumok.attention import (
    Additive,
    Efficient,
    HeadShape,
    LinearAttention,
    LuongDot,
    LuongGeneral,
    LuongLocalM,
    LuongLocalP,
    MultiHead,
    Restricted,
    ScaledDot,
    Widths,
)
from jumok.attention.lookup import NAMES, Score, attend, gaussian, name_database, name_vector
from jumok.plots.heat_map import draw_alignment
from jumok.types import AttentionMap

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from torch import Tensor

    from jumok.attention import Mechanism

# Source and target sentences. The state of a word is often the unit vector of its index.
HOME, HOME_IN_KOREAN = ("I", "go", "home", "."), ("나는", "집에", "간다", ".")
ALIGNED_TO = [0, 2, 1, 3]  # for each word of HOME_IN_KOREAN, the index of its translation in HOME
BOOKS = ("I", "read", "two", "books", "at", "the", "library", "today")
BOOKS_IN_KOREAN = ("나는", "오늘", "도서관에서", "책", "두", "권을", "읽는다")
# From figures 3 and 4 of Vaswani et al. 2017.
_MAKING = (
    "It is in this spirit that a majority of American governments have passed new laws since 2009 "
    "making the registration or voting process more difficult ."
)
MAKING = tuple(_MAKING.split())
LAW = (
    "The",
    "Law",
    "will",
    "never",
    "be",
    "perfect",
    ",",
    "but",
    "its",
    "application",
    "should",
    "be",
    "just",
)
STUDENT_IN_KOREAN = ("그", "학생은", "오늘", "도서관에서", "책", "두", "권을", "읽는다")


def weights_of(mechanism: Mechanism[Any], query: Tensor, keys: Tensor) -> Tensor:
    """The weights (query, key) of one head, for queries and keys (length, width)."""
    memory = mechanism.prepare(keys[None, None], keys[None, None], None)
    weights: Tensor = mechanism(query[None, None], memory, need_weights=True).weights
    return weights[0, 0]


def draw(
    weights: Tensor, queries: Sequence[str], keys: Sequence[str], /, *, site: str, title: str, **facts: str
) -> str:
    """One map as an SVG, with the facts in the line below it."""
    attention = AttentionMap(site, weights.numpy()[None, None], tuple(queries), tuple(keys), facts)
    return draw_alignment(attention, title=title)


def random_states(length: int, width: int, *, seed: int) -> tuple[Tensor, Tensor]:
    """Standard normal queries and keys, (length, width) each."""
    random = torch.Generator().manual_seed(seed)
    return torch.randn(length, width, generator=random), torch.randn(length, width, generator=random)


def additive() -> str:
    mechanism = Additive(HeadShape(1, query=4, key=4))
    mechanism.query.copy_(torch.eye(4))
    mechanism.key.copy_(torch.eye(4))
    mechanism.energy.fill_(-6.0)  # v
    weights = weights_of(mechanism, torch.eye(4)[ALIGNED_TO], torch.eye(4))
    return draw(weights, HOME_IN_KOREAN, HOME, site="cross", title="Additive", states="unit vectors", v="−6")


def luong_dot() -> str:
    weights = weights_of(LuongDot(HeadShape(1, query=4, key=4)), 3 * torch.eye(4), torch.eye(4))
    return draw(weights, HOME_IN_KOREAN, HOME, site="cross", title="Dot: word t attends to word t", W="none")


def luong_general() -> str:
    mechanism = LuongGeneral(HeadShape(1, query=4, key=4))
    mechanism.weight.copy_(torch.eye(4)[ALIGNED_TO])
    weights = weights_of(mechanism, 3 * torch.eye(4), torch.eye(4))
    title = "General: W maps the word order"
    return draw(weights, HOME_IN_KOREAN, HOME, site="cross", title=title, W="집에 ↔ home, 간다 ↔ go")


def local_m() -> str:
    mechanism = LuongLocalM(HeadShape(1, query=1, key=1), window=2)
    mechanism.weight.zero_()
    weights = weights_of(mechanism, torch.zeros(len(BOOKS_IN_KOREAN), 1), torch.zeros(len(BOOKS), 1))
    return draw(weights, BOOKS_IN_KOREAN, BOOKS, site="cross", title="Local-m: along the diagonal", D="2")


def local_p() -> str:
    """Each query h is chosen so that p = S · sigmoid(v_pᵀ tanh(W_p h)) is near the translation of its word.

    No position is an integer: a key exactly at the edge of a window would be in or out depending on rounding.
    """
    mechanism = LuongLocalP(HeadShape(1, query=1, key=1), window=2)
    mechanism.weight.zero_()
    mechanism.place.fill_(1.0)  # W_p
    mechanism.place_energy.fill_(6.0)  # v_p
    positions = torch.tensor([0.3, 6.9, 5.4, 2.9, 2.1, 2.5, 1.1])
    query = torch.atanh(torch.logit(positions / len(BOOKS)) / 6)[:, None]
    weights = weights_of(mechanism, query, torch.zeros(len(BOOKS), 1))
    title = "Local-p: each word predicts p"
    return draw(weights, BOOKS_IN_KOREAN, BOOKS, site="cross", title=title, D="2", σ="1")


def scaled_dot() -> str:
    weights = weights_of(ScaledDot(), *random_states(len(STUDENT_IN_KOREAN), 64, seed=1))
    title = "Divided by √64: every word counts"
    return draw(
        weights, STUDENT_IN_KOREAN, STUDENT_IN_KOREAN, site="encoder", title=title, states="random, 64 wide"
    )


def scaled_dot_unscaled() -> str:
    weights = weights_of(
        LuongDot(HeadShape(1, query=64, key=64)), *random_states(len(STUDENT_IN_KOREAN), 64, seed=1)
    )
    title = "Not divided: one or two words dominate"
    return draw(weights, STUDENT_IN_KOREAN, STUDENT_IN_KOREAN, site="encoder", title=title, states="the same")


def two_heads() -> Tensor:
    """Weights (head, query, key) of two heads: one attends to the same word, one to the previous word.

    A state is the unit vector of its word, concatenated with the unit vector of its position. W_Q and W_K of
    the first head read the word; W_Q and W_K of the second head read the position, with the keys shifted by
    one.
    """
    attention = MultiHead(width=8, heads=2, mechanism=ScaledDot())
    for projection in (attention.query, attention.key):
        projection.weight.zero_()
    attention.query.weight[:4, :4] = attention.query.weight[4:, 4:] = 6 * torch.eye(4)
    attention.key.weight[:4, :4] = torch.eye(4)
    attention.key.weight[4:, 4:] = torch.diag(torch.ones(3), -1)
    states = torch.eye(4).repeat(1, 2)[None]
    weights = attention.attend_self(states, need_weights=True).weights
    if weights is None:
        raise RuntimeError("The attention returned no weights.")
    return weights[0]


def multi_head_same() -> str:
    title = "Head 0: the word itself"
    return draw(two_heads()[0], HOME_IN_KOREAN, HOME_IN_KOREAN, site="encoder", title=title, head="0 of 2")


def multi_head_before() -> str:
    title = "Head 1: the previous word"
    return draw(two_heads()[1], HOME_IN_KOREAN, HOME_IN_KOREAN, site="encoder", title=title, head="1 of 2")


def weights_by_head(words: Sequence[str], word: str, targets: Sequence[Sequence[str]]) -> Tensor:
    """Weights (head, key) of one word, in heads whose W_Q is set so that it attends to `targets[head]`.

    A state is the unit vector of its word, and W_K is the identity. A query is a multiple of the sum of the
    vectors of its targets, so large that each target has a score of 4. A head without targets attends to all
    words equally.
    """
    length = len(words)
    widths = Widths(query_states=length, source_states=length, key=length, value=1, output=length)
    attention = MultiHead(width=widths, heads=len(targets), mechanism=ScaledDot())
    attention.query.weight.zero_()
    attention.key.weight.copy_(torch.eye(length).repeat(len(targets), 1))
    matrices = attention.query.weight.view(len(targets), length, length)  # (head, key word, query word)
    for head, keys in enumerate(targets):
        for key in keys:
            matrices[head, words.index(key), words.index(word)] = 4 * math.sqrt(length)
    weights = attention.attend_self(torch.eye(length)[None], need_weights=True).weights
    if weights is None:
        raise RuntimeError("The attention returned no weights.")
    return weights[0, :, words.index(word)]


def draw_row_per_head(title: str, words: Sequence[str], word: str, targets: Sequence[Sequence[str]]) -> str:
    """The attention of one word, one row per head."""
    heads = [f"head {index}" for index in range(len(targets))]
    weights = weights_by_head(words, word, targets)
    return draw(weights, heads, words, site="encoder", title=title, query=word, W_Q="by hand")


def heads_making() -> str:
    targets = (("more", "difficult"), ("difficult",), ("2009",), ("making",), ())
    return draw_row_per_head('"making", in five heads', MAKING, "making", targets)


def heads_its() -> str:
    targets = (("Law",), ("application",), ("its",), ())
    return draw_row_per_head('"its", in four heads', LAW, "its", targets)


def efficient() -> str:
    query, keys = random_states(len(STUDENT_IN_KOREAN), 3, seed=4)
    weights = weights_of(Efficient(), 2 * query, 2 * keys)
    title = "Efficient: mixtures of three maps"
    return draw(weights, STUDENT_IN_KOREAN, STUDENT_IN_KOREAN, site="encoder", title=title, weights="implied")


def efficient_softmax() -> str:
    query, keys = random_states(len(STUDENT_IN_KOREAN), 3, seed=4)
    weights = weights_of(ScaledDot(), 2 * query, 2 * keys)
    title = "Scaled dot product, same states"
    return draw(weights, STUDENT_IN_KOREAN, STUDENT_IN_KOREAN, site="encoder", title=title, weights="softmax")


def linear() -> str:
    query, keys = random_states(len(STUDENT_IN_KOREAN), 4, seed=5)
    weights = weights_of(LinearAttention(causal=True), 2 * query, 2 * keys)
    return draw(
        weights,
        STUDENT_IN_KOREAN,
        STUDENT_IN_KOREAN,
        site="decoder",
        title="Linear, causal",
        weights="implied",
    )


def restricted() -> str:
    query, keys = random_states(len(STUDENT_IN_KOREAN), 8, seed=6)
    weights = weights_of(Restricted(neighbours=2), query, keys)
    return draw(
        weights, STUDENT_IN_KOREAN, STUDENT_IN_KOREAN, site="encoder", title="Restricted to neighbours", r="2"
    )


def look_up_names() -> str:
    """The score is ten times the cosine, so that one key clearly has the largest weight."""
    similarity = Score(lambda query, keys: 10 * query @ keys.T)
    queries = ("Li", "Zhangg", "Smole")
    rows = [attend(name_vector(name), name_database(), similarity).context for name in queries]
    remaining = [index for index, (key, _) in enumerate(NAMES) if key != "Li"]
    without = torch.zeros(len(NAMES))
    database = name_database([NAMES[index] for index in remaining])
    without[remaining] = attend(name_vector("Li"), database, similarity).context
    labels = [f"{key} → {value}" for key, value in NAMES]
    title = "Which entry answers?"
    return draw(
        torch.stack([rows[0], without, *rows[1:]]),
        ("Li", "Li, left out", *queries[1:]),
        labels,
        site="look-up",
        title=title,
        score="ten times the cosine",
    )


def look_up_kernel() -> str:
    points, queries = torch.tensor([0.0, 0.5, 1.0, 1.5, 3.0, 3.5, 4.0]), torch.arange(0.0, 4.5, 0.5)
    weights = replace(gaussian, width=0.5).weights(queries[:, None], points[:, None])
    rows, columns = ([f"{x:g}" for x in axis.tolist()] for axis in (queries, points))
    title = "Nadaraya–Watson: near points answer"
    return draw(weights, rows, columns, site="look-up", title=title, kernel="Gaussian, width 0.5")


DRAWINGS: dict[str, Callable[[], str]] = {
    "additive": additive,
    "luong-dot": luong_dot,
    "luong-general": luong_general,
    "local-m": local_m,
    "local-p": local_p,
    "scaled-dot": scaled_dot,
    "scaled-dot-unscaled": scaled_dot_unscaled,
    "multi-head-same": multi_head_same,
    "multi-head-before": multi_head_before,
    "multi-head-making": heads_making,
    "multi-head-its": heads_its,
    "efficient": efficient,
    "efficient-softmax": efficient_softmax,
    "linear": linear,
    "restricted": restricted,
    "look-up-names": look_up_names,
    "look-up-kernel": look_up_kernel,
}


def draw_all(folder: Path) -> None:
    with torch.no_grad():
        write_pictures(((name, drawing()) for name, drawing in DRAWINGS.items()), folder)


if __name__ == "__main__":
    draw_all(PICTURES)
