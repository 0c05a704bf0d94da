"""Attention maps as pictures: SVG, PNG, terminal, matplotlib, JSON, and the page built from `web/`.

This package needs neither torch nor a model, so a stored map can be drawn anywhere.
"""
