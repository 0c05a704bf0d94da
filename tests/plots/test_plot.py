"""Attention maps on matplotlib's axes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from jumok.errors import DataError, UnsupportedError
from jumok.values import AttentionMap

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from matplotlib.axes import Axes

WEIGHTS = np.arange(2 * 2 * 3 * 2, dtype=np.float32).reshape(2, 2, 3, 2) / 24
MAP = AttentionMap("cross", WEIGHTS, ("나는", "집에", "간다"), ("I", "go"))


@pytest.fixture
def ax() -> Iterator[Axes]:
    pytest.importorskip("matplotlib", reason='matplotlib is not installed: pip install "jumok[plot]"').use(
        "agg"
    )
    from matplotlib import pyplot

    figure, axes = pyplot.subplots()
    yield axes
    pyplot.close(figure)


def shown(ax: Axes) -> np.ndarray:
    [image] = ax.get_images()
    return np.asarray(image.get_array())


def test_a_map_is_drawn_on_axes_with_its_words(ax: Axes) -> None:
    assert MAP.plot(ax, layer=1, head=0) is ax
    np.testing.assert_allclose(shown(ax), WEIGHTS[1, 0])
    assert [label.get_text() for label in ax.get_xticklabels()] == ["I", "go"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["나는", "집에", "간다"]


def test_without_axes_the_current_ones_are_taken_and_heads_averaged(ax: Axes) -> None:
    assert MAP.plot() is ax
    np.testing.assert_allclose(shown(ax), WEIGHTS.mean((0, 1)), rtol=1e-6)


def test_hangul_is_written_and_not_boxes(ax: Axes, tmp_path: Path) -> None:
    """matplotlib warns of every glyph that it has not, and warnings are errors here."""
    from matplotlib import font_manager

    from jumok.figures import HANGUL_FONTS

    if not {font.name for font in font_manager.fontManager.ttflist} & set(HANGUL_FONTS):
        pytest.skip("no Hangul font is installed: `make browser` installs one")
    MAP.plot(ax)
    ax.figure.savefig(tmp_path / "map.png")


def test_where_no_font_has_the_letters_a_hint_says_what_to_do(
    ax: Axes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jumok.figures.HANGUL_FONTS", ())
    with pytest.warns(UserWarning, match="apt install fonts-noto-cjk"):
        MAP.plot(ax)


def test_latin_words_need_no_other_font(ax: Axes) -> None:
    AttentionMap("cross", WEIGHTS[:, :, :2], ("ich", "gehe"), ("I", "go")).plot(ax)
    from matplotlib import rcParams

    assert ax.get_yticklabels()[0].get_fontfamily() == list(rcParams["font.family"])


def test_a_head_that_is_not_there_is_refused() -> None:
    with pytest.raises(DataError, match=r"no head 2\. It has 2"):
        MAP.plot(head=2)
    with pytest.raises(DataError, match="no layer -1"):
        MAP.plot(layer=-1)


def test_without_matplotlib_the_way_to_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UnsupportedError, match=r'pip install "jumok\[plot\]"'):
        MAP.plot()
