"""Corpora that ship with jumok."""
