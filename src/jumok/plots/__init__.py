"""Attention maps as pictures: SVG, PNG, terminal, matplotlib, JSON, and the page built from `web/`.

This package needs neither torch nor a model, so a stored map can be drawn anywhere.
"""

from jumok.plots.axes import plot_attention
from jumok.plots.grid import alignment_map
from jumok.plots.heat_map import draw_alignment
from jumok.plots.map_files import from_json, render_png, save, to_json
from jumok.plots.page import iframe, live_page, page_with_data, static_page
from jumok.plots.picture_maps import (
    PNG_DATA_URL,
    draw_picture_maps,
    draw_picture_text,
    png_data_url,
)
from jumok.plots.terminal import draw_text

__all__ = [
    "PNG_DATA_URL",
    "alignment_map",
    "draw_alignment",
    "draw_picture_maps",
    "draw_picture_text",
    "draw_text",
    "from_json",
    "iframe",
    "live_page",
    "page_with_data",
    "plot_attention",
    "png_data_url",
    "render_png",
    "save",
    "static_page",
    "to_json",
]
