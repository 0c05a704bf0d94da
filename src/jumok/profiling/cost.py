"""The cost of a forward pass: seconds, multiply-adds, bytes, and the longest chain of operations.

Seconds are measured and vary. The other costs are counted per operation and are the same each time. Bytes are
the sizes of tensors that operations return, without memory that a kernel allocates and frees internally.
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

MAX_ROUNDS = 5
# A fast layer runs several times per turn, since a single run is easily disturbed.
TURN_SECONDS, MAX_RUNS_PER_TURN = 0.2, 8
# A buffer of this size, larger than the caches of the cores, is overwritten between runs. Without this, the
# states of short sequences would be in the cache and those of long sequences would not, and the growth of the
# times would show the size of the cache.
FLUSH_BYTES = 2**24

# Parameters of mallopt, from malloc.h: when to trim the heap, and how many blocks to map separately.
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class PassCost:
    """The counts of one forward pass."""

    peak_bytes: int
    longest_chain: int
    multiply_adds: int


def count_cost(run: Callable[[], object]) -> PassCost:
    """Run once without gradients and return the counts."""
    with torch.no_grad(), OperationCounter() as counter:
        run()
    return PassCost(counter.peak_bytes, counter.longest_chain, counter.multiply_adds)


def _formulas() -> dict[Any, Callable[..., int]]:
    """Return the formulas of torch's FLOP counter by operation. The counter itself is slow and not used."""
    fused = {torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: _fused_flops}
    return FlopCounterMode(display=False, custom_mapping=fused).flop_registry


def _fused_flops(query: torch.Size, key: torch.Size, value: torch.Size, *_: object, **__: object) -> int:
    """Return the FLOPs of the fused CPU kernel, which torch's counter does not know.

    The kernel computes the product QKᵀ and, after a softmax, the product with V.
    """
    batch, head, queries, width = query
    return 2 * batch * head * queries * key[2] * (width + value[3])


class OperationCounter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Follows every tensor that is created inside the context until its memory is freed.

    `peak_bytes` is the largest total size at any time, without views and tensors that existed before.
    `longest_chain` is the length of the longest chain of operations in which each operation depends on the
    previous operation. `multiply_adds` counts the operations that have a formula: matrix products,
    convolutions and fused attention.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled here, and True would import the compiler, which takes seconds

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.peak_bytes = 0
        self.longest_chain = 0
        self._flops = 0
        self._formulas = _formulas()
        self._live_bytes = 0
        self._chains: dict[int, int] = {}  # address of a storage -> length of the chain that ends with it

    @property
    def multiply_adds(self) -> int:
        return self._flops // 2  # torch counts a multiplication and its addition as two

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if formula := self._formulas.get(func._overloadpacket):
            self._flops += formula(*args, **kwargs, out_val=result)
        inputs = _storages([*args, *kwargs.values()])
        chain = _sequential_steps(func, args) + max(
            (self._chains.get(address, 0) for address in inputs), default=0
        )
        for address, storage in _storages([result]).items():
            if address not in inputs:
                self._track(storage, chain)
            elif func._schema.is_mutable:  # the operation has changed an input in place
                self._chains[address] = chain
            else:  # the result is a view, which costs nothing
                continue
            self.longest_chain = max(self.longest_chain, chain)
        return result

    def _track(self, storage: torch.UntypedStorage, chain: int) -> None:
        address, size = storage._cdata, storage.nbytes()
        self._live_bytes += size
        self.peak_bytes = max(self.peak_bytes, self._live_bytes)
        self._chains[address] = chain
        weakref.finalize(storage, self._release, address, size).atexit = False

    def _release(self, address: int, size: int) -> None:
        self._live_bytes -= size
        del self._chains[address]


def _storages(values: Sequence[object]) -> dict[int, torch.UntypedStorage]:
    """Return address → storage of all tensors among these values, including tensors in lists."""
    storages: dict[int, torch.UntypedStorage] = {}
    for value in values:
        if isinstance(value, Tensor):
            storage = value.untyped_storage()
            storages[storage._cdata] = storage
        elif isinstance(value, list | tuple):
            storages |= _storages(value)
    return storages


def _sequential_steps(func: Any, args: tuple[Any, ...]) -> int:
    """Return the number of sequential steps of an operation.

    A running sum has one step per term. Concatenation computes nothing and has no steps. So a layer that
    computes a sequence in independent chunks and joins them has as many steps as with one chunk.
    """
    if func is torch.ops.aten.cumsum.default:
        return int(args[0].shape[args[1]])
    return 0 if func is torch.ops.aten.cat.default else 1


def time_in_turns(runs: Mapping[Key, Callable[[], object]], *, seconds: float) -> dict[Key, float]:
    """Return the median seconds of a call of each function in `runs`.

    The functions take turns, so that a disturbance affects all of them. There is at least one round of turns.
    Another round, up to `MAX_ROUNDS`, follows if it is expected to end within `seconds` of the start. The
    caller should have called each function once before, since the first call is slow. The caches are
    overwritten before every call.
    """
    times_by_key: dict[Key, list[float]] = {key: [] for key in runs}
    flush_buffer = torch.zeros(FLUSH_BYTES, dtype=torch.uint8)
    end = time.perf_counter() + seconds
    with torch.no_grad():
        for _ in range(MAX_ROUNDS):
            started = time.perf_counter()
            for key, run in runs.items():
                times_by_key[key] += _time_turn(run, flush_buffer)
            now = time.perf_counter()
            if 2 * now - started > end:
                break
    return {key: statistics.median(times) for key, times in times_by_key.items()}


def _time_turn(run: Callable[[], object], flush_buffer: Tensor) -> list[float]:
    """Call `run` once or several times; return the seconds of each call.

    If there are several calls, the first is left out. It may be slower, because other layers have used the
    memory before.
    """
    times: list[float] = []
    while sum(times) < TURN_SECONDS and len(times) < MAX_RUNS_PER_TURN:
        flush_buffer.add_(1)
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return times[1:] or times


def keep_freed_memory() -> bool:
    """Make glibc keep freed memory in the process; return whether that worked.

    By default large blocks go back to the kernel at once, and the kernel has to clear their pages before the
    next use: that can be half the time of a fast layer over a long sequence.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    library = ctypes.CDLL(None)
    return bool(library.mallopt(M_MMAP_MAX, 0) and library.mallopt(M_TRIM_THRESHOLD, 2**31 - 1))


def fit_exponent(amounts: Mapping[int, float]) -> float:
    """Fit amount ≈ c · nᵖ to `amounts`, n → amount, by least squares on the logarithms; return p."""
    sizes = [math.log(size) for size in amounts]
    return statistics.linear_regression(sizes, [math.log(amount) for amount in amounts.values()]).slope
