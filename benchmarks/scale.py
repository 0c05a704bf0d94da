"""`python -m benchmarks scale`: compute time, memory and network traffic of training on 1 to 1,000 hosts.

Nothing is measured here. docs/scale.md has a part of the table that this program prints. If a constant below
was measured, its comment says where. Assumptions: the network is full duplex, the exchange of gradients does
not overlap with the backward pass, and all hosts are equal.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.model_flops import TransformerShape, flops_per_target_token
from jumok.config.derive import SIZES

if TYPE_CHECKING:
    from collections.abc import Sequence

# Measured on 2 cores of the machine of docs/performance.md, training Transformer-Tiny.
HOST_FLOPS = 152.4e9
# Measured: an update over gloo on one machine takes this many times an update in shared memory (docs/log.md).
GLOO_FACTOR = 1.04
# The share of a link's nominal bits that carry data: Ethernet, IP and TCP headers at 1,500 bytes (computed).
LINK_SHARE = 0.94
LATENCY_SECONDS = 1e-3
"""The latency per update, which is assumed: four exchanges between hosts of one rack, 250 µs each."""
BYTES_PER_WEIGHT = 4
VOCAB_SIZES = {"tiny": 8_000, "small": 16_000, "base": 32_000, "big": 32_000}
TOKENS_PER_HOST = {"tiny": 4_096, "small": 4_096, "base": 25_000, "big": 25_000}
"""Target tokens per update and host. A host with too little memory computes them in several batches."""
SENTENCE_TOKENS = 28  # tokens of each source sentence, and of each target sentence
HOSTS = (1, 2, 10, 100, 1_000)
GBITS = (1, 10, 100)


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimates for one size of Transformer on a number of equal hosts with one speed of network."""

    size: str
    hosts: int
    gbit: float
    compute_seconds: float
    exchange_seconds: float
    sent_megabytes: float
    memory_megabytes: float
    tokens_per_second: float

    @property
    def efficiency(self) -> float:
        return self.compute_seconds / (self.compute_seconds + self.exchange_seconds)


def num_parameters(size: str) -> int:
    """Return the number of parameters of a Transformer with shared embeddings.

    Biases and norms are not counted.
    """
    encoder, decoder, width, feed_forward, _ = SIZES[size]
    of_encoder = encoder * (4 * width**2 + 2 * width * feed_forward)
    of_decoder = decoder * (8 * width**2 + 2 * width * feed_forward)
    return of_encoder + of_decoder + VOCAB_SIZES[size] * width


def estimate(size: str, hosts: int, gbit: float) -> Estimate:
    """Estimate time, traffic and memory of an update on each host. Hosts own equal shares of the parameters.

    A host sends the gradients of other hosts' parameters to their owners, and broadcasts its own parameters.
    All broadcasts together count as one copy of all parameters, since every host receives each of them once.
    """
    layers, _, width, feed_forward, _ = SIZES[size]
    shape = TransformerShape(layers, width, feed_forward, VOCAB_SIZES[size])
    lengths = np.array([SENTENCE_TOKENS])
    tokens, weights = TOKENS_PER_HOST[size], BYTES_PER_WEIGHT * num_parameters(size)
    compute = tokens * flops_per_target_token(shape, lengths, lengths) / HOST_FLOPS
    others = (hosts - 1) / hosts
    sent = 2 * weights * others
    exchange = 0.0
    if hosts > 1:
        exchange = sent / (gbit * 1e9 / 8 * LINK_SHARE) + LATENCY_SECONDS + (GLOO_FACTOR - 1) * compute
    # A host stores all weights and their gradients. For its own share of the parameters, it also stores the
    # gradients that every other host sends, and Adam's two moments.
    memory = 2 * weights + weights * others + 2 * weights / hosts
    speed = hosts * tokens / (compute + exchange)
    return Estimate(size, hosts, gbit, compute, exchange, sent / 1e6, memory / 1e6, speed)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks scale", description=__doc__)
    parser.add_argument(
        "--gbit", type=float, nargs="*", default=GBITS, help="speeds of the network, in Gbit/s"
    )
    parser.add_argument("--hosts", type=int, nargs="*", default=HOSTS)
    options = parser.parse_args(arguments)
    print("\n".join(table(options.hosts, options.gbit)))


def table(hosts: Sequence[int], gbits: Sequence[float]) -> list[str]:
    """Return the lines of the table in Markdown."""
    columns = [f"{gbit:g} Gbit/s" for gbit in gbits]
    head = [
        "size",
        "parameters",
        "hosts",
        "compute per update",
        "sent per host and update",
        "memory per host",
    ]
    lines = [f"| {' | '.join([*head, *(f'tokens/s, efficiency at {name}' for name in columns)])} |"]
    lines.append(f"| {' | '.join(['---', *(['---:'] * (len(head) + len(columns) - 1))])} |")
    for size in SIZES:
        for count in hosts:
            estimates = [estimate(size, count, gbit) for gbit in gbits]
            cells = [
                size,
                f"{num_parameters(size) / 1e6:.1f} M",
                f"{count:,}",
                f"{estimates[0].compute_seconds:.2f} s",
                f"{estimates[0].sent_megabytes:,.0f} MB",
                f"{estimates[0].memory_megabytes:,.0f} MB",
                *(f"{one.tokens_per_second:,.0f}, {100 * one.efficiency:.0f} %" for one in estimates),
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return lines
