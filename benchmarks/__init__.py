"""jumok beside its peers, measured in one run: `python -m benchmarks`, or `make bench`.

topics/         what is compared: contests of contenders, and what is prepared for them
contenders/     one program each; it prints one line of JSON with what it measured
measure.py      contenders take turns over rounds; medians
machine.py      what all of it runs on, and whether it is quiet
results/        what a run found, a file a topic; `page.py` draws docs/performance.md from them
"""
