"""Every mechanism, at every place that `jumok models` calls possible, learns to copy."""

from __future__ import annotations

import pytest
import torch

from jumok.attention import CATALOGUE
from jumok.decoding import SearchPlan, greedy
from jumok.models import NEEDS, NEEDS_DECODER_ONLY, build_model
from jumok.recipe import make_recipe
from jumok.training.loss import sequence_loss
from jumok.values import BEGIN, END, Batch

SYMBOLS, SHORTEST, LONGEST, ROWS = 12, 3, 8, 64
FIRST = 4  # after the marks
MOST_STEPS, WARMUP, LOOKS = 3000, 200, 150

PLACES = [
    {"family": "transformer", f"{site}_attention": name}
    for name, entry in CATALOGUE.items()
    for site, needs in NEEDS.items()
    if not entry.supports.missing(*needs)
]
PLACES += [
    {"family": "recurrent", "attention": name}
    for name in ["none", *CATALOGUE]
    if name == "none" or not CATALOGUE[name].supports.missing(*NEEDS["cross"])
]
PLACES += [
    {"family": "decoder-only", "attention": name}
    for name, entry in CATALOGUE.items()
    if not entry.supports.missing(*NEEDS_DECODER_ONLY)
]
SMALL = {
    "decoder-only": {"width": 64, "heads": 4, "feed_forward": 128, "layers": 4},
    "transformer": {"width": 64, "heads": 4, "feed_forward": 128, "encoder_layers": 2, "decoder_layers": 2},
    "recurrent": {"width": 128, "embedding": 64},
}


def sequences(rows: int, length: int, generator: torch.Generator) -> Batch:
    """Random sequences of one length, and the same as target."""
    pieces = torch.randint(FIRST, FIRST + SYMBOLS, (rows, length), generator=generator)
    begin, end = torch.full((rows, 1), BEGIN), torch.full((rows, 1), END)
    target = torch.cat([begin, pieces, end], dim=1)
    lengths = torch.full((rows,), length)
    return Batch(torch.cat([pieces, end], dim=1), lengths + 1, target, lengths + 2)


def exact(model, generator: torch.Generator) -> float:
    """The share of sequences, of every length, that are copied without a fault."""
    right = total = 0
    model.eval()
    for length in range(SHORTEST, LONGEST + 1):
        batch = sequences(40, length, generator)
        plan = SearchPlan(longest=1.0, extra=3)
        for found, row in zip(greedy(model, batch, plan), batch.source.tolist(), strict=True):
            right, total = right + (list(found[0].ids) == row[:-1]), total + 1
    model.train()
    return right / total


def rate(step: int) -> float:
    """Up, then down to nothing: a mechanism with a hard edge (a window, a location) needs the small end."""
    return min(step / WARMUP, (MOST_STEPS - step) / (MOST_STEPS - WARMUP))


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES, ids=lambda place: " ".join(place.values()))
def test_it_learns_to_copy(place):
    torch.manual_seed(1)
    settings = {"dropout": 0.0, **SMALL[place["family"]], **place}
    pieces = FIRST + SYMBOLS
    model = build_model(
        make_recipe({"model": settings}).model, source_pieces=pieces, target_pieces=pieces, shared=True
    ).train()
    optimiser = torch.optim.Adam(model.parameters(), lr=2e-3, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, rate)
    seen, unseen = (torch.Generator().manual_seed(seed) for seed in (1, 2))
    for step in range(1, MOST_STEPS + 1):
        optimiser.zero_grad()
        length = int(torch.randint(SHORTEST, LONGEST + 1, (1,), generator=seen))
        batch = sequences(ROWS, length, seen)
        loss = sequence_loss(model(batch), batch.target[:, 1:], model.output, smoothing=0.0)
        (loss.total / loss.tokens).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        if step % LOOKS == 0 and exact(model, unseen) >= 0.99:
            break
    assert exact(model, unseen) >= 0.95
