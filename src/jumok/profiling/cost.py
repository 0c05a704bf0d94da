"""What a forward pass costs: seconds, products, bytes, and how long its longest chain of operations is.

Seconds are measured by the clock and vary; the rest is counted as the operations go by, and is the same each
time. Counted are tensors that operations return: what a kernel needs inside itself, and gives back before it
returns, is not seen.
"""

from __future__ import annotations

import ctypes
import math
import platform
import statistics
import time
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["Trace", "Traced", "fit_exponent", "keep_memory", "race", "trace"]

MOST_ROUNDS = 5
# In its turn a fast contender runs several times, since a single run is soon disturbed.
TURN_SECONDS, MOST_IN_TURN = 0.2, 8
# More bytes than the caches next to the cores have. Between runs they are written, or short sequences would
# find their states there and long ones would not: a fact about the machine, not about the layer.
CACHE_BYTES = 2**24

# Of malloc.h: what is never mapped apart is not unmapped, and what is never trimmed stays.
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Traced:
    """What was counted during one pass."""

    peak_bytes: int
    longest_chain: int
    multiply_adds: int


def trace(run: Callable[[], object]) -> Traced:
    """Run once without gradients, and count."""
    with torch.no_grad(), Trace() as traced:
        run()
    return Traced(traced.peak_bytes, traced.longest_chain, traced.multiply_adds)


def _formulas() -> dict[Any, Callable[..., int]]:
    """How torch's counter finds the operations of each kernel. Entered, it would be slow."""
    fused = {torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: _fused_operations}
    return FlopCounterMode(display=False, custom_mapping=fused).flop_registry


def _fused_operations(query: torch.Size, key: torch.Size, value: torch.Size, *_: object, **__: object) -> int:
    """Operations of the fused kernel on a CPU, which torch's counter does not know: QKᵀ, then times V."""
    batch, head, queries, width = query
    return 2 * batch * head * queries * key[2] * (width + value[3])


class Trace(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Follows every tensor made while it is entered, to the moment when its memory is given back.

    `peak_bytes` is the largest sum of their sizes at any time; what existed before does not count, nor do
    views. `longest_chain` is the most operations of which each had to wait for the one before.
    `multiply_adds` are products, each with its addition, where torch knows a formula: matrices, convolutions.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled here, and to say so would import the compiler, which takes seconds

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.peak_bytes = 0
        self.longest_chain = 0
        self._operations = 0
        self._formulas = _formulas()
        self._live_bytes = 0
        self._chains: dict[int, int] = {}  # by the address of a storage: the chain that ends with it

    @property
    def multiply_adds(self) -> int:
        return self._operations // 2  # torch counts a product and its addition as two

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        made = func(*args, **kwargs)
        if formula := self._formulas.get(func._overloadpacket):
            self._operations += formula(*args, **kwargs, out_val=made)
        given = _storages([*args, *kwargs.values()])
        chain = _steps(func, args) + max((self._chains.get(address, 0) for address in given), default=0)
        for address, storage in _storages([made]).items():
            if address not in given:
                self._hold(storage, chain)
            elif func._schema.is_mutable:  # written in place; otherwise it is a view, which costs nothing
                self._chains[address] = chain
            else:
                continue
            self.longest_chain = max(self.longest_chain, chain)
        return made

    def _hold(self, storage: torch.UntypedStorage, chain: int) -> None:
        address, size = storage._cdata, storage.nbytes()
        self._live_bytes += size
        self.peak_bytes = max(self.peak_bytes, self._live_bytes)
        self._chains[address] = chain
        weakref.finalize(storage, self._release, address, size).atexit = False

    def _release(self, address: int, size: int) -> None:
        self._live_bytes -= size
        del self._chains[address]


def _storages(values: Sequence[object]) -> dict[int, torch.UntypedStorage]:
    """The memory behind the tensors among these values, and in lists of tensors, by its address."""
    found: dict[int, torch.UntypedStorage] = {}
    for value in values:
        if isinstance(value, Tensor):
            storage = value.untyped_storage()
            found[storage._cdata] = storage
        elif isinstance(value, list | tuple):
            found |= _storages(value)
    return found


def _steps(func: Any, args: tuple[Any, ...]) -> int:
    """How many steps, each waiting for the one before, an operation is.

    A running sum has one a term. What lays results side by side computes nothing, and has none: a sequence
    in several chunks takes no longer than one if there is a processor for each.
    """
    if func is torch.ops.aten.cumsum.default:
        return int(args[0].shape[args[1]])
    return 0 if func is torch.ops.aten.cat.default else 1


def race(runs: Mapping[Key, Callable[[], object]], *, seconds: float) -> dict[Key, float]:
    """The median seconds of each run. They take turns, so that whatever disturbs, disturbs all of them.

    There is one round in any case, and no further one that would end after `seconds`. Each should have run
    before: the first run of anything is slow. Every run finds the caches filled with something else.
    """
    taken: dict[Key, list[float]] = {key: [] for key in runs}
    cache = torch.zeros(CACHE_BYTES, dtype=torch.uint8)
    end = time.perf_counter() + seconds
    with torch.no_grad():
        for _ in range(MOST_ROUNDS):
            started = time.perf_counter()
            for key, run in runs.items():
                taken[key] += _turn(run, cache)
            now = time.perf_counter()
            if 2 * now - started > end:
                break
    return {key: statistics.median(times) for key, times in taken.items()}


def _turn(run: Callable[[], object], cache: Tensor) -> list[float]:
    """The seconds of several runs; the first, in memory that others have used since, counts only if alone."""
    times: list[float] = []
    while sum(times) < TURN_SECONDS and len(times) < MOST_IN_TURN:
        cache.add_(1)
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return times[1:] or times


def keep_memory() -> bool:
    """Ask the C library to keep the memory that tensors leave behind, for as long as the process lives.

    By default large pieces go back to the system at once, and come again as pages that must be cleared: of a
    fast layer over a long sequence that can be half the time. Returns whether the library knows how.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    library = ctypes.CDLL(None)
    return bool(library.mallopt(M_MMAP_MAX, 0) and library.mallopt(M_TRIM_THRESHOLD, 2**31 - 1))


def fit_exponent(amounts: Mapping[int, float]) -> float:
    """p of amount ≈ c · nᵖ, by least squares among the logarithms, from amounts by n."""
    sizes = [math.log(size) for size in amounts]
    return statistics.linear_regression(sizes, [math.log(amount) for amount in amounts.values()]).slope
