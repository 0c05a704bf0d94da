"""The live page, which computes explanations on request; `http_server.py` serves it on loopback."""
