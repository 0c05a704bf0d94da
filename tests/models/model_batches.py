"""Sentences that every family of models is tried on, and what each must do with them."""

from __future__ import annotations

import torch
from torch.nn.functional import cross_entropy

from jumok.values import BEGIN, END, PAD, Batch

PIECES = 40


def padded(rows: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    lengths = torch.tensor([len(row) for row in rows])
    longest = int(lengths.max())
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows]), lengths


def make_batch(sources: list[list[int]], targets: list[list[int]]) -> Batch:
    source, source_lengths = padded([[*row, END] for row in sources])
    target, target_lengths = padded([[BEGIN, *row, END] for row in targets])
    return Batch(source, source_lengths, target, target_lengths)


SOURCES = [[5, 6, 7, 8, 9], [10, 11], [12, 13, 14, 15, 16, 17, 18, 19]]
TARGETS = [[20, 21, 22], [23, 24, 25, 26, 27, 28], [29]]
BATCH = make_batch(SOURCES, TARGETS)
ONLY_SOURCE = Batch(BATCH.source, BATCH.source_lengths)


def check_alone_as_in_a_batch(model, *, atol: float) -> None:
    """Padding and the other sentences of a batch change nothing."""
    together = model(BATCH)
    assert together.shape == (3, BATCH.target.shape[1] - 1, model.output.weight.shape[1])
    for row, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        alone = model(make_batch([source], [target]))[0]
        torch.testing.assert_close(together[row, : len(alone)], alone, atol=atol, rtol=0)


def check_steps(model, *, atol: float) -> None:
    """Step by step, a model predicts what it predicts teacher forced."""
    with torch.inference_mode():
        expected = model.output.log_probs(model(BATCH))
        state = model.begin(ONLY_SOURCE)
        for place in range(BATCH.target.shape[1] - 1):
            answer, state = model.step(state, BATCH.target[:, place])
            real = BATCH.target_lengths > place + 1
            torch.testing.assert_close(answer.values[real], expected[real, place], atol=atol, rtol=0)


def check_reordered_rows(model, *, atol: float) -> None:
    """Widened, mixed and narrowed, every row goes on as its own history would."""
    random = torch.Generator().manual_seed(4)
    sentence, history = torch.arange(3), torch.full((3, 1), BEGIN)
    with torch.inference_mode():
        state = model.begin(ONLY_SOURCE)
        for order in ([0, 0, 1, 1, 2, 2], [5, 0, 3, 3], [1, 2]):
            _, state = model.step(state, history[:, -1])
            chosen = torch.tensor(order)
            state = model.reorder(state, chosen)
            sentence, history = sentence[chosen], history[chosen]
            added = torch.randint(4, PIECES, (len(chosen), 1), generator=random)
            history = torch.cat([history, added], dim=1)
        answer, _ = model.step(state, history[:, -1])
        for row, (number, pieces) in enumerate(zip(sentence.tolist(), history.tolist(), strict=True)):
            forced = make_batch([SOURCES[number]], [[*pieces[1:], 4]])
            expected = model.output.log_probs(model(forced)[0, len(pieces) - 1])
            torch.testing.assert_close(answer.values[row], expected, atol=atol, rtol=0)


def losses_of_twenty_steps(model) -> list[float]:
    optimiser = torch.optim.Adam(model.train().parameters(), lr=5e-3)
    losses = []
    for _ in range(20):
        optimiser.zero_grad()
        scores, labels = model.output(model(BATCH)), BATCH.target[:, 1:]
        loss = cross_entropy(scores.flatten(0, 1), labels.flatten(), ignore_index=PAD)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses
