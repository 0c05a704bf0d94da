"""Attention maps on matplotlib axes, for notebooks and papers, in a font that has Hangul.

matplotlib is optional (`pip install "jumok[plot]"`) and is imported when something is drawn.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from jumok.errors import UnsupportedError
from jumok.plots import fonts
from jumok.plots.grid import flat_grid

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jumok.types import AttentionMap

# Tried in this order for characters that the shipped font lacks, such as Han.
SYSTEM_FONTS = (
    "Noto Sans KR",
    "Noto Sans CJK KR",
    "Noto Sans CJK JP",  # older versions of matplotlib see the first font of a collection only
    "NanumGothic",
    "Malgun Gothic",
    "Apple SD Gothic Neo",
    "AppleGothic",
    "UnDotum",
)


def plot_attention(
    attention: AttentionMap, ax: Any | None = None, *, layer: int | None = None, head: int | None = None
) -> Any:
    """Draw a map on matplotlib's axes, and return them.

    0 is black; white is 1, or the largest weight if that is more. Without `ax`, the map is drawn on
    the current axes. `layer` and `head` select a layer and a head, counted from 0. If `layer` is None, the
    weights are averaged over all layers; if `head` is None, over all heads. Labels in Hangul use the shipped
    font if the configured font has no Hangul.
    """
    grid = flat_grid(attention, layer=layer, head=head)
    try:
        from matplotlib import pyplot  # optional
    except ImportError as error:
        raise UnsupportedError(
            "A map on axes needs matplotlib, which is not installed. "
            'Run: pip install "jumok[plot]", or draw an SVG with `jumok.plots.map_files.save`.'
        ) from error
    axes = pyplot.gca() if ax is None else ax
    queries, keys = grid.queries, grid.keys
    characters = {char for label in (*queries, *keys) for char in label if char.isprintable()}
    families = _families(characters)
    axes.imshow(grid.weights, cmap="gray", vmin=0, vmax=grid.max_weight, aspect="auto")
    axes.xaxis.tick_top()
    axes.set_xticks(
        range(len(keys)), keys, rotation=45, ha="left", rotation_mode="anchor", fontfamily=families
    )
    axes.set_yticks(range(len(queries)), queries, fontfamily=families)
    axes.tick_params(length=0)
    return axes


def _families(characters: set[str]) -> list[str]:
    """Return the configured font families, and one more family if they lack some of the characters.

    The shipped font and then `SYSTEM_FONTS` are tried, and the first font that has all missing characters is
    added. If no single font has all missing characters, the shipped font is added, with a warning.
    """
    from matplotlib import rcParams  # optional

    families = list(rcParams["font.family"])
    missing = _missing(characters, families)
    if not missing:
        return families
    available = _known_families()
    for name in (fonts.FAMILY, *SYSTEM_FONTS):
        if name in available and not _missing(missing, [name]):
            return [*families, name]
    missing = _missing(missing, [fonts.FAMILY])
    warnings.warn(
        f"None of the fonts that were tried ({', '.join(families)}, {fonts.FAMILY} and fonts for Chinese, "
        "Japanese and Korean) has every character of the labels; these show as boxes: "
        f"{''.join(sorted(missing)[:10])}{' …' if len(missing) > 10 else ''}. Install a font of their script "
        "(for most scripts there is a Noto font) and set matplotlib.rcParams['font.family'] to it.",
        stacklevel=3,
    )
    return [*families, fonts.FAMILY]


def _known_families() -> set[str]:
    """Return the families that matplotlib knows. The first call adds the shipped font to them."""
    from matplotlib.font_manager import fontManager  # optional

    if fonts.FAMILY not in {font.name for font in fontManager.ttflist}:
        fontManager.addfont(fonts.FILE)
    return {font.name for font in fontManager.ttflist}


def _missing(characters: Iterable[str], families: list[str]) -> set[str]:
    """Return the characters that are missing from the first font that matplotlib finds for these families."""
    from matplotlib import font_manager  # optional

    font = font_manager.get_font(font_manager.findfont(font_manager.FontProperties(family=families)))
    return {character for character in characters if not font.get_char_index(ord(character))}
