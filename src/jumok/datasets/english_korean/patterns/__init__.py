"""Sentence patterns, one function per pattern; `table.py` lists them with their weights and order.

The docstring of a pattern is an example of its sentences.
"""
