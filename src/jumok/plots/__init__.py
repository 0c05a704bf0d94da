"""What a translation paid attention to: as a page, as SVG, as JSON and in the terminal.

This room sees values only. It needs neither torch nor a model, so a stored map can be drawn anywhere.
"""

from jumok.look.grid import alignment_map
from jumok.look.heat_map import draw_alignment
from jumok.look.page import framed_page, frozen_page, page_with
from jumok.look.store import from_json, save, to_json
from jumok.look.terminal import draw_text

__all__ = [
    "alignment_map",
    "draw_alignment",
    "draw_text",
    "framed_page",
    "from_json",
    "frozen_page",
    "page_with",
    "save",
    "to_json",
]
