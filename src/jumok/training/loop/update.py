"""One update: forward, backward and a step of the optimiser, by one process or by several together.

Everything random in update n follows from (seed, n, rank), or (seed, n, share) with `training.shares`, so a
resumed run needs no stored random state. If the loss or the gradient is not finite, the update is skipped and
reported: the weights stay as they are.

With world size w and without `training.shares`, rank r takes rows r, r+w, r+2w, … of each batch. The backend
sums the gradients. All ranks compute the same norm of these sums. Then each rank steps Adam for the
parameters that it owns (`parallel/protocol.py`). The result is a function of (seed, step, world size). With
`training.shares`, it does not depend on the world size (`shares.py`).

On an accelerator, an update waits for the device twice: for the losses (with shares, once per share of this
rank), and for the norm of the gradient.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy
import torch

from jumok.models.kernels.cross_entropy import sequence_loss
from jumok.models.kernels.dropout import seed_dropout
from jumok.models.norms import BatchNorm
from jumok.training.loop.optimiser import (
    clip_gradients,
    make_optimiser,
    squared_norm,
    squared_norms,
    trainable_parameters,
)
from jumok.training.loop.shares import Node, merge_nodes, reduce_nodes, shares_of_rank
from jumok.training.parallel.protocol import gradient_or_zeros
from jumok.types import PAD, Batch

if TYPE_CHECKING:
    from torch import Tensor

    from jumok.config.recipe import TrainingSettings
    from jumok.data.batching import Batches
    from jumok.models.model import Model
    from jumok.training.parallel.protocol import ParallelBackend

FP16_LOSS_SCALE = 1024.0
"""In fp16, the loss is multiplied by this factor, so that fewer gradients are below 6e-8, the smallest
positive number of fp16. A fixed factor needs no state in checkpoints."""


@dataclass(frozen=True, slots=True)
class Update:
    """Sums over the target tokens of an update, and the norm of its gradient."""

    loss: float  # with label smoothing
    nll: float  # without label smoothing
    tokens: int
    gradient_norm: float

    @property
    def applied(self) -> bool:
        return math.isfinite(self.gradient_norm) and math.isfinite(self.loss)


class Worker:
    """Computes one rank's part of every update; with a single process, all of it."""

    def __init__(
        self, model: Model, batches: Batches, settings: TrainingSettings, backend: ParallelBackend
    ) -> None:
        self.model, self.batches, self.settings, self.backend = model, batches, settings, backend
        self.optimiser = make_optimiser(model, settings)
        backend.bind_optimiser(self.optimiser)

    def update(self, step: int, learning_rate: float) -> Update:
        """Compute this rank's part of update `step`, counted from 1; return the sums over all ranks."""
        self.model.train()
        self.optimiser.zero_grad(set_to_none=True)
        statistics = [(tensor, tensor.clone()) for tensor in _running_statistics(self.model)]
        if self.settings.shares:
            gradients, update = self._sum_shares(step)
        else:
            tokens, loss, nll = self._compute_gradients(step, self.backend.rank, self.backend.world_size)
            gradients = self._unscale(self.backend.reduce_gradients())
            loss, nll, square = self.backend.sum_over_ranks([loss, nll, squared_norm(gradients)])
            update = Update(loss, nll, tokens, math.sqrt(square))
        if update.applied:
            clip_gradients(gradients, update.gradient_norm, self.settings.clip_norm)
            for group in self.optimiser.param_groups:
                group["lr"] = learning_rate
            self.optimiser.step()
        else:
            for tensor, before in statistics:
                tensor.copy_(before)
        self.backend.share_parameters()
        return update

    def _sum_shares(self, step: int) -> tuple[list[Tensor], Update]:
        """Compute this rank's shares one by one; return the sums of the gradients it owns, and the update."""
        shares, parameters = self.settings.shares, trainable_parameters(self.model)
        losses = numpy.zeros((2, shares))  # loss and nll per share; 0 for the shares of other ranks
        nodes: list[Node] = []
        tokens = 0
        for share in shares_of_rank(shares, self.backend.rank, self.backend.world_size):
            statistics = [(tensor, tensor.clone()) for tensor in _running_statistics(self.model)]
            tokens, *losses[:, share] = self._compute_gradients(step, share, shares)
            if share != 0:  # only share 0 changes the running statistics
                for tensor, before in statistics:
                    tensor.copy_(before)
            gradients = [gradient_or_zeros(parameter) for parameter in parameters]
            nodes = merge_nodes([*nodes, Node(0, share, gradients)], shares)
            self.optimiser.zero_grad(set_to_none=True)
        sums = self._unscale(reduce_nodes(self.backend, parameters, nodes, shares))
        squares = squared_norms([parameter.grad for parameter in parameters])
        totals = self.backend.sum_over_ranks([*losses.ravel().tolist(), *squares])
        loss, nll, square = sum(totals[:shares]), sum(totals[shares : 2 * shares]), sum(totals[2 * shares :])
        return sums, Update(loss, nll, tokens, math.sqrt(square))

    def _unscale(self, gradients: list[Tensor]) -> list[Tensor]:
        if self.model.autocast_dtype == torch.float16 and gradients:
            torch._foreach_mul_(gradients, 1 / FP16_LOSS_SCALE)
        return gradients

    def _compute_gradients(self, step: int, part: int, num_parts: int) -> tuple[int, float, float]:
        """Run forward and backward passes on part `part` of an update. A part is a rank or a share.

        Return the tokens of the whole update, and the loss and nll of this part. Gradients are divided by the
        tokens of the whole update, so the sum over the parts is the gradient of the whole update.
        """
        first = (step - 1) * self.settings.accumulate
        batches = [self.batches.batch(first + i) for i in range(self.settings.accumulate)]
        tokens = sum(_count_tokens(batch) for batch in batches)
        loss = nll = torch.zeros((), device=self.model.device)
        with seed_dropout(self.settings.seed, step, part):
            seed_step(self.settings.seed, step, part)
            for batch in batches:
                rows = _rows_of_part(batch, part, num_parts)
                if len(rows):
                    sums = _backward(self.model, rows, self.settings.label_smoothing, tokens)
                    loss, nll = loss + sums[0], nll + sums[1]
        loss_value, nll_value = torch.stack([loss, nll]).tolist()  # one wait for the device, not two
        return tokens, loss_value, nll_value


