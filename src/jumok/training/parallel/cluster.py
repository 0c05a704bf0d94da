"""The processes that torchrun has started: their ranks, their connections and their messages.

    torchrun --nnodes 3 --nproc-per-node 2 --rdzv-backend c10d --rdzv-endpoint host:port -m jumok train …

Torchrun sets the rank of each process and the address of rank 0 in RANK, WORLD_SIZE, MASTER_ADDR and
MASTER_PORT; any other launcher can set the same variables. Rank 0 trains as in a single process, with the run
folder on its disk. The others follow its orders (`follower.py`), which are JSON messages: nothing is pickled,
so no `*_object` collective of torch is used.

Connections are neither authenticated nor encrypted: any host that reaches the ports can join. Use a trusted
network. Every process listens on the address of one interface only. The variable GLOO_SOCKET_IFNAME names
this interface. If it is not set, the interface that leads to MASTER_ADDR is used. That interface is found
only on Linux and for an IPv4 address; otherwise Gloo uses the interface to which the name of the host
resolves.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import os
import platform
import socket
import struct
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed
from torch.distributed import TCPStore  # type: ignore[attr-defined]  # public, but not in __all__
from torch.distributed.distributed_c10d import PrefixStore, Store

from jumok.errors import TrainingError, UnsupportedError
from jumok.storage.model_folder import jumok_version
from jumok.system.messages import pack_message, read_message
from jumok.training.parallel.network import connection_errors, first_sentence

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jumok.system.messages import Message

JOIN_SECONDS = 300.0  # how long a rank waits until all others have connected
UPDATE_SECONDS = 900.0  # how long one exchange between the ranks may take during an update
ORDER_SECONDS = 30 * 24 * 3600.0  # how long a rank waits for an order while rank 0 reads, validates or saves
ORDER_BYTES = 256  # size of an order's first broadcast, padded; a longer order needs a second broadcast
ANSWER_BYTES = 1024  # size of an answer, padded; a longer answer is cut
_GET_INTERFACE_ADDRESS = 0x8915  # SIOCGIFADDR of Linux


@dataclass(frozen=True, slots=True)
class ClusterAddress:
    """The ranks and addresses that the launcher has set in the environment of a process."""

    rank: int
    world_size: int
    host: str  # of rank 0
    port: int
    local_rank: int = 0  # among the processes of this host
    hosts: int = 1  # number of torchruns, one per host
    agent_store: bool = False  # whether torchrun itself listens on the port
    restart_count: int = 0
    max_restarts: int = 0

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> ClusterAddress | None:
        """Return the address; None if this process was not started as one of several."""
        if "RANK" not in environment or environment.get("WORLD_SIZE", "1") == "1":
            return None
        needed = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
        received = {name: environment.get(name, "") for name in needed}
        numbers = [received[name] for name in needed if name != "MASTER_ADDR"]
        if not all(map(str.isdecimal, numbers)) or not received["MASTER_ADDR"]:
            raise UnsupportedError(
                "Several processes need the rank of each and the address of rank 0, as torchrun sets them. "
                f"Received: {', '.join(f'{name}={value}' for name, value in received.items())}. Start them "
                "by torchrun, or unset RANK to train with this process alone."
            )
        rank, world_size, port = map(int, numbers)
        return cls(
            rank=rank,
            world_size=world_size,
            host=received["MASTER_ADDR"],
            port=port,
            local_rank=int(environment.get("LOCAL_RANK", "0")),
            hosts=int(environment.get("GROUP_WORLD_SIZE", "1")),
            agent_store=environment.get("TORCHELASTIC_USE_AGENT_STORE") == "True",
            restart_count=int(environment.get("TORCHELASTIC_RESTART_COUNT", "0")),
            max_restarts=int(environment.get("TORCHELASTIC_MAX_RESTARTS", "0")),
        )


class Cluster:
    """The connections of one rank to all others."""

    def __init__(self, address: ClusterAddress, order_group: torch.distributed.ProcessGroup | None) -> None:
        self.rank, self.world_size, self.local_rank = address.rank, address.world_size, address.local_rank
        self._order_group = order_group

    def send_order(self, order: Message) -> None:
        """Send an order from rank 0 to all others."""
        data = pack_message(order)
        with connection_errors():
            self._broadcast(_bytes_tensor(data[:ORDER_BYTES].ljust(ORDER_BYTES, b"\0")))
            if len(data) > ORDER_BYTES:
                self._broadcast(_bytes_tensor(data[ORDER_BYTES:]))

    def receive_order(self) -> Message:
        """Wait for the next order of rank 0."""
        with connection_errors():
            beginning = self._broadcast(torch.zeros(ORDER_BYTES, dtype=torch.uint8)).numpy().tobytes()
            [length] = struct.unpack_from("<I", beginning)
            missing = struct.calcsize("<I") + length - ORDER_BYTES
            rest = b""
            if missing > 0:
                rest = self._broadcast(torch.zeros(missing, dtype=torch.uint8)).numpy().tobytes()
        order = read_message(io.BytesIO(beginning + rest))
        if order is None:
            raise TrainingError("An order of rank 0 is incomplete. Run the same command again.")
        return order

    def send_bytes(self, data: bytes) -> None:
        with connection_errors():
            self._broadcast(_bytes_tensor(data))

    def receive_bytes(self, length: int) -> bytes:
        with connection_errors():
            return self._broadcast(torch.zeros(length, dtype=torch.uint8)).numpy().tobytes()

    def gather_answers(self, answer: str) -> list[str]:
        """Exchange short texts; return the texts of all ranks, in order of rank."""
        data = answer.encode("utf-8", "replace")[:ANSWER_BYTES].ljust(ANSWER_BYTES, b"\0")
        answers = [torch.zeros(ANSWER_BYTES, dtype=torch.uint8) for _ in range(self.world_size)]
        with connection_errors():
            torch.distributed.all_gather(answers, _bytes_tensor(data), group=self._order_group)
        return [row.numpy().tobytes().rstrip(b"\0").decode("utf-8", "replace") for row in answers]

    def check_answers(self, answer: str, task: str) -> None:
        """Exchange an error message, or "" if there is none; raise on every rank if any rank has one.

        `task` is what each rank has tried to do: "open the files of the run".
        """
        answers = self.gather_answers(answer)
        failed = [f"  rank {rank}: {text}" for rank, text in enumerate(answers) if text]
        if failed:
            raise TrainingError("\n".join([f"Not every rank can {task}:", *failed]))

    def check_run_is_on_rank_0(self, *, has_run: bool) -> None:
        """Raise on every rank if another rank has the run folder and rank 0 does not have it."""
        hosts = self.gather_answers(socket.gethostname() if has_run else "")
        if any(hosts) and not hosts[0]:
            rank = next(rank for rank, host in enumerate(hosts) if host)
            raise TrainingError(
                f"The run folder is on the host of rank {rank} ({hosts[rank]}), not on the host of rank 0. "
                f"Only rank 0 continues a run. Make {hosts[rank]} the host of rank 0 (with --rdzv-backend "
                "c10d, it is the host whose --local-addr sorts first), or use a folder that all hosts share."
            )

    def _broadcast(self, tensor: torch.Tensor) -> torch.Tensor:
        torch.distributed.broadcast(tensor, 0, group=self._order_group)
        return tensor


_current: list[Cluster] = []
_stores: list[Store] = []
"""One entry for each cluster that this process has joined so far. All entries are the same store."""


def current_cluster() -> Cluster | None:
    """Return the cluster that this process has joined, if any. A process can join one at a time."""
    return _current[-1] if _current else None


@contextlib.contextmanager
def joined_cluster() -> Iterator[Cluster | None]:
    """Within this block all ranks are connected; yields None if this process was started alone.

    When rank 0 leaves the block, it orders the other ranks to end. If rank 0 leaves the block with an error,
    the other ranks end with an error.
    """
    address = ClusterAddress.from_environment()
    if address is None or _current:
        yield current_cluster()
        return
    cluster = _join(address)
    _current.append(cluster)
    failed = True
    try:
        yield cluster
        failed = False
    finally:
        _current.clear()
        if cluster.rank == 0:
            with contextlib.suppress(TrainingError):  # the others may have ended already
                cluster.send_order({"kind": "end", "failed": failed})
        torch.distributed.destroy_process_group()


def check_world_size(processes: int, world_size: int) -> None:
    """Raise if `world_size` ranks cannot continue a run of `processes` processes."""
    if processes != world_size:
        raise TrainingError(
            f"This run has {processes} processes. Received: {world_size} ranks. Its sums depend on their "
            f"number: start {processes} (--nnodes × --nproc-per-node of torchrun). A run that was started "
            "with training.shares = N can be continued by any number of processes up to N."
        )


def _join(address: ClusterAddress) -> Cluster:
    """Find the other ranks through the store at the address of rank 0, compare versions, and connect."""
    if address.agent_store and address.hosts > 1 and address.max_restarts:
        raise UnsupportedError(
            "Started like this, torchrun cannot restart workers on several hosts: the new workers would find "
            f"the addresses of the dead workers. Received: --max-restarts {address.max_restarts} on "
            f"{address.hosts} hosts. Set TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 before `torchrun` on each host."
        )
    _choose_interface(address)
    # The keys in the store have a prefix for each training of a script and for each restart of the workers,
    # because the store is not emptied in between. Each torchrun counts its own restarts, so the count is part
    # of the prefix only if one torchrun's store serves all ranks.
    restart = address.restart_count if address.agent_store else 0
    number = len(_stores)
    _stores.append(_stores[-1] if _stores else _open_store(address))
    store = PrefixStore(f"jumok/{restart}/{number}", _stores[-1])
    _compare_versions(store, address)
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    timeout = timedelta(seconds=UPDATE_SECONDS)
    try:
        torch.distributed.init_process_group(
            backend, store=store, rank=address.rank, world_size=address.world_size, timeout=timeout
        )
        order_group = torch.distributed.new_group(backend="gloo", timeout=timedelta(seconds=ORDER_SECONDS))
    except RuntimeError as error:
        raise _unreachable(address, first_sentence(error)) from error
    return Cluster(address, order_group)


def _open_store(address: ClusterAddress) -> Store:
    """Return the store in which the ranks find each other. Rank 0 listens, unless torchrun does."""
    timeout = timedelta(seconds=JOIN_SECONDS)
    options: dict[str, Any] = {"timeout": timeout, "wait_for_workers": False}
    if address.rank == 0 and not address.agent_store:
        listening = _listen(address)
        options |= {"is_master": True, "master_listen_fd": listening.detach()}
    try:
        return TCPStore(address.host, address.port, address.world_size, **options)
    except (RuntimeError, TimeoutError) as error:
        raise _unreachable(address, first_sentence(error)) from error


def _listen(address: ClusterAddress) -> socket.socket:
    """Return a socket that listens on the address of rank 0 alone; torch would listen on all addresses."""
    try:
        families = {entry[0] for entry in socket.getaddrinfo(address.host, address.port)}
        family = socket.AF_INET if socket.AF_INET in families else socket.AF_INET6
        return socket.create_server((address.host, address.port), family=family, backlog=2048)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            advice = "Another program listens there: choose another port (--rdzv-endpoint, or MASTER_PORT)."
        else:
            advice = "Rank 0 must run on the host of that name: check --rdzv-endpoint, or MASTER_ADDR."
        raise TrainingError(
            f"Rank 0 cannot listen on port {address.port} of {address.host}: "
            f"{error.strerror or error}. {advice}"
        ) from error


def _unreachable(address: ClusterAddress, reason: str) -> TrainingError:
    return TrainingError(
        f"Rank {address.rank} of {address.world_size} could not connect to the others at port {address.port} "
        f"of {address.host} ({reason}). Check that every host can reach that address, that no firewall is "
        "between them (workers also use ports chosen by the system), and that all were started."
    )


def _compare_versions(store: Store, address: ClusterAddress) -> None:
    """Raise on every rank whose program or type of processor differs from rank 0's, and on rank 0 too."""
    own = {
        "jumok": jumok_version(),
        "digest of the source code": _code_digest(),
        "torch": torch.__version__,
        "machine": platform.machine(),
    }
    store.set(f"version/{address.rank}", json.dumps({**own, "host": socket.gethostname()}))
    others = range(1, address.world_size) if address.rank == 0 else [0]
    for rank in others:
        try:
            other = json.loads(store.get(f"version/{rank}"))
        except (RuntimeError, TimeoutError) as error:
            raise _unreachable(address, f"rank {rank} did not connect within {JOIN_SECONDS:.0f} s") from error
        differing = [name for name in own if own[name] != other.get(name)]
        if differing:
            values = "; ".join(f"{name}: {own[name]} here, {other.get(name)} there" for name in differing)
            problem = "do not run the same program"
            advice = "Install the same versions on every host."
            if differing == ["machine"]:
                problem = "do not have the same type of processor"
                advice = "Rounding differs between types. Use hosts of one type."
            raise TrainingError(
                f"Rank {address.rank} and rank {rank} (host {other.get('host')}) {problem}. {values}. "
                f"{advice}"
            )


