"""A translation server with the contract of LibreTranslate, with batching, scores and alignments."""

from jumok.serve.limits import Limits

__all__ = ["Limits"]