def num_summed_values(model: Model, settings: TrainingSettings) -> int:
    """Return the number of values that each rank passes to `sum_over_ranks` in an update.

    The values are the loss, the nll and the squared norm of the gradients. With shares, there is a loss and
    an nll for each share, and a squared norm for each parameter.
    """
    return 2 * settings.shares + len(trainable_parameters(model)) if settings.shares else 3


def seed_step(seed: int, step: int, part: int = 0) -> None:
    """Seed torch's generators, on every device, with (seed, step, part); a part is a rank or a share."""
    entropy = [seed, step, part] if part else [seed, step]
    torch.manual_seed(int(numpy.random.SeedSequence(entropy).generate_state(1, numpy.uint64)[0] >> 1))


def _running_statistics(model: Model) -> list[Tensor]:
    """Return the buffers that a forward pass changes; a skipped update restores them.

    A batch norm sees only the rows of its rank or share. Checkpoints and validations use the statistics of
    rank 0, with shares those of share 0.
    """
    norms = [module for module in model.modules() if isinstance(module, BatchNorm)]
    return [statistic for norm in norms for statistic in (norm.mean, norm.variance)]


def _backward(model: Model, batch: Batch, smoothing: float, tokens: int) -> tuple[Tensor, Tensor]:
    if batch.target is None:
        raise ValueError("a batch for training needs its target side")
    with model.autocast():
        sums = sequence_loss(model(batch), batch.target[:, 1:], model.output, smoothing=smoothing)
    scale = FP16_LOSS_SCALE if model.autocast_dtype == torch.float16 else 1.0
    (sums.total / (tokens / scale)).backward()  # type: ignore[no-untyped-call]
    return sums.total.detach(), sums.nll


def _count_tokens(batch: Batch) -> int:
    """Return the number of tokens to predict: all of the target except `<s>` and padding."""
    if batch.target is None:
        raise ValueError("a batch for training needs its target side")
    return int((batch.target[:, 1:] != PAD).sum())


def _rows_of_part(batch: Batch, part: int, num_parts: int) -> Batch:
    """Return the rows `part`, `part` + `num_parts`, … of a batch, padded to the longest of these rows.

    The rows of a batch have similar lengths, so all parts take about the same time.
    """
    if num_parts == 1 or batch.target is None or batch.target_lengths is None:
        return batch
    sources, targets = batch.source_lengths[part::num_parts], batch.target_lengths[part::num_parts]
    return Batch(
        batch.source[part::num_parts, : int(sources.max()) if len(sources) else 0].contiguous(),
        sources,
        batch.target[part::num_parts, : int(targets.max()) if len(targets) else 0].contiguous(),
        targets,
    )
