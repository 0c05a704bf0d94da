"""Documents to translate: one registry of file formats, and inline markup moved by word alignment. No HTTP.

A new format is one module with a `DocumentFormat`, and one row in `registry.py`.
"""
