"""A first picture: what a translation paid attention to, as SVG, as JSON and in the terminal.

This room sees values only. It needs neither torch nor a model, so a stored map can be drawn anywhere.
"""

from jumok.look.grid import alignment_map
from jumok.look.heat_map import draw_alignment
from jumok.look.store import from_json, save, to_json
from jumok.look.terminal import draw_text

__all__ = ["alignment_map", "draw_alignment", "draw_text", "from_json", "save", "to_json"]
