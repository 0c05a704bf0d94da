"""The SVG of an alignment map: well-formed, complete, escaped, and without cut labels."""

from __future__ import annotations

import math
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumok.errors import DataError
from jumok.plots.heat_map import draw_alignment
from jumok.plots.text_width import width_in_ems
from jumok.types import Alignment, AttentionMap
from support.attention_maps import alignment_map

SVG = "{http://www.w3.org/2000/svg}"
SOURCE = ("I", "go", "home", ".")
TARGET = ("나는", "집에", "간다", ".")
WEIGHTS = np.array(
    [[0.85, 0.05, 0.05, 0.05], [0.1, 0.2, 0.7, 0], [0.02, 0.9, 0.0312, 0.0488], [0, 0, 0.25, 0.75]],
    dtype=np.float32,
)


def small_map() -> AttentionMap:
    return alignment_map(WEIGHTS, source=SOURCE, target=TARGET)


def uniform_map(source: tuple[str, ...], target: tuple[str, ...]) -> AttentionMap:
    return alignment_map(np.full((len(target), len(source)), 1 / len(source)), source=source, target=target)


def parse(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def group(root: ElementTree.Element, name: str) -> ElementTree.Element:
    return next(g for g in root.iter(f"{SVG}g") if g.get("class") == name)


def labels(root: ElementTree.Element, name: str) -> list[str]:
    return [text.text or "" for text in group(root, name).iter(f"{SVG}text")]


def cells(root: ElementTree.Element) -> list[ElementTree.Element]:
    return group(root, "cells").findall(f"{SVG}rect")


def tooltip(cell: ElementTree.Element) -> str:
    title = cell.find(f"{SVG}title")
    assert title is not None
    return title.text or ""


def test_labels_are_in_order() -> None:
    root = parse(draw_alignment(small_map()))
    assert labels(root, "source") == list(SOURCE)
    assert labels(root, "target") == list(TARGET)


def test_each_pair_of_words_has_a_cell_with_its_weight() -> None:
    drawn = cells(parse(draw_alignment(small_map())))
    assert len(drawn) == 16
    shown = [float(tooltip(cell).rsplit(" ", 1)[1]) for cell in drawn]
    assert shown == [round(float(weight), 4) for weight in WEIGHTS.ravel()]
    assert tooltip(drawn[6]) == "집에 → home: 0.7000"  # row 1, column 2


def test_a_weight_of_one_is_white_and_a_weight_of_zero_is_almost_black() -> None:
    identity = alignment_map(np.eye(2), source=("a", "b"), target=("c", "d"))
    fills = [cell.get("fill") for cell in cells(parse(draw_alignment(identity)))]
    assert fills == ["#ffffff", "#101010", "#101010", "#ffffff"]


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_larger_weight_is_never_darker(first: float, second: float) -> None:
    drawn = cells(parse(draw_alignment(alignment_map([[first, second]], source=("a", "b"), target=("c",)))))
    shades = [int((cell.get("fill") or "")[1:3], 16) for cell in drawn]
    assert first > second or shades[0] <= shades[1]


def test_cells_are_under_their_label_and_do_not_overlap() -> None:
    root = parse(draw_alignment(uniform_map(tuple("abcdefg"), tuple("xyz"))))
    middles = [
        float(re.findall(r"translate\(([\d.]+)", text.get("transform") or "")[0])
        for text in group(root, "source").iter(f"{SVG}text")
    ]
    first_row = cells(root)[:7]
    lefts = [int(cell.get("x") or 0) for cell in first_row]
    sizes = [int(cell.get("width") or 0) for cell in first_row]
    assert all(
        left <= middle <= left + size for left, middle, size in zip(lefts, middles, sizes, strict=True)
    )
    assert all(
        left + size <= next_left for left, next_left, size in zip(lefts, lefts[1:], sizes, strict=False)
    )


def test_text_is_escaped_everywhere() -> None:
    markup = '</text><script>alert("1")</script>&\x00'
    attention = alignment_map([[1.0]], source=[markup], target=[markup], facts={markup: markup})
    svg = draw_alignment(attention, title=markup)
    root = parse(svg)
    assert "<script" not in svg
    assert not list(root.iter(f"{SVG}script"))
    assert labels(root, "source") == [markup.replace("\x00", "�")]


@given(
    source=st.lists(st.text(min_size=1, max_size=30), min_size=1, max_size=12),
    target=st.lists(st.text(min_size=1, max_size=30), min_size=1, max_size=12),
    title=st.text(max_size=100),
)
@settings(max_examples=60)
def test_any_words_make_a_well_formed_picture_without_cut_labels(
    source: list[str], target: list[str], title: str
) -> None:
    svg = draw_alignment(uniform_map(tuple(source), tuple(target)), title=title)
    assert_no_label_is_cut(parse(svg))


@pytest.mark.parametrize("num_words", [1, 2, 4, 12, 30, 60])
@pytest.mark.parametrize(
    "word", ["집으로", ".", "Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichenverordnung"]
)
def test_no_label_is_cut_at_any_size(num_words: int, word: str) -> None:
    links = Alignment(frozenset({(0, 0)}), frozenset({(num_words - 1, num_words - 1)}))
    attention = uniform_map((word,) * num_words, (word,) * num_words)
    root = parse(draw_alignment(attention, title="A title " * 20, links=links))
    assert_no_label_is_cut(root)
    assert len(cells(root)) == num_words**2


def assert_no_label_is_cut(root: ElementTree.Element) -> None:
    """Assert that every text, with its estimated width and its rotation, lies inside the view box."""
    _, _, width, height = map(float, (root.get("viewBox") or "").split())
    for parent in root.iter():
        for text in parent.findall(f"{SVG}text"):
            size = float(text.get("font-size") or parent.get("font-size") or 0)
            corners = corners_of(text, size, anchored_at_end=parent.get("text-anchor") == "end")
            assert all(0 <= x <= width and 0 <= y <= height for x, y in corners), text.text


def corners_of(text: ElementTree.Element, size: float, *, anchored_at_end: bool) -> list[tuple[float, float]]:
    length = width_in_ems(text.text or "") * size
    left, baseline = float(text.get("x") or 0), float(text.get("y") or 0)
    left -= length if anchored_at_end else 0
    box = [(x, y) for x in (left, left + length) for y in (baseline - size, baseline + 0.25 * size)]
    rotation = re.fullmatch(r"translate\((\S+) (\S+)\) rotate\((\S+)\)", text.get("transform") or "")
    if not rotation:
        return box
    origin_x, origin_y, degrees = map(float, rotation.groups())
    sine, cosine = math.sin(math.radians(degrees)), math.cos(math.radians(degrees))
    return [(origin_x + x * cosine - y * sine, origin_y + x * sine + y * cosine) for x, y in box]


def test_links_are_drawn_as_rings_and_the_legend_explains_them() -> None:
    links = Alignment(frozenset({(0, 0), (2, 1)}), frozenset({(3, 3)}))
    root = parse(draw_alignment(small_map(), links=links))
    rings = group(root, "links").findall(f"{SVG}rect")
    assert [ring.get("stroke-dasharray") is None for ring in rings] == [True, True, False]
    assert {"link", "possible link"} <= set(labels(root, "legend"))


def test_links_outside_the_map_are_left_out() -> None:
    root = parse(draw_alignment(small_map(), links=Alignment(frozenset({(9, 0), (0, 9), (1, 1)}))))
    assert len(group(root, "links").findall(f"{SVG}rect")) == 1


def test_without_links_the_legend_has_only_the_scale() -> None:
    assert labels(parse(draw_alignment(small_map())), "legend") == ["0", "1"]  # the ends of the scale


def test_the_scale_reaches_the_largest_weight() -> None:
    root = parse(draw_alignment(alignment_map([[2.5, -1.0]], source=("a", "b"), target=("c",))))
    assert labels(root, "legend") == ["0", "2.5"]
    assert [cell.get("fill") for cell in cells(root)] == ["#ffffff", "#101010"]


def test_a_nan_weight_has_its_own_colour() -> None:
    first, second = cells(parse(draw_alignment(alignment_map([[np.nan, 1]], source="ab", target="c"))))
    assert first.get("fill") not in {"#101010", "#ffffff"}
    assert tooltip(first).endswith("nan")
    assert second.get("fill") == "#ffffff"


def test_layers_and_heads_are_averaged_and_the_drawing_says_so() -> None:
    weights = np.random.default_rng(0).random((2, 3, 1, 2))
    attention = AttentionMap("cross", weights, ("x",), ("a", "b"))
    svg = draw_alignment(attention)
    assert "mean of 2 layers, mean of 3 heads" in " ".join(" ".join(parse(svg).itertext()).split())
    shown = [float(tooltip(cell).rsplit(" ", 1)[1]) for cell in cells(parse(svg))]
    assert shown == pytest.approx(weights.mean(axis=(0, 1)).ravel(), abs=1e-4)


def test_one_layer_and_head_can_be_selected() -> None:
    weights = np.random.default_rng(0).random((2, 3, 1, 2))
    attention = AttentionMap("cross", weights, ("x",), ("a", "b"))
    svg = draw_alignment(attention, layer=1, head=2)
    assert "layer 1, head 2" in svg
    shown = [float(tooltip(cell).rsplit(" ", 1)[1]) for cell in cells(parse(svg))]
    assert shown == pytest.approx(weights[1, 2].ravel(), abs=1e-4)


def test_a_missing_layer_is_refused() -> None:
    with pytest.raises(DataError, match="no layer 1"):
        draw_alignment(small_map(), layer=1)


def test_weights_that_do_not_fit_the_words_are_refused() -> None:
    with pytest.raises(DataError, match=r"shape \(1, 1, 4, 4\) for 4 target and 3 source words"):
        alignment_map(WEIGHTS, source=SOURCE[:3], target=TARGET)


@pytest.mark.parametrize(("source", "target"), [(SOURCE, ()), ((), TARGET), ((), ())])
def test_a_sentence_without_words_is_drawn_without_cells(
    source: tuple[str, ...], target: tuple[str, ...]
) -> None:
    root = parse(
        draw_alignment(AttentionMap("cross", np.zeros((1, 1, len(target), len(source))), target, source))
    )
    assert labels(root, "source") == list(source)
    assert labels(root, "target") == list(target)
    assert cells(root) == []
    assert_no_label_is_cut(root)


def test_a_map_without_layers_is_refused() -> None:
    with pytest.raises(DataError, match="no layer or no head"):
        draw_alignment(AttentionMap("cross", np.zeros((0, 1, 4, 4)), TARGET, SOURCE))


def test_the_same_map_gives_the_same_bytes() -> None:
    links = Alignment(frozenset({(i, i) for i in range(4)}))
    assert draw_alignment(small_map(), links=links) == draw_alignment(small_map(), links=links)


def test_drawing_needs_no_torch() -> None:
    code = "import sys, jumok.plots.heat_map; raise SystemExit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_map_may_have_no_layer_and_head_axes() -> None:
    plain = AttentionMap("cross", WEIGHTS, TARGET, SOURCE)
    assert draw_alignment(plain) == draw_alignment(small_map())
