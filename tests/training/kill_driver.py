"""Train, be killed, train again, and report what came out: run by `test_kill.py` in a process of its own.

    python kill_driver.py FOLDER < scenarios.json > results.json

A scenario is a list of kills. Each kill is carried out in a fork of this process, which has everything
imported: a run takes a second, not five. A fork kills itself with the given signal at the N-th call of a
named function, before the call, after it, or (for writes) in its middle. The last fork of a scenario runs
to the end.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

import torch
from digits import TINY, digit_corpus

import jumok.storage.folders
import jumok.training.update
from jumok.training import Finished, Warned, training_events

SETTINGS = {
    **TINY,
    "model.width": 16,
    "model.feed_forward": 32,
    "training.steps": 40,
    "training.validate_every": 9,  # not a divisor of the batches in an epoch, nor of the steps
    "training.warmup": 4,
}
PLACES = {
    "fsync": (os, "fsync"),
    "rename": (os, "rename"),
    "replace": (os, "replace"),
    "mkdir": (os, "mkdir"),
    "rmdir": (os, "rmdir"),
    "unlink": (os, "unlink"),
    "write": (jumok.storage.folders, "_write_and_sync"),
    "step": (jumok.training.update.Member, "update"),
}
COUNTED: dict[str, int] = dict.fromkeys(PLACES, 0)


def watch(call: str, kill: dict[str, Any] | None) -> None:
    """Count the calls of a function and kill this process at one of them."""
    module, name = PLACES[call]
    real = getattr(module, name)

    def watched(*args: Any, **options: Any) -> Any:
        COUNTED[call] += 1
        now = kill is not None and kill["call"] == call and kill["at"] == COUNTED[call]
        if now and kill["when"] == "before":
            os.kill(os.getpid(), kill["signal"])
        if now and kill["when"] == "middle":
            path, data = args
            path.write_bytes(data[: len(data) // 2])
            os.kill(os.getpid(), kill["signal"])
        result = real(*args, **options)
        if now and kill["when"] == "after":
            os.kill(os.getpid(), kill["signal"])
        return result

    setattr(module, name, watched)


def validated_steps(metrics: Path) -> list[int]:
    rows = [json.loads(line) for line in metrics.read_text().splitlines()]
    return [row["step"] for row in rows if row["kind"] == "validation"]


def train_in_fork(out: Path, settings: dict[str, Any], kill: dict[str, Any] | None) -> dict[str, Any]:
    """One training process; how it ended and what it said."""
    report = out.with_suffix(".report")
    report.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        code = 70
        try:
            for call in PLACES:
                watch(call, kill)
            code = _train(out, settings, report)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    said = json.loads(report.read_text()) if report.exists() else {}
    return {"killed": os.WIFSIGNALED(status), "code": os.waitstatus_to_exitcode(status), **said}


def _train(out: Path, settings: dict[str, Any], report: Path) -> int:
    warned: list[str] = []
    for event in training_events(digit_corpus(300), out=out, **{**SETTINGS, **settings}):
        if isinstance(event, Warned):
            warned.append(event.message)
        if isinstance(event, Finished):
            said = {"reason": event.reason, "steps": event.steps, "warned": warned, "counts": COUNTED}
            report.write_text(json.dumps(said))
            return 0
    return 71


def run_scenario(out: Path, scenario: dict[str, Any]) -> dict[str, Any]:
    settings = scenario.get("settings", {})
    ends = [train_in_fork(out, settings, kill) for kill in scenario["kills"]]
    if not any(end.get("reason") == "done" for end in ends):
        ends.append(train_in_fork(out, settings, None))
    model = out / "model" / "weights.safetensors"
    return {
        "ends": ends,
        "weights": hashlib.sha256(model.read_bytes()).hexdigest() if model.exists() else None,
        "leftovers": [str(path) for path in out.rglob("*") if ".tmp" in path.name],
        "validations": validated_steps(out / "metrics.jsonl"),
    }


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    scenarios = json.load(sys.stdin)
    torch.set_num_threads(1)
    torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))])  # imports what it needs, once for all forks
    signal.signal(signal.SIGINT, signal.default_int_handler)
    results = {name: run_scenario(folder / name, scenario) for name, scenario in scenarios.items()}
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
