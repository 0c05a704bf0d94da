"""Torchrun on three hosts: a run ends with the same weights if a worker is killed or a host is lost.

A host is a network namespace with an interface of its own. A bridge in a further namespace connects them, so
nothing of the machine's own network changes. Making namespaces needs root and the command `ip`.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jumok.training.loop.checkpoint import saved_steps
from support.digits import TINY, digit_pairs

if TYPE_CHECKING:
    from collections.abc import Iterator

IP = shutil.which("ip")
NUM_HOSTS = 3
PORT = 29517
TIMEOUT_SECONDS = 400.0  # long, since torchrun notices the loss of a host only after a minute
SETTINGS = {
    **{name: value for name, value in TINY.items() if name != "training.processes"},
    "training.steps": 400,
    "training.validate_every": 100,
    "training.warmup_steps": 2,
    "training.patience": 0,
}


def ip(*arguments: str) -> None:
    assert IP is not None
    subprocess.run([IP, *arguments], check=True, capture_output=True, timeout=20)


def can_make_hosts() -> bool:
    if IP is None or os.geteuid() != 0:
        return False
    try:
        ip("netns", "add", f"jumok-try-{os.getpid()}")
        ip("netns", "delete", f"jumok-try-{os.getpid()}")
    except (OSError, subprocess.SubprocessError):
        return False
    return True


pytestmark = [pytest.mark.slow, pytest.mark.no_cover]


class Hosts:
    """Network namespaces that see each other and nothing else."""

    def __init__(self) -> None:
        self.names = [f"jumok{os.getpid()}-{index}" for index in range(NUM_HOSTS)]
        self.addresses = [f"10.77.31.{index + 1}" for index in range(NUM_HOSTS)]

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Make the namespaces and the bridge between them; delete them at the end."""
        switch = f"jumok{os.getpid()}-switch"
        with ExitStack() as stack:
            for name in (switch, *self.names):
                ip("netns", "add", name)
                stack.callback(ip, "netns", "delete", name)
            ip("-n", switch, "link", "add", "bridge", "type", "bridge")
            ip("-n", switch, "link", "set", "bridge", "up")
            for index, (name, address) in enumerate(zip(self.names, self.addresses, strict=True)):
                port = f"port{index}"
                ip("-n", name, "link", "add", "eth0", "type", "veth", "peer", "name", port, "netns", switch)
                ip("-n", switch, "link", "set", port, "master", "bridge", "up")
                ip("-n", name, "address", "add", f"{address}/24", "dev", "eth0")
                ip("-n", name, "link", "set", "eth0", "up")
                ip("-n", name, "link", "set", "lo", "up")
            yield

    def start(self, index: int, nodes: str, log: Path, *arguments: str) -> subprocess.Popen[bytes]:
        """Start torchrun on a host. `nodes` is its option --nnodes, such as `3`, or `2:3` for 2 to 3 hosts.

        `ip netns exec` starts no child process, so the result is the process of torchrun itself.
        """
        assert IP is not None
        rendezvous_settings = f"is_host={'true' if index == 0 else 'false'},join_timeout=300"
        options = ["--nnodes", nodes, "--nproc-per-node", "1", "--max-restarts", "3", "--rdzv-id", "test"]
        options += ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"{self.addresses[0]}:{PORT}"]
        options += ["--rdzv-conf", rendezvous_settings, "--local-addr", self.addresses[index]]
        command = [IP, "netns", "exec", self.names[index], sys.executable, "-m", "torch.distributed.run"]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
        with log.open("wb") as output:
            return subprocess.Popen(
                [*command, *options, "-m", "jumok", *arguments],
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
            )


@contextmanager
def torchruns(
    hosts: Hosts, nodes: str, folder: Path, arguments: list[str]
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Start torchrun on every host, and yield these processes; at the end kill them and their workers."""
    logs = [folder / f"host{index}.log" for index in range(NUM_HOSTS)]
    processes = [hosts.start(index, nodes, log, *arguments) for index, log in enumerate(logs)]
    try:
        yield processes
    finally:
        for process in processes:
            for worker in workers_of(process.pid):
                kill(worker)
            process.kill()
            process.wait()


def workers_of(torchrun: int) -> list[int]:
    """Return the process ids of the workers that this process has started; none if it has ended."""
    try:
        return [int(pid) for pid in Path(f"/proc/{torchrun}/task/{torchrun}/children").read_text().split()]
    except OSError:
        return []


def kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def wait_for_checkpoint(out: Path, log: Path) -> None:
    end = time.monotonic() + TIMEOUT_SECONDS
    while not saved_steps(out / "checkpoints"):
        assert time.monotonic() < end, log.read_text()[-3000:]
        time.sleep(0.02)


def train_arguments(pairs: Path, out: Path, **settings: object) -> list[str]:
    """Return the arguments of `jumok train`. The keyword training_shares sets training.shares."""
    all_settings = {**SETTINGS, **{name.replace("_", ".", 1): value for name, value in settings.items()}}
    assignments = [word for name, value in all_settings.items() for word in ("--set", f"{name}={value}")]
    return ["train", str(pairs), "--from", "en", "--to", "de", "--out", str(out), *assignments]


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    if not can_make_hosts():
        pytest.skip("needs root and network namespaces")
    hosts = Hosts()
    with hosts.connected():
        yield hosts


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.en-de.tsv"
    path.write_text("".join(f"{pair.source}\t{pair.target}\n" for pair in digit_pairs(400)))
    return path


def train_here(arguments: list[str]) -> None:
    subprocess.run(
        [sys.executable, "-m", "jumok", *arguments],
        check=True,
        capture_output=True,
        timeout=TIMEOUT_SECONDS,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def weights(out: Path) -> bytes:
    return (out / "model" / "weights.safetensors").read_bytes()


def test_a_run_with_a_killed_worker_ends_with_the_weights_of_an_undisturbed_run(
    tmp_path: Path, pairs: Path, hosts: Hosts
) -> None:
    train_here(train_arguments(pairs, tmp_path / "here", training_processes=3))
    out = tmp_path / "hosts"
    with torchruns(hosts, "3", tmp_path, train_arguments(pairs, out)) as processes:
        wait_for_checkpoint(out, tmp_path / "host0.log")
        [worker] = workers_of(processes[1].pid)
        kill(worker)
        codes = [process.wait(TIMEOUT_SECONDS) for process in processes]
    assert codes == [0, 0, 0], (tmp_path / "host0.log").read_text()[-3000:]
    assert "continuing from step" in (tmp_path / "host0.log").read_text()
    assert weights(out) == weights(tmp_path / "here")


def test_the_hosts_that_remain_after_one_is_lost_reach_the_same_weights(
    tmp_path: Path, pairs: Path, hosts: Hosts
) -> None:
    train_here(train_arguments(pairs, tmp_path / "here", training_shares=6))
    out = tmp_path / "hosts"
    arguments = train_arguments(pairs, out, training_shares=6)
    with torchruns(hosts, "2:3", tmp_path, arguments) as processes:
        wait_for_checkpoint(out, tmp_path / "host0.log")
        lost_host = [*workers_of(processes[2].pid), processes[2].pid]
        for pid in lost_host:
            kill(pid)
        codes = [process.wait(TIMEOUT_SECONDS) for process in processes[:2]]
    assert codes == [0, 0], (tmp_path / "host0.log").read_text()[-3000:]
    assert "continuing from step" in (tmp_path / "host0.log").read_text()
    assert weights(out) == weights(tmp_path / "here")
