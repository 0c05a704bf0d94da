"""A run that is killed at any moment and resumed ends with the weights of an uninterrupted run, bit for bit.

Tests marked `medium` kill a few runs at chosen moments. Tests marked `slow` kill runs at every call that
changes the disk, in the middle of every write, and from another process, with strace.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support import child_environment

HERE = Path(__file__).parent
STRACE = shutil.which("strace")
Results = dict[str, dict[str, Any]]


def kill(call: str, at: int, when: str = "before", signal_number: int = signal.SIGKILL) -> dict[str, Any]:
    """Describe a signal for `kill_driver.py`: at the call number `at` of the function `call`."""
    return {"call": call, "at": at, "when": when, "signal": int(signal_number), "error": 0}


def fail(call: str, at: int, error: int) -> dict[str, Any]:
    """Describe an error number for `kill_driver.py`: the call number `at` of `call` raises this OSError."""
    return {"call": call, "at": at, "when": "before", "signal": 0, "error": error}


def run_driver(folder: Path, scenarios: dict[str, Any], *, seconds: int = 600) -> Results:
    process = subprocess.run(
        [sys.executable, str(HERE / "kill_driver.py"), str(folder)],
        input=json.dumps(scenarios),
        capture_output=True,
        text=True,
        timeout=seconds,
        env=child_environment(),
        check=False,
    )
    assert process.returncode == 0, process.stderr
    results: Results = json.loads(process.stdout)
    return results


def check_results(results: Results) -> None:
    """Assert that every scenario ended with the weights of the reference run."""
    reference = results["reference"]
    assert reference["weights"] is not None
    for name, result in results.items():
        assert result["weights"] == reference["weights"], name
        assert result["leftovers"] == [], name
        assert result["checkpoints"] == reference["checkpoints"], name
        assert result["ends"][-1]["reason"] in ("done", "already finished"), name
        assert not any(
            "cannot be used" in text for end in result["ends"] for text in end.get("warned", [])
        ), name
        assert result["validations"] == [9, 18, 27, 36, 40], name  # each exactly once


KILLS = {
    "in preparation": [kill("fsync", 5)],
    "in the first save": [kill("fsync", 19)],
    "in the first model folder": [kill("write", 12, "middle")],
    "before the rename of a checkpoint": [kill("rename", 4)],
    "after the rename of a checkpoint": [kill("rename", 4, "after")],
    "before the first checkpoint": [kill("step", 4)],
    "at an epoch's end": [kill("step", 10, "after")],
    "after a checkpoint": [kill("step", 12)],
    "in a removal": [kill("unlink", 2)],
    "in the weights of a checkpoint": [kill("write", 26, "middle")],
    "in the last model folder": [kill("write", 35, "middle")],
    "three times": [kill("step", 11), kill("fsync", 4), kill("step", 9)],
    # The first kill comes when the encoded pairs are stored, but not the validation pairs and the record of
    # the run. The next session encodes the pairs again, and is killed while it removes the old files.
    "twice before the record": [kill("replace", 3), kill("unlink", 2)],
}
INTERRUPTIONS = {
    "SIGTERM": [kill("step", 13, "before", signal.SIGTERM)],
    "Ctrl-C, then SIGKILL": [kill("step", 20, "before", signal.SIGINT), kill("step", 3)],
}


def scenarios(kills_by_name: dict[str, list[dict[str, Any]]], **settings: Any) -> dict[str, Any]:
    """Return one scenario per list of kills, and a scenario "reference" without kills."""
    all_kills = {"reference": [], **kills_by_name}
    return {name: {"kills": kills, "settings": settings} for name, kills in all_kills.items()}


@pytest.mark.medium
def test_a_run_killed_anywhere_ends_with_the_same_weights(tmp_path: Path) -> None:
    results = run_driver(tmp_path, scenarios({**KILLS, **INTERRUPTIONS}))
    check_results(results)
    for name in KILLS:
        assert results[name]["ends"][0]["killed"], f"{name}: the run ended before the kill"
    for name in INTERRUPTIONS:
        assert results[name]["ends"][0]["reason"] == "interrupted", name
    assert results["SIGTERM"]["ends"][0]["steps"] == 13


@pytest.mark.medium
def test_a_killed_run_with_averages_ends_with_the_same_weights(tmp_path: Path) -> None:
    kills_by_name = {name: KILLS[name] for name in ("three times", "in a removal")}
    settings = {
        "training.average_checkpoints": 3,
        "training.ema_decay": 0.9,
        "training.accumulate": 2,
        "text.sampling": 0.1,
    }
    check_results(run_driver(tmp_path, scenarios(kills_by_name, **settings)))


# Sequences of commands (`kill_driver.py`), and moments at which signals stop the commands. All sequences of
# one name must end with the same weights; the first is the reference. MORE gives the run more steps, after
# its planned phase is completed. A stopped command is repeated until it ends, except with `rerun` False.
MORE = {"training.steps": 60}
AVERAGED = {"training.average_checkpoints": 3, "training.schedule": "constant"}
UNLIMITED = {"training.steps": None, "training.patience": 50}
SEQUENCES: dict[str, list[list[dict[str, Any]]]] = {
    "more": [
        [{}, {"settings": MORE}],
        [{"kills": [kill("step", 20)], "rerun": False}, {"settings": MORE}],
        [{"kills": [kill("step", 20, "before", signal.SIGINT)], "rerun": False}, {"settings": MORE}],
        [{"kills": [kill("step", 20)]}, {"settings": MORE, "kills": [kill("step", 15), kill("fsync", 4)]}],
        [{}, {"settings": MORE, "kills": [kill("replace", 1), kill("replace", 2, "after")]}],
        [
            {"kills": [kill("step", 30)], "rerun": False},
            {"settings": MORE, "kills": [kill("step", 3), kill("step", 12, "before", signal.SIGINT)]},
        ],
    ],
    "more, with an average": [
        [{"settings": AVERAGED}, {"settings": {**AVERAGED, **MORE}}],
        [
            {"settings": AVERAGED, "kills": [kill("step", 20)], "rerun": False},
            {"settings": {**AVERAGED, **MORE}, "kills": [kill("replace", 1), kill("step", 10)]},
        ],
        [
            {"settings": AVERAGED, "kills": [kill("write", 30, "middle")], "rerun": False},
            {"settings": {**AVERAGED, **MORE}},
        ],
    ],
    "finish, more": [
        [
            {"kills": [kill("step", 20, "before", signal.SIGINT)], "rerun": False},
            {"finish": True},
            {"settings": MORE},
        ],
        [
            {"kills": [kill("step", 20, "before", signal.SIGINT)], "rerun": False},
            {"finish": True, "kills": [kill("write", 2, "middle"), kill("rename", 1, "after")]},
            {"settings": MORE, "kills": [kill("step", 5), kill("write", 3)]},
        ],
    ],
    "more, finish": [
        [
            {},
            {"settings": MORE, "kills": [kill("step", 10, "before", signal.SIGINT)], "rerun": False},
            {"finish": True},
        ],
        [
            {"kills": [kill("step", 12)], "rerun": False},
            {"kills": [kill("rename", 2)]},
            {"settings": MORE, "kills": [kill("step", 5)], "rerun": False},
            {"settings": MORE, "kills": [kill("step", 10, "before", signal.SIGINT)], "rerun": False},
            {"finish": True, "kills": [kill("replace", 1)]},
        ],
    ],
    "no limit, then a limit": [
        [
            {"settings": UNLIMITED, "kills": [kill("step", 20, "before", signal.SIGINT)], "rerun": False},
            {"settings": MORE},
        ],
        [
            {"settings": UNLIMITED, "kills": [kill("step", 20, "before", signal.SIGINT)], "rerun": False},
            {"settings": MORE, "kills": [kill("step", 3), kill("replace", 2), kill("step", 20)]},
        ],
    ],
}


def has_kill(commands: list[dict[str, Any]]) -> bool:
    """Whether one of the commands gets SIGKILL; some sequences have only Ctrl-C."""
    signals = [stop["signal"] for command in commands for stop in command.get("kills", ())]
    return signal.SIGKILL in signals


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.medium if name == "finish, more" else pytest.mark.slow)
        for name in SEQUENCES
    ],
)
def test_the_same_commands_end_with_the_same_weights_with_and_without_kills(
    name: str, tmp_path: Path
) -> None:
    numbered_scenarios = {
        str(number): {"commands": commands} for number, commands in enumerate(SEQUENCES[name])
    }
    results = run_driver(tmp_path, numbered_scenarios)
    reference = results.pop("0")
    assert reference["weights"] is not None
    for number, result in results.items():
        assert result["weights"] == reference["weights"], (number, result["ends"])
        assert result["leftovers"] == [], number
        assert result["validations"] == reference["validations"], number
        was_killed = any(end["killed"] for end in result["ends"])
        assert was_killed == has_kill(SEQUENCES[name][int(number)]), number


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(["after a checkpoint"], marks=pytest.mark.medium),
        pytest.param(["in the first model folder", "three times"], marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_a_killed_run_of_two_processes_ends_with_the_same_weights(tmp_path: Path, names: list[str]) -> None:
    kills_by_name = {name: KILLS[name] for name in names}
    check_results(run_driver(tmp_path, scenarios(kills_by_name, **{"training.processes": 2})))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "when"),
    [
        ("fsync", "before"),
        ("write", "middle"),
        ("rename", "before"),
        ("rename", "after"),
        ("replace", "before"),
        ("replace", "after"),
        ("mkdir", "before"),
        ("unlink", "before"),
        ("rmdir", "before"),
        ("step", "before"),
    ],
)
def test_a_run_killed_at_any_call_of_a_function_ends_with_the_same_weights(
    tmp_path: Path, call: str, when: str
) -> None:
    reference = run_driver(tmp_path / "count", scenarios({}))
    num_calls = reference["reference"]["ends"][0]["counts"][call]
    assert num_calls > 0
    kills_by_name = {f"{call} {at}": [kill(call, at, when)] for at in range(1, num_calls + 1)}
    results = run_driver(tmp_path / "kill", scenarios(kills_by_name), seconds=1800)
    check_results(results)
    assert all(results[name]["ends"][0]["killed"] for name in kills_by_name)


@pytest.mark.slow
def test_a_run_killed_again_while_it_encodes_its_pairs_again_ends_with_the_same_weights(
    tmp_path: Path,
) -> None:
    # Function → how many of its calls in the second session are tried.
    moments = {"rename": 3, "unlink": 5, "rmdir": 1, "mkdir": 1, "write": 1, "fsync": 7, "replace": 2}
    kills_by_name = {
        f"{call} {at} {when}": [kill("replace", 3), kill(call, at, when)]
        for call, count in moments.items()
        for at in range(1, count + 1)
        for when in ("before", "after")
        # The run folder exists, so os.mkdir raises an error, and the kill after it would not be reached.
        if (call, when) != ("mkdir", "after")
    }
    results = run_driver(tmp_path, scenarios(kills_by_name), seconds=1800)
    check_results(results)
    assert [name for name in kills_by_name if not results[name]["ends"][1]["killed"]] == []


@pytest.mark.slow
@pytest.mark.parametrize("error", [errno.EMFILE, errno.EIO])
def test_nothing_is_lost_if_a_file_cannot_be_opened_while_a_run_is_resumed(
    tmp_path: Path, error: int
) -> None:
    """A transient error ends the session with a message; nothing is damaged and no checkpoint is lost."""
    kills_by_name = {f"open {at}": [kill("step", 20), fail("open", at, error)] for at in range(1, 16)}
    results = run_driver(tmp_path, scenarios(kills_by_name), seconds=1800)
    check_results(results)
    failures = {name: results[name]["ends"][1].get("error") for name in kills_by_name}
    assert set(failures.values()) <= {None, "StorageError"}, failures
    assert any(failures.values())


@pytest.mark.slow
def test_a_run_killed_at_random_calls_ends_with_the_same_weights(tmp_path: Path) -> None:
    generator = random.Random(7)
    # Function → its calls from the first up to this number may be killed.
    max_calls = {"fsync": 30, "write": 15, "rename": 6, "step": 30}
    kills_by_name = {}
    for number in range(40):
        picked_calls = generator.choices(list(max_calls), k=generator.randint(1, 3))
        kills_by_name[f"random {number}"] = [
            kill(call, generator.randint(1, max_calls[call])) for call in picked_calls
        ]
    check_results(run_driver(tmp_path, scenarios(kills_by_name), seconds=1800))


# --- killed from another process, with strace ---

ONE_RUN = "import sys; sys.path.insert(0, sys.argv[2]); import kill_driver as k, pathlib, torch; \
torch.set_num_threads(1); p = pathlib.Path(sys.argv[1]); \
sys.exit(k.run_command(p, {}, p.with_suffix('.report')))"


def train_in_new_process(out: Path, *strace_options: str) -> subprocess.CompletedProcess[str]:
    """Run training in a new process: under strace with these options, or without strace if none is given."""
    command = [sys.executable, "-c", ONE_RUN, str(out), str(HERE)]
    if strace_options:
        strace_command = ["-f", "-qq", "-o", os.devnull, "-e", "trace=fsync,rename,write", *strace_options]
        command = [str(STRACE), *strace_command, *command]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, env=child_environment()
    )


def weights_digest(out: Path) -> str:
    return hashlib.sha256((out / "model" / "weights.safetensors").read_bytes()).hexdigest()


@pytest.mark.slow
@pytest.mark.skipif(STRACE is None, reason="strace is not installed")
@pytest.mark.parametrize(
    ("call", "number"),
    [("fsync", 3), ("fsync", 18), ("fsync", 21), ("fsync", 33), ("rename", 5), ("rename", 9)],
)
def test_a_run_killed_by_strace_ends_with_the_same_weights(tmp_path: Path, call: str, number: int) -> None:
    killed = train_in_new_process(tmp_path / "run", "-e", f"inject={call}:signal=SIGKILL:when={number}")
    assert killed.returncode != 0
    assert train_in_new_process(tmp_path / "run").returncode == 0
    assert train_in_new_process(tmp_path / "reference").returncode == 0
    assert weights_digest(tmp_path / "run") == weights_digest(tmp_path / "reference")


@pytest.mark.slow
@pytest.mark.skipif(STRACE is None, reason="strace is not installed")
@pytest.mark.parametrize("error", ["ENOSPC", "EROFS", "EIO"])
def test_a_disk_error_injected_by_strace_is_reported_and_the_run_resumes(tmp_path: Path, error: str) -> None:
    # The 26th fsync is in the model folder of the first validation, whose checkpoint is complete.
    failed = train_in_new_process(tmp_path / "run", "-e", f"inject=fsync:error={error}:when=26")
    assert failed.returncode != 0
    assert "StorageError" in failed.stderr
    assert "intact" in failed.stderr
    assert train_in_new_process(tmp_path / "run").returncode == 0
