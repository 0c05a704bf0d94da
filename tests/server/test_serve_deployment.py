"""The deployment examples of docs/serve.md are valid for `jumok serve`, for systemd and for nginx."""

from __future__ import annotations

import http.client
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from jumok.cli import main
from jumok.server.limits import Limits
from support.serve_process import Answer, serving_in_thread

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.serve_process import RunningServer

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")
CONSTRAINTS = (ROOT / "constraints.txt").read_text(encoding="utf-8")
[TORCH_VERSION] = re.findall(r"^torch==(\S+)$", CONSTRAINTS, re.MULTILINE)
HOST_NAME = "translate.example.org"
REQUEST = {"q": "one two", "source": "en", "target": "de"}


def example(language: str) -> str:
    """Return the only code block of this language (ini, dockerfile, nginx, …) in docs/serve.md."""
    [code] = re.findall(rf"^```{language}\n(.*?)^```", DOCUMENT, re.MULTILINE | re.DOTALL)
    return str(code)


def commands() -> dict[str, list[str]]:
    """Return a dict from the name of each `jumok serve` in the document to its arguments."""
    shell = "".join(re.findall(r"^```sh\n(.*?)^```", DOCUMENT, re.MULTILINE | re.DOTALL)).replace("\\\n", "")
    [systemd_line] = re.findall(r"^ExecStart=\S+ serve (.*)$", example("ini"), re.MULTILINE)
    [entry_point] = re.findall(r"^ENTRYPOINT (.*)$", example("dockerfile"), re.MULTILINE)
    [docker_line] = re.findall(r"^docker run .* jumok (/models/.*)$", shell, re.MULTILINE)
    shell_lines = re.findall(r"^jumok serve (.*)$", shell, re.MULTILINE)
    return {
        "systemd": shlex.split(systemd_line),
        "container": [*json.loads(entry_point)[2:], *shlex.split(docker_line)],  # without "jumok", "serve"
        **{line: shlex.split(line, comments=True) for line in shell_lines},
    }


def test_the_container_installs_pinned_packages_from_one_index_each() -> None:
    """With --extra-index-url, a stranger's package of the same name could be taken from the other index."""
    lines = example("dockerfile").replace("\\\n", "").splitlines()
    [command] = [line for line in lines if line.startswith("RUN ")]
    first, second = [shlex.split(part) for part in command.split("&&") if "pip install" in part]
    assert "--extra-index-url" not in command
    assert [word for word in first if word.startswith("torch")] == [f"torch=={TORCH_VERSION}"]
    assert "--index-url" in first
    assert f"jumok[serve]=={metadata.version('jumok')}" in second
    assert f"torch=={TORCH_VERSION}" in second  # so that pip keeps the build that was installed first
    assert "--index-url" not in second


