"""Help is printed fast, unknown commands and options are refused, and Ctrl-C prints one line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import jumok
from jumok.cli import COMMANDS
from support.cli_calls import spawn

if TYPE_CHECKING:
    from support.cli_calls import Call

HELP_SECONDS = 0.3
LARGE_PACKAGES = {"torch", "numpy", "sentencepiece", "sacrebleu", "rich"}
# This program runs a command and prints the exit code and the names of all imported modules.
PRINT_MODULES = """
import json, sys
from jumok.cli import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    code = end.code
print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)
"""


# This program sends itself SIGINT when it imports the module that its first argument names.
INTERRUPT_IMPORT = """
import os, signal, sys
from jumok.__main__ import main

class CtrlC:
    def find_spec(self, name, path=None, target=None):
        if name == interrupted_import:
            os.kill(os.getpid(), signal.SIGINT)

interrupted_import = sys.argv.pop(1)
signal.signal(signal.SIGINT, signal.default_int_handler)  # the test runner may ignore SIGINT
sys.meta_path.insert(0, CtrlC())
main()
"""


# This program ends with Ctrl-C or with the exit code in its argument. If it exits normally, Python deletes
# `busy`, which prints "waited".
EXIT_AS_TOLD = """
import sys
import jumok.cli
from jumok.__main__ import main

class Busy:
    def __del__(self):
        sys.stdout.write("waited")

def run():
    busy = Busy()
    sys.stdout.write("printed")
    if sys.argv[1] == "Ctrl-C":
        raise KeyboardInterrupt
    sys.exit(int(sys.argv[1]))

jumok.cli.main = run
main()
"""


def code_and_modules(*arguments: str) -> tuple[int, set[str]]:
    """Return the exit code of `jumok ARGUMENTS` and the names of the modules that it imported."""
    result = subprocess.run(
        [sys.executable, "-c", PRINT_MODULES, *arguments],
        capture_output=True,
        check=True,
        text=True,
        timeout=60,
    )
    code, names = json.loads(result.stderr.splitlines()[-1])
    return code, set(names)


def test_help_lists_every_command(call: Call) -> None:
    result = call("--help")
    assert result.code == 0
    assert result.err == ""
    for command in COMMANDS:
        assert f"\n  {command} " in result.out
    assert call("-h").out == result.out


def test_help_takes_less_than_the_allowed_cpu_time() -> None:
    """CPU time is measured because other processes do not change it."""
    seconds = []
    for _ in range(5):
        before = os.times()
        subprocess.run(
            [sys.executable, "-c", "from jumok.cli import main; main()", "--help"],
            stdout=subprocess.DEVNULL,
            check=True,
            timeout=60,
        )
        after = os.times()
        user, system = (
            after.children_user - before.children_user,
            after.children_system - before.children_system,
        )
        seconds.append(user + system)
        if seconds[-1] < HELP_SECONDS:
            break
    assert min(seconds) < HELP_SECONDS, seconds


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["trian"]])
def test_help_version_and_unknown_commands_import_no_large_package(arguments: list[str]) -> None:
    _, modules = code_and_modules(*arguments)
    assert "jumok.cli" in modules
    assert modules & LARGE_PACKAGES == set()
    if arguments == ["--help"]:  # with --version or an unknown command, typer itself imports pydantic
        assert "pydantic" not in modules
    assert {name for name in modules if name.startswith("jumok.cli.")} == {
        "jumok.cli.arguments",
        "jumok.cli.language",
        "jumok.cli.localised_commands",
        "jumok.cli.wrapped_text",
    }


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_help_of_a_command_needs_no_torch(command: str) -> None:
    code, modules = code_and_modules(command, "--help")
    assert code == 0
    assert modules & LARGE_PACKAGES == set()


@pytest.mark.parametrize("module", ["jumok.cli", "typer", "jumok.cli.info"])
def test_ctrl_c_during_the_imports_prints_one_line(module: str) -> None:
    result = subprocess.run(
        [sys.executable, "-c", INTERRUPT_IMPORT, module, "info", "model"],
        capture_output=True,
        check=False,
        text=True,
        timeout=60,
    )
    assert (result.returncode, result.stdout, result.stderr) == (130, "", "jumok: interrupted.\n")


@pytest.mark.parametrize(
    ("ending", "code", "out"),
    [("Ctrl-C", 130, "printed"), ("130", 130, "printed"), ("141", 141, "printed"), ("2", 2, "printedwaited")],
)
def test_an_interrupted_program_exits_at_once(ending: str, code: int, out: str) -> None:
    """A normal exit would wait until CTranslate2 has finished its queue."""
    result = subprocess.run(
        [sys.executable, "-c", EXIT_AS_TOLD, ending], capture_output=True, check=False, text=True, timeout=60
    )
    assert (result.returncode, result.stdout) == (code, out)


def test_version_is_printed(call: Call) -> None:
    result = call("--version")
    assert (result.code, result.out, result.err) == (0, f"jumok {jumok.__version__}\n", "")


def test_no_arguments_print_the_help(call: Call) -> None:
    result = call()
    assert "Usage: jumok" in result.out + result.err
    assert "translate" in result.out + result.err


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_has_help(command: str, call: Call) -> None:
    result = call(command, "--help")
    assert result.code == 0
    assert f"Usage: jumok {command}" in result.out
    assert "--help" in result.out
    assert result.err == ""


def test_help_of_train_explains_its_settings(call: Call) -> None:
    message = " ".join(call("train", "--help").out.split())
    assert "Stop after about this many minutes." in message
    assert "The same folder again continues the run." in message
    assert "130" in message  # the exit code after Ctrl-C


@pytest.mark.parametrize(
    ("mistyped", "suggestion"), [("trian", "train"), ("translat", "translate"), ("chek", "check")]
)
def test_an_unknown_command_is_refused_with_a_suggestion(mistyped: str, suggestion: str, call: Call) -> None:
    result = call(mistyped, "x")
    assert result.code == 2
    assert mistyped in result.err
    assert suggestion in result.err
    assert result.out == ""


def test_a_warning_without_a_command_begins_with_the_name_of_the_program() -> None:
    result = spawn("--longest", "2")
    assert result.stderr.startswith(b"jumok: --longest is now --max-length-ratio; ")


@pytest.mark.parametrize(
    ("arguments", "suggestion"),
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
def test_an_unknown_option_is_refused_with_a_suggestion(
    arguments: list[str], suggestion: str, call: Call
) -> None:
    result = call(*arguments)
    assert result.code == 2
    assert "No such option" in result.err
    assert suggestion in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize(
    "arguments",
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
def test_an_option_out_of_range_is_refused(arguments: list[str], call: Call) -> None:
    result = call(*arguments)
    assert result.code == 2
    assert f"'{[argument for argument in arguments if argument.startswith('--')][-1]}'" in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize("command", ["check", "translate", "evaluate", "look", "info", "corpus"])
def test_a_missing_argument_is_reported(command: str, call: Call) -> None:
    result = call(command)
    assert result.code == 2
    assert "Missing argument" in result.err
