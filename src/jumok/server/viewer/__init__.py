"""The live page, which computes explanations on request; `http_server.py` serves it on loopback."""

from jumok.server.viewer.run_monitor import RunMonitor, is_run_folder
from jumok.server.viewer.service import ExplanationService, NamedTranslator

__all__ = [
    "ExplanationService",
    "NamedTranslator",
    "RunMonitor",
    "is_run_folder",
]
