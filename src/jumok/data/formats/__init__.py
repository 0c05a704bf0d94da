"""Formats of files of pairs, one module each. `readers.PAIR_FORMATS` lists them by suffix."""
