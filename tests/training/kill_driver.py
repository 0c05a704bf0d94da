"""Trains in forks that kill themselves, resumes and reports the results. `test_kill.py` starts this program.

    python kill_driver.py FOLDER < scenarios.json > results.json

A scenario is one command, or it has a list of `commands`. A command has a list of `kills` and optional
`settings`. A command with `finish` runs `jumok finish` instead of training. A command runs once per kill,
each time in a fork of this process, which has imported everything already, so a run takes one second instead
of five. The fork sends itself the signal of the kill at call number `at` of the function `call`: before the
call, after the call, or in the middle of a write. If the kill has an error number instead of a signal, the
call raises an OSError with this number. If none of these forks has finished the run, a last fork runs the
command to its end, except with `rerun: false`.
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

import jumok.storage.folders
import jumok.training.loop.update
from jumok.training.events import Finished, Warned
from jumok.training.run.training_run import finish_events, training_events
from support.digits import TINY, digit_corpus

SETTINGS = {
    **TINY,
    "model.width": 16,
    "model.feed_forward": 32,
    "training.steps": 40,
    "training.validate_every": 9,  # not a divisor of the batches in an epoch, nor of the steps
    "training.warmup_steps": 4,
}
FUNCTIONS = {
    "fsync": (os, "fsync"),
    "rename": (os, "rename"),
    "replace": (os, "replace"),
    "mkdir": (os, "mkdir"),
    "rmdir": (os, "rmdir"),
    "unlink": (os, "unlink"),
    "open": (os, "open"),
    "write": (jumok.storage.folders, "write_and_sync"),
    "step": (jumok.training.loop.update.Worker, "update"),
}
CALLS: dict[str, int] = dict.fromkeys(FUNCTIONS, 0)


def count_calls(call: str, kill: dict[str, Any] | None) -> None:
    """Count the calls of a function. At the call that `kill` names, send the signal or raise the error."""
    module, name = FUNCTIONS[call]
    real = getattr(module, name)

    def counted(*args: Any, **options: Any) -> Any:
        CALLS[call] += 1
        is_due = kill is not None and kill["call"] == call and kill["at"] == CALLS[call]
        if is_due and kill["error"]:
            raise OSError(kill["error"], os.strerror(kill["error"]))
        if is_due and kill["when"] == "before":
            os.kill(os.getpid(), kill["signal"])
        if is_due and kill["when"] == "middle":
            path, data = args
            path.write_bytes(data[: len(data) // 2])
            os.kill(os.getpid(), kill["signal"])
        result = real(*args, **options)
        if is_due and kill["when"] == "after":
            os.kill(os.getpid(), kill["signal"])
        return result

    setattr(module, name, counted)


def validated_steps(metrics: Path) -> list[int]:
    records = [json.loads(line) for line in metrics.read_text().splitlines()]
    return [record["step"] for record in records if record["kind"] == "validation"]


def run_in_fork(out: Path, command: dict[str, Any], kill: dict[str, Any] | None) -> dict[str, Any]:
    """Run the command in a fork; return how the fork ended, and its report."""
    report = out.with_suffix(".report")
    report.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        code = 70  # the exit status if an exception is raised
        try:
            for call in FUNCTIONS:
                count_calls(call, kill)
            code = run_command(out, command, report)
        except BaseException as error:
            report.write_text(json.dumps({"error": type(error).__name__}))
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    reported = json.loads(report.read_text()) if report.exists() else {}
    return {"killed": os.WIFSIGNALED(status), "code": os.waitstatus_to_exitcode(status), **reported}


def run_command(out: Path, command: dict[str, Any], report: Path) -> int:
    """Train, or finish the run; write a report at the end. Return the exit status."""
    warned: list[str] = []
    settings = {**SETTINGS, **command.get("settings", {})}
    training = training_events(digit_corpus(300), out=out, **settings)
    for event in finish_events(out) if command.get("finish") else training:
        if isinstance(event, Warned):
            warned.append(event.message)
        if isinstance(event, Finished):
            content = {"reason": event.reason, "steps": event.steps, "warned": warned, "counts": CALLS}
            report.write_text(json.dumps(content))
            return 0
    return 71  # no `Finished` event


def run_scenario(out: Path, scenario: dict[str, Any]) -> dict[str, Any]:
    ends: list[dict[str, Any]] = []
    for command in scenario.get("commands", [scenario]):
        command_ends = [run_in_fork(out, command, kill) for kill in command.get("kills", [])]
        if command.get("rerun", True) and not any(end.get("reason") == "done" for end in command_ends):
            command_ends.append(run_in_fork(out, command, None))
        ends += command_ends
    model = out / "model" / "weights.safetensors"
    return {
        "ends": ends,
        "weights": hashlib.sha256(model.read_bytes()).hexdigest() if model.exists() else None,
        "leftovers": [str(path) for path in out.rglob("*") if ".tmp" in path.name or ".damaged" in path.name],
        "checkpoints": sorted(path.name for path in (out / "checkpoints").iterdir()),
        "validations": validated_steps(out / "metrics.jsonl"),
    }


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    scenarios = json.load(sys.stdin)
    torch.set_num_threads(1)
    torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))])  # imports AdamW's modules once for all forks
    signal.signal(signal.SIGINT, signal.default_int_handler)
    results = {name: run_scenario(folder / name, scenario) for name, scenario in scenarios.items()}
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
