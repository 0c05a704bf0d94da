"""The topics. Each has `comparisons(bench)` and `remarks(bench, results)`.

A topic may have a number of `ROUNDS` of its own, and `NEEDS_IDLE_MACHINE = False`.
"""
