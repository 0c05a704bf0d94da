"""Runs the attempts of a new user (`tests/support/newcomer_attempts.py`), and tests the longer attempts."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import jumok
from jumok.errors import TrainingError
from jumok.storage.folders import json_with_checksum, read_json_with_checksum
from jumok.training.loop.update import Worker
from support.cli_calls import environment
from support.digit_lines import TINY
from support.newcomer_attempts import (
    ATTEMPTS,
    FILES,
    SHELL_ATTEMPTS,
    TEST_OF_ATTEMPT,
    TEST_OF_FAULT,
    TINY_OPTIONS,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from _pytest.mark import ParameterSet

    from support.cli_calls import Call, Result
    from support.newcomer_attempts import Attempt, ShellAttempt

PROJECT = Path(__file__).parents[2]
STORED = PROJECT / "tests" / "stored" / "models"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The working folder of the attempts, with the files that their commands name."""
    folder = tmp_path_factory.mktemp("newcomer")
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    for name in ("foreign/notes.txt", "huggingface/config.json", "ctranslate2/model.bin"):
        (folder / name).parent.mkdir()
        (folder / name).write_bytes(b"{}")
    (folder / "loop").symlink_to("loop")
    return folder


def tiny_options(*, without: tuple[str, ...]) -> str:
    return " ".join(f"--set {name}={value}" for name, value in TINY.items() if name not in without)


