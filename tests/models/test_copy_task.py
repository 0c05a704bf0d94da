"""Models of the families that translate learn to copy, with each mechanism at each site that supports it.

One site at a time has the mechanism. One more model has no attention, and one has efficient attention at
every site.
"""

from __future__ import annotations

import pytest
import torch

from jumok.attention import CATALOGUE
from jumok.config.recipe import make_recipe
from jumok.inference.search.greedy_sampling import greedy_search
from jumok.inference.search.plan import SearchPlan
from jumok.models.build import build_model
from jumok.models.kernels.cross_entropy import sequence_loss
from jumok.models.validate import ATTENTION_NEEDS
from jumok.types import BEGIN, END, Batch

NUM_SYMBOLS, MIN_LENGTH, MAX_LENGTH, NUM_ROWS = 12, 3, 8, 64
FIRST_TOKEN = 4  # after the special tokens
MAX_STEPS, WARMUP, CHECK_EVERY = 3000, 200, 150

MODELS = [
    {"family": family, setting: name}
    for family, settings in ATTENTION_NEEDS.items()
    if family != "encoder-only"
    for name, entry in CATALOGUE.items()
    for setting, needs in settings.items()
    if not entry.supports.missing(*needs)
]
MODELS.append({"family": "recurrent", "attention": "none"})
MODELS.append({"family": "transformer"} | dict.fromkeys(ATTENTION_NEEDS["transformer"], "efficient"))
SMALL = {
    "decoder-only": {"width": 64, "heads": 4, "feed_forward": 128, "layers": 4},
    "transformer": {"width": 64, "heads": 4, "feed_forward": 128, "encoder_layers": 2, "decoder_layers": 2},
    "recurrent": {"width": 128, "embedding": 64},
}


def sequences(rows: int, length: int, generator: torch.Generator) -> Batch:
    """Return random sequences of one length. Each is its own target."""
    tokens = torch.randint(FIRST_TOKEN, FIRST_TOKEN + NUM_SYMBOLS, (rows, length), generator=generator)
    begin, end = torch.full((rows, 1), BEGIN), torch.full((rows, 1), END)
    target = torch.cat([begin, tokens, end], dim=1)
    lengths = torch.full((rows,), length)
    return Batch(torch.cat([tokens, end], dim=1), lengths + 1, target, lengths + 2)


def exact_share(model, generator: torch.Generator) -> float:
    """Return the share of new sequences, of every length, that the model copies exactly."""
    correct = total = 0
    model.eval()
    for length in range(MIN_LENGTH, MAX_LENGTH + 1):
        batch = sequences(40, length, generator)
        plan = SearchPlan(max_length_ratio=1.0, extra_tokens=3)
        for hypotheses, row in zip(greedy_search(model, batch, plan), batch.source.tolist(), strict=True):
            correct, total = correct + (list(hypotheses[0].ids) == row[:-1]), total + 1
    model.train()
    return correct / total


def rate_factor(step: int) -> float:
    """Return the factor of the learning rate, which rises during the warm-up and then falls linearly to 0.

    Mechanisms with hard edges (window, location) need the small rates.
    """
    return min(step / WARMUP, (MAX_STEPS - step) / (MAX_STEPS - WARMUP))


@pytest.mark.slow
@pytest.mark.parametrize("changes", MODELS, ids=lambda changes: " ".join(changes.values()))
def test_a_model_learns_to_copy(changes):
    torch.manual_seed(1)
    settings = {"dropout": 0.0, **SMALL[changes["family"]], **changes}
    vocab_size = FIRST_TOKEN + NUM_SYMBOLS
    model = build_model(
        make_recipe({"model": settings}).model,
        source_vocab_size=vocab_size,
        target_vocab_size=vocab_size,
        shared=True,
    ).train()
    optimiser = torch.optim.Adam(model.parameters(), lr=2e-3, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, rate_factor)
    training_random, test_random = (torch.Generator().manual_seed(seed) for seed in (1, 2))
    for step in range(1, MAX_STEPS + 1):
        optimiser.zero_grad()
        length = int(torch.randint(MIN_LENGTH, MAX_LENGTH + 1, (1,), generator=training_random))
        batch = sequences(NUM_ROWS, length, training_random)
        loss = sequence_loss(model(batch), batch.target[:, 1:], model.output, smoothing=0.0)
        (loss.total / loss.tokens).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        if step % CHECK_EVERY == 0 and exact_share(model, test_random) >= 0.99:
            break
    assert exact_share(model, test_random) >= 0.95
