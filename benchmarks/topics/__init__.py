"""The topics of `python -m benchmarks`. Each module has `comparisons(bench)` and `remarks(bench, results)`.

A topic may also define `ROUNDS`, its number of rounds, and `NEEDS_IDLE_MACHINE = False`.
"""
