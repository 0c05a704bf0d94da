"""jumok compared with other toolkits, measured in one run: `python -m benchmarks`, or `make bench`.

topics/         the comparisons: which systems, and what is prepared for them
programs/       one program per measurement; it prints one line of JSON
measure.py      the systems take turns over several rounds; medians
machine.py      the hardware and package versions, and whether the machine is idle
results/        the results, one file per topic; `page.py` fills docs/performance.md with them
before_after.py whether a change made jumok slower: two source trees in turns
serve_load.py   the server under load
"""
