"""Measure the peak speed of matrix products on this machine, in single precision and on all cores.

Matrices of several sizes are multiplied. The result is the highest speed.
"""

from __future__ import annotations

import torch

from benchmarks.programs.report import parse, repeat, report
from jumok.system.processes import available_cores

SIZES = (1024, 2048, 3072)


def main() -> None:
    seconds = parse(seconds=float).seconds / len(SIZES)
    torch.set_num_threads(available_cores())
    speeds = []
    for size in SIZES:
        left, right = torch.rand(size, size), torch.rand(size, size)
        product = torch.mm(left, right)
        speeds.append(2 * size**3 / repeat(lambda: torch.mm(left, right, out=product), seconds))  # noqa: B023
    report(GFLOP_per_s=max(speeds) / 1e9)


if __name__ == "__main__":
    main()
