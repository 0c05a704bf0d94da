"""Updates in a fixed number of shares, so that the sums do not depend on the number of processes.

With `training.shares` = S, share s takes rows s, s+S, s+2S, … of each batch. The dropout of a share does not
depend on the process that computes it. The gradients of the S shares are the leaves of one binary tree, and
every inner node is the sum of its two children:

    S = 6          ((0+1)+(2+3))+(4+5)
    3 processes    (0+1)   (2+3)   (4+5)
    2 processes    (0+1) 2   3 (4+5)

Each process adds up its shares as far as the tree allows. The owner of a parameter adds up the rest.

So 1, 2, 3, … up to S processes compute the same bits on the same kind of machine. Without shares, a process
adds up all its rows at once, which is faster, but the sums depend on the number of processes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from jumok.training.parallel.protocol import ParallelBackend


@dataclass(frozen=True, slots=True)
class Node:
    """The sum over shares `index` · 2^`level` … (`index` + 1) · 2^`level` - 1, as far as they exist."""

    level: int
    index: int
    gradients: list[Tensor]  # one per parameter; `merge_nodes` adds to them in place


def shares_of_rank(shares: int, rank: int, world_size: int) -> range:
    """Return the shares that a rank computes: consecutive ones, about equally many per rank."""
    return range(rank * shares // world_size, (rank + 1) * shares // world_size)


def nodes_of_rank(shares: int, rank: int, world_size: int) -> list[tuple[int, int]]:
    """Return level and index of the nodes that a rank's shares add up to."""
    leaves = [Node(0, share, []) for share in shares_of_rank(shares, rank, world_size)]
    return [(node.level, node.index) for node in merge_nodes(leaves, shares)]


def merge_nodes(nodes: Sequence[Node], shares: int) -> list[Node]:
    """Add up neighbouring nodes as far as the tree of `shares` leaves allows.

    `nodes` must be in the order of their shares.
    """
    height = (shares - 1).bit_length()
    merged: list[Node] = []
    for node in nodes:
        current = node
        while True:
            is_left = current.index % 2 == 0
            if not is_left and merged and _is_left_sibling(merged[-1], current):
                left = merged.pop()
                if left.gradients:
                    torch._foreach_add_(left.gradients, current.gradients)
                current = Node(left.level + 1, left.index // 2, left.gradients)
            elif is_left and current.level < height and (current.index + 1) << current.level >= shares:
                current = Node(current.level + 1, current.index // 2, current.gradients)  # no right sibling
            else:
                break
        merged.append(current)
    return merged


def _is_left_sibling(left: Node, right: Node) -> bool:
    return left.level == right.level and left.index + 1 == right.index


def reduce_nodes(
    backend: ParallelBackend, parameters: Sequence[Tensor], nodes: Sequence[Node], shares: int
) -> list[Tensor]:
    """Send each owner the nodes of all ranks, and return the gradient sums of this rank's parameters.

    `nodes` are the nodes of this rank, with one gradient per parameter. Afterwards `.grad` of an owned
    parameter is its sum, and `.grad` of every other parameter is None.
    """
    by_rank = [nodes_of_rank(shares, rank, backend.world_size) for rank in range(backend.world_size)]
    rounds = max(map(len, by_rank))
    received: list[Node] = []
    owned: list[Tensor] = []
    for number in range(rounds):
        for index, parameter in enumerate(parameters):
            parameter.grad = nodes[number].gradients[index] if number < len(nodes) else None
        owned, by_sender = backend.exchange_gradients(first_of_update=number == 0)
        for rank_nodes, gradients in zip(by_rank, by_sender, strict=True):
            if number < len(rank_nodes):
                # The next round overwrites the gradients that this round has received.
                copies = [gradient.clone() for gradient in gradients] if rounds > 1 else gradients
                received.append(Node(*rank_nodes[number], copies))
    received.sort(key=lambda node: node.index << node.level)
    [root] = merge_nodes(received, shares)
    for parameter in parameters:
        parameter.grad = None
    for parameter, gradient in zip(owned, root.gradients, strict=True):
        parameter.grad = gradient
    return root.gradients
