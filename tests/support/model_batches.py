"""A batch of sentences, and checks that every model family must pass on it."""

from __future__ import annotations

import torch
from torch.nn.functional import cross_entropy

from jumok.types import BEGIN, END, PAD, Batch

VOCAB_SIZE = 40


def padded(rows: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the padded rows as one tensor, and the lengths of the rows."""
    lengths = torch.tensor([len(row) for row in rows])
    max_length = int(lengths.max())
    return torch.tensor([row + [PAD] * (max_length - len(row)) for row in rows]), lengths


def make_batch(sources: list[list[int]], targets: list[list[int]]) -> Batch:
    """Return a batch of these token ids, with `<s>` and `</s>` added."""
    source, source_lengths = padded([[*row, END] for row in sources])
    target, target_lengths = padded([[BEGIN, *row, END] for row in targets])
    return Batch(source, source_lengths, target, target_lengths)


SOURCES = [[5, 6, 7, 8, 9], [10, 11], [12, 13, 14, 15, 16, 17, 18, 19]]
TARGETS = [[20, 21, 22], [23, 24, 25, 26, 27, 28], [29]]
BATCH = make_batch(SOURCES, TARGETS)
ONLY_SOURCE = Batch(BATCH.source, BATCH.source_lengths)


def check_independent_of_batch(model, *, atol: float) -> None:
    """Assert that padding and the other sentences of a batch do not change the output for a sentence."""
    in_batch = model(BATCH)
    assert in_batch.shape == (3, BATCH.target.shape[1] - 1, model.output.weight.shape[1])
    for row, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        alone = model(make_batch([source], [target]))[0]
        torch.testing.assert_close(in_batch[row, : len(alone)], alone, atol=atol, rtol=0)


def check_steps(model, *, atol: float) -> None:
    """Assert that step-by-step decoding gives the log-probabilities of the teacher-forced pass."""
    with torch.inference_mode():
        expected = model.output.log_probs(model(BATCH))
        state = model.begin(ONLY_SOURCE)
        for step in range(BATCH.target.shape[1] - 1):
            log_probs, state = model.step(state, BATCH.target[:, step])
            unfinished = BATCH.target_lengths > step + 1
            torch.testing.assert_close(
                log_probs.values[unfinished], expected[unfinished, step], atol=atol, rtol=0
            )


def check_reordered_rows(model, *, atol: float) -> None:
    """Assert that every row continues its own history after rows were repeated, reordered and dropped."""
    generator = torch.Generator().manual_seed(4)
    sentence_of_row, history = torch.arange(3), torch.full((3, 1), BEGIN)
    with torch.inference_mode():
        state = model.begin(ONLY_SOURCE)
        for order in ([0, 0, 1, 1, 2, 2], [5, 0, 3, 3], [1, 2]):
            _, state = model.step(state, history[:, -1])
            rows = torch.tensor(order)
            state = model.reorder(state, rows)
            sentence_of_row, history = sentence_of_row[rows], history[rows]
            next_tokens = torch.randint(4, VOCAB_SIZE, (len(rows), 1), generator=generator)
            history = torch.cat([history, next_tokens], dim=1)
        log_probs, _ = model.step(state, history[:, -1])
        for row, (index, tokens) in enumerate(zip(sentence_of_row.tolist(), history.tolist(), strict=True)):
            # The last token, 4, is arbitrary, because it follows the compared step.
            batch = make_batch([SOURCES[index]], [[*tokens[1:], 4]])
            expected = model.output.log_probs(model(batch)[0, len(tokens) - 1])
            torch.testing.assert_close(log_probs.values[row], expected, atol=atol, rtol=0)


def losses_of_twenty_updates(model) -> list[float]:
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
