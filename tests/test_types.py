"""Values that packages exchange."""

from __future__ import annotations

import torch

from jumok.types import Batch


def test_a_batch_moves_all_its_tensors() -> None:
    batch = Batch(torch.ones(2, 3), torch.tensor([3, 2]), torch.ones(2, 4), torch.tensor([4, 3]))
    moved = batch.to("meta")
    for tensor in (moved.source, moved.source_lengths, moved.target, moved.target_lengths):
        assert tensor is not None
        assert tensor.device.type == "meta"
    assert batch.source.device.type == "cpu"
    assert len(moved) == 2


def test_a_batch_without_targets_moves_too() -> None:
    moved = Batch(torch.ones(2, 3), torch.tensor([3, 2])).to(torch.device("meta"))
    assert (moved.target, moved.target_lengths) == (None, None)


def test_a_batch_that_is_on_the_device_is_returned_itself() -> None:
    batch = Batch(torch.ones(2, 3), torch.tensor([3, 2]))
    assert batch.to("cpu") is batch
