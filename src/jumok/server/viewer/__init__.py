"""The live page: `service.py` computes the explanations, and `http_server.py` serves the page on loopback.

The workers of `jumok serve` use `service.py` too.
"""
