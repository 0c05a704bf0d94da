"""The topics. Each has `comparisons(bench)` and `remarks(bench, results)`."""
