"""Sentence patterns, one function per pattern; `table.py` lists them with their weights and order."""
