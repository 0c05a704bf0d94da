"""The live page: a small server on loopback that asks models what a person wants to see."""

from jumok.viewer.answers import Viewed, Viewer
from jumok.viewer.run import WatchedRun, is_run
from jumok.viewer.server import ViewerServer

__all__ = ["Viewed", "Viewer", "ViewerServer", "WatchedRun", "is_run"]
