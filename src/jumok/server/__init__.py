"""A translation server with the API of LibreTranslate, batching, scores, alignments and explanations."""

from jumok.server.limits import Limits

__all__ = [
    "Limits",
]
