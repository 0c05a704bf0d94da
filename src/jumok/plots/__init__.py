"""Drawings of attention maps: as SVG or PNG, in a terminal, on matplotlib's axes, and on the page of `web/`.

The package also stores maps as JSON and draws charts. It needs neither torch nor a model, so a stored map can
be drawn anywhere.
"""
