"""Control Firefox with its protocol Marionette. Playwright can control only its own build of Firefox.

A message is its length, a colon and a JSON array: [0, id, command, arguments] or [1, id, error, result].
https://firefox-source-docs.mozilla.org/testing/marionette/Protocol.html
"""

from __future__ import annotations

import json
import socket
import subprocess
import time
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from pathlib import Path

TIMEOUT_SECONDS = 60


class Firefox:
    """A headless Firefox with an empty profile and without access to the network."""

    def __init__(self, profile: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        preferences = {
            "marionette.port": port,
            "network.proxy.type": 1,  # all requests go to a proxy that does not exist
            "network.proxy.http": "127.0.0.1",
            "network.proxy.http_port": 9,
            "network.proxy.ssl": "127.0.0.1",
            "network.proxy.ssl_port": 9,
            "app.update.enabled": False,
            "datareporting.policy.dataSubmissionEnabled": False,
        }
        lines = [
            f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in preferences.items()
        ]
        (profile / "user.js").write_text("\n".join(lines), encoding="utf-8")
        command = ["firefox-esr", "--headless", "--marionette", "--no-remote", "--profile", str(profile)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._connection = self._connect(port)
        self._id = 0
        self._read()  # the greeting
        self._send("WebDriver:NewSession", {})
        self._send("WebDriver:SetTimeouts", {"script": TIMEOUT_SECONDS * 1000})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._connection.close()
        self._process.terminate()
        self._process.wait(timeout=TIMEOUT_SECONDS)

    def open(self, address: str) -> None:
        self._send("WebDriver:Navigate", {"url": address})

    def run(self, script: str, arguments: list[Any] | None = None) -> Any:
        """Run `script` as the body of a function in the page, and return the result of the function."""
        return self._send("WebDriver:ExecuteScript", {"script": script, "args": arguments or []})["value"]

    def call(self, function: str, argument: Any) -> Any:
        """Call an asynchronous JavaScript function in the page. Return its result, or its error as text."""
        script = (
            "const [argument, done] = arguments; "
            f"({function})(argument).then(done, (error) => done(String(error)))"
        )
        return self._send("WebDriver:ExecuteAsyncScript", {"script": script, "args": [argument]})["value"]

    def wait_for(self, expression: str) -> None:
        """Wait until a JavaScript expression is true in the page."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not self.run(f"return !!({expression})"):
            if time.monotonic() > deadline:
                raise AssertionError(f"{expression} did not become true")
            time.sleep(0.2)

    def _connect(self, port: int) -> socket.socket:
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while True:
            try:
                return socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_SECONDS)
            except OSError:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise
                time.sleep(0.2)

    def _send(self, command: str, arguments: dict[str, Any]) -> Any:
        self._id += 1
        data = json.dumps([0, self._id, command, arguments]).encode()
        self._connection.sendall(b"%d:%s" % (len(data), data))
        _, _, error, result = self._read()
        if error:
            raise AssertionError(error)
        return result

    def _read(self) -> Any:
        length = b""
        while not length.endswith(b":"):
            length += self._receive(1)
        data, size = b"", int(length[:-1])
        while len(data) < size:
            data += self._receive(size - len(data))
        return json.loads(data)

    def _receive(self, max_bytes: int) -> bytes:
        data = self._connection.recv(max_bytes)
        if not data:
            raise AssertionError("Firefox has closed the connection")
        return data