def change(name: str, edit: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    """Return a function that replaces the content of this file of a folder by its edited content."""
    return lambda folder: (folder / name).write_bytes(edit((folder / name).read_bytes()))


def flip_bit(data: bytes) -> bytes:
    return data[:1000] + bytes([data[1000] ^ 1]) + data[1001:]


def set_newer_format(folder: Path) -> None:
    card = folder / "jumok.json"
    card.write_bytes(json_with_checksum({**read_json_with_checksum(card), "format": 99}))


def replace_by_link(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to("elsewhere")


WEIGHTS, TOKENS, CARD = "weights.safetensors", "pieces.model", "jumok.json"
DAMAGES: dict[str, Callable[[Path], object]] = {  # name in `DAMAGED:name` → function that damages a folder
    "flipped-weights": change(WEIGHTS, flip_bit),
    "flipped-tokens": change(TOKENS, flip_bit),
    "edited-card": change(CARD, lambda data: data.replace(b'"width": 16', b'"width": 32')),
    "short-weights": change(WEIGHTS, lambda data: data[:1000]),
    "short-card": change(CARD, lambda data: data[:200]),
    "empty-card": change(CARD, lambda data: b""),
    "no-card": lambda folder: (folder / CARD).unlink(),
    "no-tokens": lambda folder: (folder / TOKENS).unlink(),
    "no-weights": lambda folder: (folder / WEIGHTS).unlink(),
    "newer": set_newer_format,
    "more-files": lambda folder: (folder / "notes.txt").write_text("mine"),
    "link": replace_by_link,
}


@pytest.fixture
def attempt(
    call: Call, model: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Result]:
    """A function that runs a command in `folder`, after it has replaced words such as MODEL by paths."""

    def run(command: str, stdin: bytes = b"") -> Result:
        monkeypatch.chdir(folder)
        paths = {"MODEL": model, "RUN": tmp_path / "run", "RECURRENT": STORED / "recurrent-gru-bahdanau"}
        words = shlex.split(command)
        for word in words:
            if word.startswith("DAMAGED:"):
                paths[word] = shutil.copytree(model, tmp_path / "damaged")
                DAMAGES[word.partition(":")[2]](paths[word])
        return call(*(paths.get(word, word) for word in words), stdin=stdin)

    return run


def parameter(row: Attempt) -> ParameterSet:
    name = f"{row.number} {row.command}"
    return pytest.param(row, id=name, marks=[pytest.mark.slow] if row.slow else [])


@pytest.mark.parametrize("row", [parameter(row) for row in ATTEMPTS])
def test_an_attempt_gives_its_exit_code_and_texts(row: Attempt, attempt: Callable[..., Result]) -> None:
    result = attempt(row.command, row.stdin)
    output = result.out + result.err
    assert result.code == row.code, output
    assert "Traceback" not in output
    for text in row.expected_texts:
        assert text in output
    for text in row.forbidden_texts:
        assert text not in output


@pytest.mark.slow
@pytest.mark.parametrize("row", SHELL_ATTEMPTS, ids=lambda row: f"{row.number} {row.line}")
def test_an_attempt_in_a_shell_gives_its_exit_code_and_texts(
    row: ShellAttempt, model: Path, tmp_path: Path
) -> None:
    program = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m jumok "$@"\n'
    (tmp_path / "jumok").write_text(program)
    (tmp_path / "jumok").chmod(0o755)
    line = row.line.replace("MODEL", shlex.quote(str(model))).replace(
        "KOREAN", shlex.quote(str(STORED / "transformer"))
    )
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    result = subprocess.run(
        ["sh", "-c", line],
        capture_output=True,
        check=False,
        timeout=300,
        cwd=tmp_path,
        env=environment(PATH=path),
    )
    output = " ".join((result.stdout + result.stderr).decode().split())
    assert result.returncode == row.code, output
    assert "Traceback" not in output
    assert "the system said" not in output
    for text in row.expected_texts:
        assert text in output


def test_every_attempt_has_a_row_or_a_test() -> None:
    numbers = {row.number for row in (*ATTEMPTS, *SHELL_ATTEMPTS)} | TEST_OF_ATTEMPT.keys()
    # The attempts 1 to 156 are those of a review; attempts that were added later have the number 0.
    assert numbers - {0} == set(range(1, 157))
    faults = [
        f"{kind}{number}" for kind, count in (("A", 5), ("B", 8), ("C", 16)) for number in range(1, count + 1)
    ]
    assert list(TEST_OF_FAULT) == faults
    for name in (*TEST_OF_ATTEMPT.values(), *TEST_OF_FAULT.values()):
        file, _, test = name.partition("::")
        assert f"def {test}(" in (PROJECT / file).read_text(encoding="utf-8"), name


def test_the_readme_installs_the_build_of_pytorch_for_cpus_first() -> None:
    """Without this line, pip installs the build for GPUs, which needs 5.6 GB, as the README says."""
    for page in ("README.md", "README.ko.md"):
        text = (PROJECT / page).read_text(encoding="utf-8")
        cpu_build = text.index("pip install torch --index-url https://download.pytorch.org/whl/cpu\n")
        assert cpu_build < text.index('pip install ".[serve')
        assert "5.6" in text


@pytest.mark.parametrize(
    ("text", "num_sentences"),
    [  # the ids are the numbers of the attempts
        pytest.param("one two three four five " * 1_000, 0, id="43", marks=pytest.mark.slow),
        pytest.param("One two three. Four five! Six? Seven. Eight nine. " * 125, 625, id="145"),
        pytest.param("One two three four. " * 20, 20, id="146"),
        pytest.param("The student reads two books at the library. I go home. " * 4, 8, id="147"),
    ],
)
def test_no_sentence_of_a_line_is_lost(text: str, num_sentences: int, model: Path) -> None:
    [translation] = jumok.load(model).translate([text])
    assert " ".join(source for source, _ in translation.parts).split() == text.split()
    assert num_sentences in (0, len(translation.parts))  # 0: not checked
    assert translation.text == " ".join(" ".join(part for _, part in translation.parts).split())


@pytest.mark.slow
def test_200_000_lines_give_200_000_translations(call: Call, model: Path) -> None:
    assert call("translate", model, stdin=b"one\n" * 200_000).out.count("\n") == 200_000


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read and write all")
def test_files_and_folders_without_permission_are_named(
    attempt: Callable[..., Result], tmp_path: Path
) -> None:
    """Attempts 141 and 142."""
    file, folder = tmp_path / "closed.tsv", tmp_path / "closed"
    file.write_bytes(FILES["small.tsv"])
    file.chmod(0)
    assert "closed.tsv" in attempt(f"check {file}").error_of("check")
    folder.mkdir(mode=0o500)
    assert "permission was denied" in attempt(f"train small.tsv --out {folder}/run").error_of("train")


def test_the_error_for_a_sentence_as_an_argument_says_how_to_pipe_it(call: Call, model: Path) -> None:
    message = call("translate", model, "I go home.").error_of("translate")  # attempt 68
    assert "no file 'I go home.'" in message
    assert 'echo "I go home." | jumok translate MODEL' in message


@pytest.mark.medium
def test_a_translation_memory_is_trained_on(attempt: Callable[..., Result], tmp_path: Path) -> None:
    """The model card has the name of the file without its folder."""
    command = f"train memory.tmx --from en --to ko --out RUN {TINY_OPTIONS}"
    result = attempt(command)
    assert result.code == 0, result.err
    card = json.loads((tmp_path / "run" / "model" / "jumok.json").read_text(encoding="utf-8"))
    assert [corpus["name"] for corpus in card["corpora"]] == ["memory.tmx"]
    assert card["recipe"]["languages"] == {"source": "en", "target": "ko"}
    assert attempt(command).code == 0  # the same command again says that the run is finished


@pytest.mark.medium
def test_a_vocabulary_larger_than_the_text_allows_is_made_smaller(
    attempt: Callable[..., Result], folder: Path, tmp_path: Path
) -> None:
    """Attempt 95: the recipe has the number of tokens that were learnt, and the same command works again."""
    options = tiny_options(without=("text.vocab_size", "training.steps"))
    train = f"train {folder}/small.tsv --out RUN {options} --set text.vocab_size=50000 --steps 3 --epochs 50"
    result = attempt(train)
    assert result.code == 0, result.err
    assert "50,000 were requested, but the text has no more" in result.err
    assert "the first limit that is reached, of steps, epochs" in " ".join(result.err.split())
    recipe = (tmp_path / "run" / "recipe.toml").read_text(encoding="utf-8")
    assert "vocab_size = 50000" not in recipe
    card = (tmp_path / "run" / "model" / "jumok.json").read_text(encoding="utf-8")
    assert str(folder) not in card
    again = attempt(train)
    assert again.code == 0, again.err
    other = attempt(train.replace("50000", "40000")).error_of("train")
    assert "text.vocab_size: received 40000" in other


@pytest.mark.medium
def test_training_ends_at_the_first_of_several_limits(attempt: Callable[..., Result], tmp_path: Path) -> None:
    """Attempts 86 and 152: the message says which limit applies."""
    options = tiny_options(without=("training.steps",))
    limits = "--steps 4 --epochs 9 --minutes 3"
    result = attempt(f"train - --out RUN {options} {limits}", stdin=FILES["small.tsv"])
    assert result.code == 0, result.err
    output = " ".join(result.err.split())
    assert "training.steps 4 the first limit that is reached, of steps, epochs, minutes" in output
    assert "finished · step 4" in output


@pytest.mark.medium
def test_a_learning_rate_of_1000_ends_with_advice_and_no_model(
    attempt: Callable[..., Result], tmp_path: Path
) -> None:
    """Attempt 100."""
    options = tiny_options(without=("training.steps",))
    result = attempt(f"train small.tsv --out RUN {options} --steps 30 --set training.learning_rate=1000")
    assert result.code == 2, result.err
    assert "lower training.learning_rate" in result.err
    assert "best so far" not in result.err
    assert not (tmp_path / "run" / "model").exists()


@pytest.mark.medium
def test_an_interrupted_run_can_be_used_finished_and_trained_further(
    attempt: Callable[..., Result], call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After Ctrl-C, a user has a model, can end the run, and can train the run for more steps later."""
    run = tmp_path / "run"
    options = tiny_options(without=("training.steps",))
    update = Worker.update

    def interrupt(self: Worker, step: int, learning_rate: float) -> object:
        if step == 13:
            os.kill(os.getpid(), signal.SIGINT)
        return update(self, step, learning_rate)

    with monkeypatch.context() as patch:
        patch.setattr(Worker, "update", interrupt)
        settings = "--set training.validate_every=5 --set training.processes=1"
        stopped = attempt(f"train small.tsv --out RUN {options} {settings}")
    assert stopped.code == 130, stopped.err
    assert "until 10 validations in a row bring no better chrf" in stopped.err
    assert "stopped at step 13" in stopped.err
    assert f"): {run / 'model'}" in stopped.err
    assert call("translate", run, stdin=b"I go 3 times.\n").code == 0
    assert "the best so far of an unfinished run" in call("info", run).out
    finished = attempt("finish RUN")
    assert finished.code == 0, finished.err
    assert "finished here · step 13" in finished.err
    assert "this run is already finished" in attempt("finish RUN").err
    more = attempt("train --out RUN --steps 20")
    assert more.code == 0, more.err
    assert "continuing from step 13" in more.err
    assert "more training from step 13" in " ".join(more.err.split())
    assert "finished · step 20" in more.err
    less = attempt("train --out RUN --steps 15").error_of("train")
    assert "has done 20 steps" in less


@pytest.mark.medium
def test_a_run_that_failed_before_its_first_checkpoint_says_that_it_starts_again(
    attempt: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise TrainingError("as if the run were killed")

    with monkeypatch.context() as patch:
        patch.setattr(Worker, "update", fail)
        assert attempt(f"train small.tsv --out RUN {TINY_OPTIONS}").code == 2
    again = attempt(f"train small.tsv --out RUN {TINY_OPTIONS}")
    assert again.code == 0, again.err
    assert "starting again from step 0: the earlier session ended before its first checkpoint" in again.err
