"""The tree of shares gives the same sums for every number of ranks."""

from __future__ import annotations

import pytest
import torch

from jumok.training.loop.shares import Node, merge_nodes, nodes_of_rank, shares_of_rank


def leaves(shares: int) -> list[Node]:
    generator = torch.Generator().manual_seed(shares)
    return [Node(0, share, [torch.randn(50, generator=generator)]) for share in range(shares)]


@pytest.mark.parametrize("shares", [1, 2, 3, 4, 5, 6, 7, 8, 12])
def test_any_number_of_ranks_gives_the_same_bits(shares: int) -> None:
    [expected] = merge_nodes(leaves(shares), shares)
    for world_size in range(1, shares + 1):
        nodes = []
        for rank in range(world_size):
            rank_shares = shares_of_rank(shares, rank, world_size)
            partial = merge_nodes([leaves(shares)[share] for share in rank_shares], shares)
            assert [(node.level, node.index) for node in partial] == nodes_of_rank(shares, rank, world_size)
            nodes += partial
        [root] = merge_nodes(nodes, shares)
        assert torch.equal(root.gradients[0], expected.gradients[0]), world_size


def test_every_share_belongs_to_one_rank() -> None:
    for world_size in range(1, 9):
        ranges = [shares_of_rank(8, rank, world_size) for rank in range(world_size)]
        assert [share for rank_shares in ranges for share in rank_shares] == list(range(8))
        assert max(map(len, ranges)) - min(map(len, ranges)) <= 1


def test_a_rank_with_two_or_four_shares_has_one_node() -> None:
    assert nodes_of_rank(8, 1, 2) == [(2, 1)]
    assert nodes_of_rank(8, 3, 4) == [(1, 3)]
    # The node of shares 4 and 5 has no right sibling, so its parent has the same sum.
    assert nodes_of_rank(6, 2, 3) == [(2, 1)]