def _code_digest() -> str:
    """Return a digest of jumok's own source code.

    The version number is not enough, because an edited checkout has the version number of its release.
    """
    digest = hashlib.sha256()
    package = Path(__file__).parents[2]
    for path in sorted(package.rglob("*.py")):
        digest.update(str(path.relative_to(package)).encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def _choose_interface(address: ClusterAddress) -> None:
    """Choose the interface that leads to rank 0, unless the user has chosen one.

    If that interface is not found, Gloo uses the interface to which the name of this host resolves.
    """
    if "GLOO_SOCKET_IFNAME" not in os.environ and (name := _interface_towards(address)):
        os.environ["GLOO_SOCKET_IFNAME"] = name
        os.environ.setdefault("NCCL_SOCKET_IFNAME", name)


def _interface_towards(address: ClusterAddress) -> str | None:
    """Return the name of the interface by which this host reaches rank 0; None if it cannot be found."""
    try:
        import fcntl  # optional: not on Windows
    except ImportError:
        return None
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((address.host, address.port))  # connecting a UDP socket sends nothing
        own_address = probe.getsockname()[0]
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):  # an interface without address
                request = struct.pack("256s", name.encode()[:15])
                answer = fcntl.ioctl(probe.fileno(), _GET_INTERFACE_ADDRESS, request)
                if socket.inet_ntoa(answer[20:24]) == own_address:
                    return name
    return None


def _bytes_tensor(data: bytes) -> torch.Tensor:
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)