@pytest.mark.parametrize("name", commands())
def test_the_server_accepts_the_options_of_every_example(
    name: str, model: Path, second_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = tmp_path / "keys"
    keys.write_text("a-long-enough-secret", encoding="utf-8")
    keys.chmod(0o600)
    models = iter([model, second_model])
    words = [
        str(keys) if word.endswith("/keys") else str(next(models)) if is_model(word) else word
        for word in commands()[name]
    ]
    with pytest.raises(SystemExit) as end:
        main(["serve", *words, *(["--check"] * ("--check" not in words))])
    output = capsys.readouterr()
    assert (end.value.code, output.err) == (0, "")
    assert "English → German" in output.out
    assert (f"keys      {keys}" in output.out) is (str(keys) in words)


def is_model(word: str) -> bool:
    """Return whether an argument is a model's path. Other arguments, except key files, have no slash."""
    return "/" in word and not word.startswith("-")


def test_docs_serve_md_describes_every_option_of_jumok_serve(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["serve", "--help"])
    offered = set(re.findall(r"^  (--[a-z-]+)", capsys.readouterr().out, re.MULTILINE))
    rows = re.findall(r"^\| (`--.*?) \|", DOCUMENT, re.MULTILINE)
    assert set(re.findall(r"--[a-z-]+", " ".join(rows))) == offered
    assert set(re.findall(r"(?<=`)--[a-z-]+", DOCUMENT)) == offered


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "jumok.service"
    text = example("ini").replace("/opt/jumok/bin/jumok", shutil.which("true") or "")
    misspelt = text.replace("DynamicUser", "DinamicUser")
    for unit_text, is_valid in ((text, True), (misspelt, False)):
        unit.write_text(unit_text, encoding="utf-8")
        result = subprocess.run(
            ["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False, timeout=60
        )
        # systemd-analyze also reports errors in other units of this machine.
        assert ("jumok" not in result.stderr) is is_valid, result.stderr


# --- nginx --------------------------------------------------------------------------------------------------


@contextmanager
def nginx(folder: Path, server: RunningServer) -> Iterator[int]:
    """Run nginx with the documented configuration in front of a server. Yield the port of nginx."""
    with socket.create_server(("127.0.0.1", 0)) as free_socket:
        port: int = free_socket.getsockname()[1]
    block = example("nginx").replace("127.0.0.1:5000", f"127.0.0.1:{server.port}")
    paths = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{path}_temp_path {folder}/{path};\n" for path in paths)
    user = "user root;" * (os.getuid() == 0)
    (folder / "nginx.conf").write_text(
        f"{user}\ndaemon off;\npid {folder}/pid;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{temporary}server {{\nlisten 127.0.0.1:{port};\n{block}}}\n}}\n",
        encoding="utf-8",
    )
    process = subprocess.Popen(["nginx", "-c", folder / "nginx.conf", "-e", folder / "error.log"])
    try:
        for _ in range(300):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None, (folder / "error.log").read_text(encoding="utf-8")
            time.sleep(0.1)
        yield port
    finally:
        process.terminate()
        process.wait(timeout=60)


@contextmanager
def response_to(
    port: int, path: str, body: bytes, address: str = "127.0.0.1", **headers: str
) -> Iterator[http.client.HTTPResponse]:
    """Send a request for the public host name to nginx, from the loopback address `address`.

    Yield the response.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120, source_address=(address, 0))
    all_headers = {"Host": f"{HOST_NAME}:{port}", "Content-Type": "application/json", **headers}
    try:
        connection.request("POST", path, body, all_headers)
        yield connection.getresponse()
    finally:
        connection.close()


def post(*arguments: Any, **headers: str) -> Answer:
    with response_to(*arguments, **headers) as response:
        return Answer(response.status, dict(response.getheaders()), response.read())


def received_sizes(port: int, path: str, body: bytes, address: str) -> list[int]:
    """Return the number of bytes that each read of an event stream receives. `address` is the client's."""
    with socket.create_connection(
        ("127.0.0.1", port), timeout=120, source_address=(address, 0)
    ) as connection:
        head = f"POST {path} HTTP/1.1\r\nHost: {HOST_NAME}\r\nContent-Type: application/json\r\n"
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        received, sizes = b"", []
        while b"event: done" not in received and (chunk := connection.recv(65_536)):
            received += chunk
            sizes.append(len(chunk))
    assert b"event: done" in received
    return sizes


@pytest.mark.medium
@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")
def test_the_documented_nginx_passes_on_host_names_addresses_streams_and_bodies(
    model: Path, tmp_path: Path
) -> None:
    limits = Limits(requests_per_minute=10)  # per address, so each part of the test has its own address
    settings = {"proxies": ("127.0.0.1",), "allowed_hosts": (HOST_NAME,), "limits": limits}
    with serving_in_thread(tmp_path, model, **settings) as server, nginx(tmp_path, server) as port:
        # The page's own origin is allowed, and the URLs of translated files have the public host name.
        body = json.dumps(REQUEST).encode()
        assert post(port, "/translate", body, Origin=f"http://{HOST_NAME}:{port}").status == 200
        assert post(port, "/translate", body, Origin="http://127.0.0.1").status == 403
        part = b'--x\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'
        body = b"".join(part % pair for pair in ((b"file", b"one"), (b"source", b"en"), (b"target", b"de")))
        headers = {"Content-Type": "multipart/form-data; boundary=x"}
        answer = post(port, "/translate_file", body + b"--x--\r\n", "127.0.0.2", **headers)
        assert answer.json["translatedFileUrl"].startswith(f"http://{HOST_NAME}:{port}/download_file/")
        # A stream is passed on while it is generated: the first read is far from all of it. On a busy machine
        # several events may arrive together, so one of five streams is enough.
        body = json.dumps({**REQUEST, "q": ["one two three four five"] * 30, "greedy": True}).encode()
        sizes_of_streams = [received_sizes(port, "/v1/translate/stream", body, "127.0.0.3") for _ in range(5)]
        assert any(sizes[0] < sum(sizes) / 2 for sizes in sizes_of_streams)
        # nginx forwards every body that the server's own limit allows. Status 400 shows that the server has
        # read the body.
        for size, status in ((limits.max_body_bytes - 100, 400), (limits.max_body_bytes + 1, 413)):
            text = b"x" * (size - len(b'{"q": ""}'))
            large = post(port, "/translate", b'{"q": "%b"}' % text, "127.0.0.4")
            assert large.status == status
        # Each client has a rate limit of its own. The address in X-Forwarded-For does not change this.
        for address in ("127.0.0.5", "127.0.0.6"):
            statuses = [
                post(port, "/detect", b'{"q": "one"}', address, **{"X-Forwarded-For": f"10.0.0.{n}"}).status
                for n in range(12)
            ]
            assert statuses[:10] == [200] * 10
            assert 429 in statuses
