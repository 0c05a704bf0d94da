"""Run the engine of live files, `engine.js`, in Node as a browser runs it in a worker."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest

import jumok.plots

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.analysis.live_file import PackedModel

ENGINE = Path(jumok.plots.__file__).parent / "engine.js"
DRIVER = Path(__file__).parent / "run_engine.mjs"
# The number of requests that are sent before their answers are read. If this number were large, the answers
# would fill the pipe, and both processes would wait for each other.
MAX_UNANSWERED = 8


class EngineProcess:
    """A Node process that answers requests as the worker of a live file does."""

    def __init__(self, packed: PackedModel) -> None:
        node = shutil.which("node")
        if node is None:
            pytest.skip("Node is not installed: the engine of live files cannot run here")
        self._process = subprocess.Popen(
            [node, str(DRIVER), str(ENGINE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )
        weights = base64.b64encode(packed.weights).decode()
        self._send({"kind": "model", "model": packed.description, "weights": weights})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.communicate()

    def ask(self, operation: str, **request: Any) -> Any:
        """Return the answer to one request."""
        [message] = self.ask_all(operation, [request])
        if "error" in message:
            raise AssertionError(message["error"])
        return message["answer"]

    def refusal(self, operation: str, **request: Any) -> str:
        """Return the error message of a request that the engine must refuse."""
        [message] = self.ask_all(operation, [request])
        return str(message["error"])

    def ask_all(self, operation: str, requests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the last message of each request: {"answer": …} or {"error": …}."""
        last_messages: dict[int, dict[str, Any]] = {}
        for start in range(0, len(requests), MAX_UNANSWERED):
            chunk = range(start, min(start + MAX_UNANSWERED, len(requests)))
            for i in chunk:
                self._send({"kind": "request", "id": i, "operation": operation, "request": requests[i]})
            while not all(i in last_messages for i in chunk):
                assert self._process.stdout is not None
                message = json.loads(self._process.stdout.readline())
                if "partial" not in message:
                    last_messages[message["id"]] = message
        return [last_messages[i] for i in range(len(requests))]

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
