"""Gradients are summed in a tree whose leaves are shares, so every number of ranks gives the same bits."""

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
        nodes: list[Node] = []
        for rank in range(world_size):
            rank_shares = shares_of_rank(shares, rank, world_size)
            own_nodes = merge_nodes([leaves(shares)[share] for share in rank_shares], shares)
            assert [(node.level, node.index) for node in own_nodes] == nodes_of_rank(shares, rank, world_size)
            nodes += own_nodes
        [root] = merge_nodes(nodes, shares)
        assert torch.equal(root.gradients[0], expected.gradients[0]), world_size


def test_every_share_belongs_to_one_rank() -> None:
    for world_size in range(1, 9):
        ranges = [shares_of_rank(8, rank, world_size) for rank in range(world_size)]
        assert [share for rank_shares in ranges for share in rank_shares] == list(range(8))
        assert max(map(len, ranges)) - min(map(len, ranges)) <= 1


def test_a_rank_with_two_or_four_shares_has_one_node() -> None:
    assert nodes_of_rank(8, 1, 2) == [(2, 1)]  # rank 1 of 2 ranks: shares 4 to 7
    assert nodes_of_rank(8, 3, 4) == [(1, 3)]  # rank 3 of 4 ranks: shares 6 and 7
    # Rank 2 of 3 ranks. The node (1, 2) of shares 4 and 5 has no right sibling, so its parent (2, 1) has the
    # same sum and stands for it.
    assert nodes_of_rank(6, 2, 3) == [(2, 1)]
