"""Attention maps on matplotlib's axes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from jumok.errors import DataError, UnsupportedError
from jumok.plots import fonts
from jumok.plots.axes import plot_attention
from jumok.types import AttentionMap

if TYPE_CHECKING:
    from collections.abc import Iterator

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


def drawn_weights(ax: Axes) -> np.ndarray:
    [image] = ax.get_images()
    return np.asarray(image.get_array())


def rendered_pixels(ax: Axes) -> np.ndarray:
    ax.figure.canvas.draw()
    return np.asarray(ax.figure.canvas.buffer_rgba()).copy()


def test_a_map_is_drawn_on_axes_with_its_words(ax: Axes) -> None:
    assert plot_attention(MAP, ax, layer=1, head=0) is ax
    np.testing.assert_allclose(drawn_weights(ax), WEIGHTS[1, 0])
    assert [label.get_text() for label in ax.get_xticklabels()] == ["I", "go"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["나는", "집에", "간다"]


def test_by_default_the_map_is_drawn_on_the_current_axes_and_averaged_over_layers_and_heads(ax: Axes) -> None:
    assert plot_attention(MAP) is ax
    np.testing.assert_allclose(drawn_weights(ax), WEIGHTS.mean((0, 1)), rtol=1e-6)


def test_hangul_is_not_drawn_as_boxes(ax: Axes, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shipped font draws Hangul if there are no system fonts, and two words look different.

    matplotlib would also warn of a missing glyph, and in the tests a warning is an error.
    """
    monkeypatch.setattr("jumok.plots.axes.SYSTEM_FONTS", ())
    plot_attention(MAP, ax)
    assert fonts.FAMILY in ax.get_yticklabels()[0].get_fontfamily()
    pixels = rendered_pixels(ax)
    ax.set_yticklabels(["너는", "집에", "간다"])
    assert not np.array_equal(pixels, rendered_pixels(ax))


def test_the_shipped_font_has_every_hangul_syllable() -> None:
    ft2font = pytest.importorskip("matplotlib.ft2font", reason="matplotlib is not installed")
    letters = set(ft2font.FT2Font(str(fonts.FILE)).get_charmap())
    assert set(range(ord("가"), ord("힣") + 1)) <= letters


def test_plotting_leaves_the_global_settings_alone(ax: Axes) -> None:
    from matplotlib import font_manager, rcParams

    before = rcParams.copy()
    plot_attention(MAP, ax)
    plot_attention(MAP, ax)  # does not add the font a second time
    assert rcParams == before
    assert [font.name for font in font_manager.fontManager.ttflist].count(fonts.FAMILY) == 1


def test_a_warning_names_characters_that_no_tried_font_has(ax: Axes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jumok.plots.axes.SYSTEM_FONTS", ())
    with pytest.warns(UserWarning, match=r"None of the fonts .* these show as boxes: 字\. Install a font"):
        plot_attention(AttentionMap("cross", WEIGHTS[:, :, :2], ("字", "간다"), ("I", "go")), ax)
    ax.set_yticklabels(["", "간다"])
    rendered_pixels(ax)  # no character is missing any more, so matplotlib does not warn


def test_weights_above_one_stretch_the_scale_even_if_another_weight_is_nan(ax: Axes) -> None:
    weights = np.array([[2.5, np.nan]], dtype=np.float32)
    plot_attention(AttentionMap("cross", weights, ("x",), ("a", "b")), ax)
    [image] = ax.get_images()
    assert image.get_clim() == (0, 2.5)


def test_latin_words_need_no_other_font(ax: Axes) -> None:
    plot_attention(AttentionMap("cross", WEIGHTS[:, :, :2], ("ich", "gehe"), ("I", "go")), ax)
    from matplotlib import rcParams

    assert ax.get_yticklabels()[0].get_fontfamily() == list(rcParams["font.family"])


def test_a_missing_head_or_layer_is_refused() -> None:
    with pytest.raises(DataError, match=r"no head 2\. It has 2"):
        plot_attention(MAP, head=2)
    with pytest.raises(DataError, match="no layer -1"):
        plot_attention(MAP, layer=-1)


def test_without_matplotlib_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UnsupportedError, match=r'pip install "jumok\[plot\]"'):
        plot_attention(MAP)
