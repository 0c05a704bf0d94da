"""An example of training progress for tests of the display, with as many digits as in a long run."""

from __future__ import annotations

from jumok.training.events import Progress

PROGRESS = Progress(
    step=12_345,
    steps=150_000,
    loss=5.888,
    perplexity=230.22,
    learning_rate=1e-3,
    tokens_per_second=11_298,
    gradient_norm=1.0,
    seconds_left=9_016,
)
