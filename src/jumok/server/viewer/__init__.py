"""The live page: a small server on loopback that computes explanations on request."""

from jumok.server.viewer.http_server import ViewerServer
from jumok.server.viewer.run_monitor import RunMonitor, is_run_folder
from jumok.server.viewer.service import ExplanationService, NamedTranslator

__all__ = [
    "ExplanationService",
    "NamedTranslator",
    "RunMonitor",
    "ViewerServer",
    "is_run_folder",
]
