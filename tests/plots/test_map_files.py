"""Attention maps are saved as JSON, PNG and SVG, and read again from JSON."""

from __future__ import annotations

import json
import sys
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as numpy_strategies

from jumok.errors import DataError, StorageError, UnsupportedError
from jumok.plots.heat_map import draw_alignment
from jumok.plots.map_files import from_json, save, to_json
from jumok.types import Alignment, AttentionMap
from support.attention_maps import alignment_map

if TYPE_CHECKING:
    from pathlib import Path

SHAPES = st.tuples(*[st.integers(1, 3)] * 2, *[st.integers(0, 6)] * 2)  # layers, heads, queries, keys
WEIGHTS = SHAPES.flatmap(
    lambda shape: numpy_strategies.arrays(np.float32, shape, elements=st.floats(0, 1, width=32))
)


def small_map() -> AttentionMap:
    return alignment_map([[0.5, 0.123456]], source=("go", "<b>"), target=("간다",), facts={"layer": "3"})


@given(weights=WEIGHTS, data=st.data())
def test_from_json_restores_what_to_json_wrote(weights: np.ndarray, data: st.DataObject) -> None:
    _, _, rows, columns = weights.shape
    words = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    attention = AttentionMap(
        site=data.draw(st.sampled_from(["encoder", "decoder", "cross"])),
        weights=weights,
        queries=tuple(data.draw(st.lists(words, min_size=rows, max_size=rows))),
        keys=tuple(data.draw(st.lists(words, min_size=columns, max_size=columns))),
        facts=data.draw(st.dictionaries(words, words, max_size=3)),
    )
    restored = from_json(to_json(attention))
    assert restored.site == attention.site
    assert (restored.queries, restored.keys) == (attention.queries, attention.keys)
    assert restored.facts == attention.facts
    assert np.asarray(restored.weights).shape == weights.shape
    np.testing.assert_allclose(np.asarray(restored.weights), weights, atol=5.1e-5)  # four decimals
    assert to_json(restored) == to_json(attention)


def test_json_has_plain_lists_and_weights_of_four_decimals() -> None:
    assert json.loads(to_json(small_map())) == {
        "site": "cross",
        "keys": ["go", "<b>"],
        "queries": ["간다"],
        "weights": [[[[0.5, 0.1235]]]],
        "facts": {"layer": "3"},
    }
    assert "간다" in to_json(small_map())


def test_json_has_the_title_and_the_links_of_the_picture(tmp_path: Path) -> None:
    links = Alignment(frozenset({(0, 0)}), frozenset({(1, 0)}))
    save(small_map(), tmp_path / "map.json", title="간다", links=links)
    text = (tmp_path / "map.json").read_text(encoding="utf-8")
    document = json.loads(text)
    assert (document["title"], document["alignment"]) == ("간다", "0-0 1?0")  # "?" is a possible link
    assert to_json(from_json(text)) == to_json(small_map())


def test_nan_is_stored_as_null() -> None:
    text = to_json(alignment_map([[np.nan, 1.0]], source="ab", target="c"))
    assert "[null, 1.0]" in text
    assert np.isnan(np.asarray(from_json(text).weights)[0, 0, 0, 0])


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"site": "cross"}', "null", '"x"'])
def test_json_that_is_not_a_map_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="not an attention map"):
        from_json(text)


def test_json_whose_weights_do_not_fit_is_refused() -> None:
    document = json.loads(to_json(small_map()))
    with pytest.raises(DataError, match="do not fit"):
        from_json(json.dumps({**document, "keys": ["go"]}))


def test_the_suffix_selects_the_format(tmp_path: Path) -> None:
    links = Alignment(frozenset({(0, 0)}))
    save(small_map(), tmp_path / "map.svg", title="Going", links=links)
    save(small_map(), str(tmp_path / "map.JSON"))
    drawn = draw_alignment(small_map(), title="Going", links=links)
    assert (tmp_path / "map.svg").read_text(encoding="utf-8") == drawn
    assert (tmp_path / "map.JSON").read_text(encoding="utf-8") == to_json(small_map())


@pytest.mark.parametrize(("name", "hint"), [("map.svgz", '".svg"'), ("map.jsn", '".json"'), ("map.gif", "")])
def test_an_unknown_suffix_is_refused_and_the_error_lists_the_choices(
    tmp_path: Path, name: str, hint: str
) -> None:
    with pytest.raises(UnsupportedError) as caught:
        save(small_map(), tmp_path / name)
    assert ".json, .png or .svg" in str(caught.value)
    assert name in str(caught.value)
    assert hint in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_png_is_written(tmp_path: Path) -> None:
    pytest.importorskip("resvg_py", reason="missing optional part: jumok[png]")
    save(small_map(), tmp_path / "map.png", title="Going")
    data = (tmp_path / "map.png").read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width = int.from_bytes(data[16:20], "big")  # from the header; a PNG has twice the size of the SVG
    assert f'width="{width // 2}"' in draw_alignment(small_map(), title="Going")


def test_a_png_shows_hangul_on_a_machine_without_fonts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of the four words gives another picture.

    Without glyphs for Hangul, each syllable would be drawn as the same empty box, and two pictures would be
    equal.
    """
    resvg = pytest.importorskip("resvg_py", reason="missing optional part: jumok[png]")
    monkeypatch.setattr(resvg, "svg_to_bytes", partial(resvg.svg_to_bytes, skip_system_fonts=True))
    pictures = set()
    for word in ("간다", "쀍다", "go", "no"):
        save(alignment_map([[0.5]], source=("go",), target=(word,)), tmp_path / "map.png")
        pictures.add((tmp_path / "map.png").read_bytes())
    assert len(pictures) == 4


def test_without_resvg_a_png_is_refused_with_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(UnsupportedError, match=r"jumok\[png\].*or write \.svg"):
        save(small_map(), tmp_path / "map.png")
    assert not list(tmp_path.iterdir())


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="missing"):
        save(small_map(), tmp_path / "missing" / "map.svg")
