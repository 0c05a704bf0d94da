"""The front door: help, version, wrong words, and how fast it opens."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

import jumok
from jumok.cli import VERBS

if TYPE_CHECKING:
    from cli_calls import Call

HELP_SECONDS = 0.3
HEAVY = {"torch", "numpy", "sentencepiece", "sacrebleu", "rich"}
LOADED = """
import json, sys
from jumok.cli import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    code = end.code
print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)
"""


INTERRUPTED = """
import os, signal, sys
from jumok.__main__ import main

class CtrlC:
    def find_spec(self, name, path=None, target=None):
        if name == moment:
            os.kill(os.getpid(), signal.SIGINT)

moment = sys.argv.pop(1)
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore it
sys.meta_path.insert(0, CtrlC())
main()
"""


CUT_SHORT = """
import sys
import jumok.cli
from jumok.__main__ import main

class Busy:
    def __del__(self):
        sys.stdout.write("waited")

def run():
    busy = Busy()
    sys.stdout.write("said")
    if sys.argv[1] == "Ctrl-C":
        raise KeyboardInterrupt
    sys.exit(int(sys.argv[1]))

jumok.cli.main = run
main()
"""


def modules_after(*words: str) -> tuple[int, set[str]]:
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *words], capture_output=True, check=True, text=True, timeout=60
    )
    code, names = json.loads(done.stderr.splitlines()[-1])
    return code, set(names)


def test_help_names_every_verb(call: Call) -> None:
    ran = call("--help")
    assert ran.code == 0
    assert ran.err == ""
    for verb in ("check", "train", "translate", "evaluate", "look", "info", "corpus", "demo"):
        assert f"\n  {verb} " in ran.out
        assert verb in VERBS
    assert call("-h").out == ran.out


def test_help_answers_at_once() -> None:
    seconds = []
    for _ in range(5):
        started = time.perf_counter()
        subprocess.run(
            [sys.executable, "-c", "from jumok.cli import main; main()", "--help"],
            stdout=subprocess.DEVNULL,
            check=True,
            timeout=60,
        )
        seconds.append(time.perf_counter() - started)
        if seconds[-1] < HELP_SECONDS:
            break
    assert min(seconds) < HELP_SECONDS, seconds


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["trian"]])
def test_the_front_door_imports_nothing_heavy(words: list[str]) -> None:
    _, modules = modules_after(*words)
    assert "jumok.cli" in modules
    assert modules & HEAVY == set()
    if words == ["--help"]:  # typer itself takes pydantic to read a value
        assert "pydantic" not in modules
    assert not any(name.startswith("jumok.cli.") and name != "jumok.cli.arguments" for name in modules)


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_help_of_a_verb_needs_no_torch(verb: str) -> None:
    code, modules = modules_after(verb, "--help")
    assert code == 0
    assert modules & HEAVY == set()


@pytest.mark.parametrize("moment", ["jumok.cli", "typer", "jumok.cli.info"])
def test_ctrl_c_in_the_first_moments_is_one_line(moment: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, moment, "info", "model"],
        capture_output=True,
        check=False,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "jumok: interrupted.\n")


@pytest.mark.parametrize(
    ("how", "code", "out"),
    [("Ctrl-C", 130, "said"), ("130", 130, "said"), ("141", 141, "said"), ("2", 2, "saidwaited")],
)
def test_whoever_is_interrupted_waits_for_nothing(how: str, code: int, out: str) -> None:
    """The end of a converted model would wait for all that it was given to translate."""
    done = subprocess.run(
        [sys.executable, "-c", CUT_SHORT, how], capture_output=True, check=False, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (code, out)


def test_version(call: Call) -> None:
    ran = call("--version")
    assert (ran.code, ran.out, ran.err) == (0, f"jumok {jumok.__version__}\n", "")


def test_no_words_give_the_help(call: Call) -> None:
    ran = call()
    assert "Usage: jumok" in ran.out + ran.err
    assert "translate" in ran.out + ran.err


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_help_of_a_verb(verb: str, call: Call) -> None:
    ran = call(verb, "--help")
    assert ran.code == 0
    assert f"Usage: jumok {verb}" in ran.out
    assert "--help" in ran.out
    assert ran.err == ""


def test_help_of_train_explains_its_settings(call: Call) -> None:
    said = " ".join(call("train", "--help").out.split())
    assert "Stop after about this many minutes." in said
    assert "The same folder again continues the run." in said
    assert "130" in said


@pytest.mark.parametrize(
    ("typed", "meant"), [("trian", "train"), ("translat", "translate"), ("chek", "check")]
)
def test_an_unknown_verb_suggests_the_nearest(typed: str, meant: str, call: Call) -> None:
    ran = call(typed, "x")
    assert ran.code == 2
    assert typed in ran.err
    assert meant in ran.err
    assert ran.out == ""


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["train", "p.tsv", "--stepz", "3"], "--steps"),
        (["translate", "m", "--bean", "3"], "--beam"),
        (["check", "p.tsv", "--vaild", "v.tsv"], "--valid"),
        (["evaluate", "m", "p.tsv", "--lowercas"], "--lowercase"),
        (["look", "m", "s", "--uot", "x.svg"], "--out"),
        (["info", "m", "--jsn"], "--json"),
        (["corpus", "english-korean", "--cuont", "3"], "--count"),
        (["demo", "--minute", "3"], "--minutes"),
    ],
)
def test_an_unknown_option_suggests_the_nearest(words: list[str], meant: str, call: Call) -> None:
    ran = call(*words)
    assert ran.code == 2
    assert "No such option" in ran.err
    assert meant in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    "words",
    [
        ["check", "p.tsv", "--examples", "9"],
        ["translate", "m", "--beam", "0"],
        ["translate", "m", "--beam", "two"],
        ["translate", "m", "--sample", "--seed", "99999999999999999999"],
        ["corpus", "english-korean", "--count", "0"],
        ["demo", "--minutes", "0"],
        ["train", "p.tsv", "--out", "x", "--size", "huge"],
    ],
)
def test_an_option_out_of_range_is_refused(words: list[str], call: Call) -> None:
    ran = call(*words)
    assert ran.code == 2
    assert f"'{[word for word in words if word.startswith('--')][-1]}'" in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("verb", ["check", "train", "translate", "evaluate", "look", "info", "corpus"])
def test_a_verb_without_its_argument_says_which(verb: str, call: Call) -> None:
    ran = call(verb)
    assert ran.code == 2
    assert "Missing argument" in ran.err
