"""Documents to translate: their file formats, and inline markup that word alignment moves with the words.

A new format is one module with a `DocumentFormat`, and one row in `registry.py`.
"""
