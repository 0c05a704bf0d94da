"""Attention maps as SVG, PNG, JSON, in a terminal, on matplotlib's axes and on the page of `web/`; charts.

This package needs neither torch nor a model, so a stored map can be drawn anywhere.
"""
