"""The owner of each parameter, and the space of a parameter in a block of memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

ALIGNMENT = 16  # floats: every parameter starts on a cache line


def aligned(length: int) -> int:
    """Return how many floats of a block a parameter of `length` floats takes."""
    return -(-length // ALIGNMENT) * ALIGNMENT


def assign_owners(sizes: Sequence[int], world_size: int) -> list[int]:
    """Return the owner of each parameter.

    The parameters are assigned from the largest to the smallest. Each goes to the rank that has the fewest
    floats so far.
    """
    loads, owners = [0] * world_size, [0] * len(sizes)
    for index in sorted(range(len(sizes)), key=lambda i: (-sizes[i], i)):
        owners[index] = loads.index(min(loads))
        loads[owners[index]] += sizes[index]
    return owners
