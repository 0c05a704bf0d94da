"""jumok compared with other toolkits, measured in one run: `python -m benchmarks`, or `make bench`.

topics/         the comparisons: their systems, and how the systems are prepared
programs/       one program per measurement; it prints one line of JSON
measure.py      runs the systems in turns, for several rounds, and computes medians
machine.py      the hardware and package versions, and whether the machine is idle
settings.py     the models that are compared; workbench.py prepares their data
model_flops.py  the operations of training, by formula
results/        the results, one file per topic; `page.py` fills docs/performance.md, docs/quality.md and
                their Korean pages with them
before_after.py whether a change made jumok slower; it measures two source trees in turns
serve_load.py   the server under load
serve_limits.py the server's most expensive requests, fairness between clients, killed workers
device.py       whether jumok runs on an accelerator, and how fast
large_corpus.py reading and encoding ten million pairs, and the first update after a restart
scale.py        training on 1 to 1,000 hosts, computed and not measured
"""
