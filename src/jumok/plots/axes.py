"""Attention maps on matplotlib's axes, lettered in fonts that have their letters.

matplotlib is no part of jumok and is imported when something is drawn: `pip install "jumok[plot]"` brings it.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from jumok.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy import floating
    from numpy.typing import NDArray

__all__ = ["draw_grid"]

HANGUL_FONTS = (
    "Noto Sans KR",
    "Noto Sans CJK KR",
    "Noto Sans CJK JP",  # older versions of matplotlib see the first font of a collection only
    "NanumGothic",
    "Malgun Gothic",
    "Apple SD Gothic Neo",
    "AppleGothic",
    "UnDotum",
)


def draw_grid(
    weights: NDArray[floating[Any]], queries: Sequence[str], keys: Sequence[str], axes: Any | None
) -> Any:
    """Weights (query, key) from black for 0 to white for 1, on these axes or matplotlib's current ones."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise UnsupportedError(
            "A map on axes needs matplotlib, which is not installed. "
            'Do: pip install "jumok[plot]", or draw an SVG with `jumok.look.save`.'
        ) from error
    axes = pyplot.gca() if axes is None else axes
    fonts = _fonts({letter for label in (*queries, *keys) for letter in label if letter.isprintable()})
    axes.imshow(weights, cmap="gray", vmin=0, vmax=max(1.0, float(weights.max(initial=1.0))), aspect="auto")
    axes.xaxis.tick_top()
    axes.set_xticks(range(len(keys)), keys, rotation=45, ha="left", rotation_mode="anchor", fontfamily=fonts)
    axes.set_yticks(range(len(queries)), queries, fontfamily=fonts)
    axes.tick_params(length=0)
    return axes


def _fonts(letters: set[str]) -> list[str]:
    """The font that is set, and one more where that has not all letters; a warning where none has them."""
    from matplotlib import font_manager, rcParams

    chosen = list(rcParams["font.family"])
    missing = _missing(letters, chosen)
    if not missing:
        return chosen
    installed = {font.name for font in font_manager.fontManager.ttflist}
    for name in HANGUL_FONTS:
        if name in installed and not _missing(missing, [name]):
            return [*chosen, name]
    warnings.warn(
        f"No font that matplotlib knows has {''.join(sorted(missing)[:10])}, so boxes stand for such "
        "letters. Install one, such as Noto Sans CJK (Debian and Ubuntu: apt install fonts-noto-cjk), and "
        "start Python again; or name one that you have in matplotlib.rcParams['font.family'].",
        stacklevel=4,
    )
    return chosen


def _missing(letters: Iterable[str], family: list[str]) -> set[str]:
    """The letters that a family does not have."""
    from matplotlib import font_manager

    font = font_manager.get_font(font_manager.findfont(font_manager.FontProperties(family=family)))
    return {letter for letter in letters if not font.get_char_index(ord(letter))}
