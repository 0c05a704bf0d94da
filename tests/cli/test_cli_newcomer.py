"""The attempts of a new user (`newcomer_attempts.py`), and the longer journeys among them."""

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
from support.newcomer_attempts import ATTEMPTS, COVERED, FAULTS, FILES, SHELL, TINY_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from _pytest.mark import ParameterSet

    from support.cli_calls import Call, Result
    from support.newcomer_attempts import Attempt, ShellAttempt

PROJECT = Path(__file__).parents[2]
STORED = PROJECT / "tests" / "stored" / "models"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
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
    return lambda folder: (folder / name).write_bytes(edit((folder / name).read_bytes()))


def flip(data: bytes) -> bytes:
    return data[:1000] + bytes([data[1000] ^ 1]) + data[1001:]


def make_newer(folder: Path) -> None:
    card = folder / "jumok.json"
    card.write_bytes(json_with_checksum({**read_json_with_checksum(card), "format": 99}))


def make_link(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to("elsewhere")


WEIGHTS, TOKENS, CARD = "weights.safetensors", "pieces.model", "jumok.json"
DAMAGES: dict[str, Callable[[Path], object]] = {
    "flipped-weights": change(WEIGHTS, flip),
    "flipped-tokens": change(TOKENS, flip),
    "edited-card": change(CARD, lambda data: data.replace(b'"width": 16', b'"width": 32')),
    "short-weights": change(WEIGHTS, lambda data: data[:1000]),
    "short-card": change(CARD, lambda data: data[:200]),
    "empty-card": change(CARD, lambda data: b""),
    "no-card": lambda folder: (folder / CARD).unlink(),
    "no-tokens": lambda folder: (folder / TOKENS).unlink(),
    "no-weights": lambda folder: (folder / WEIGHTS).unlink(),
    "newer": make_newer,
    "more-files": lambda folder: (folder / "notes.txt").write_text("mine"),
    "link": make_link,
}


@pytest.fixture
def attempt(
    call: Call, model: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Result]:
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
def test_an_attempt(row: Attempt, attempt: Callable[..., Result]) -> None:
    result = attempt(row.command, row.stdin)
    said = result.out + result.err
    assert result.code == row.code, said
    assert "Traceback" not in said
    for text in row.says:
        assert text in said
    for text in row.never:
        assert text not in said


@pytest.mark.slow
@pytest.mark.parametrize("row", SHELL, ids=lambda row: f"{row.number} {row.line}")
def test_an_attempt_in_a_shell(row: ShellAttempt, model: Path, tmp_path: Path) -> None:
    program = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m jumok "$@"\n'
    (tmp_path / "jumok").write_text(program)
    (tmp_path / "jumok").chmod(0o755)
    line = row.line.replace("MODEL", shlex.quote(str(model))).replace(
        "KOREAN", shlex.quote(str(STORED / "transformer"))
    )
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", line],
        capture_output=True,
        check=False,
        timeout=300,
        cwd=tmp_path,
        env=environment(PATH=path),
    )
    said = " ".join((done.stdout + done.stderr).decode().split())
    assert done.returncode == row.code, said
    assert "Traceback" not in said
    assert "the system said" not in said
    for text in row.says:
        assert text in said


def test_every_attempt_is_in_a_table() -> None:
    numbers = {row.number for row in (*ATTEMPTS, *SHELL)} | COVERED.keys()
    assert numbers - {0} == set(range(1, 157))
    faults = [
        f"{kind}{number}" for kind, count in (("A", 5), ("B", 8), ("C", 16)) for number in range(1, count + 1)
    ]
    assert list(FAULTS) == faults
    for name in (*COVERED.values(), *FAULTS.values()):
        file, _, test = name.partition("::")
        assert f"def {test}(" in (PROJECT / file).read_text(encoding="utf-8"), name


def test_the_readme_installs_the_small_pytorch() -> None:
    """Without this line, pip installs the build for GPUs: 5.6 GB, as the page says."""
    for page in ("README.md", "README.ko.md"):
        text = (PROJECT / page).read_text(encoding="utf-8")
        small = text.index("pip install torch --index-url https://download.pytorch.org/whl/cpu\n")
        assert small < text.index('pip install ".[serve')
        assert "5.6" in text


@pytest.mark.parametrize(
    ("text", "num_sentences"),
    [
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
def test_200_000_lines(call: Call, model: Path) -> None:
    assert call("translate", model, stdin=b"one\n" * 200_000).out.count("\n") == 200_000


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read and write all")
def test_folders_and_files_of_others(attempt: Callable[..., Result], tmp_path: Path) -> None:
    """Attempts 141 and 142."""
    file, folder = tmp_path / "closed.tsv", tmp_path / "closed"
    file.write_bytes(FILES["small.tsv"])
    file.chmod(0)
    assert "closed.tsv" in attempt(f"check {file}").error_of("check")
    folder.mkdir(mode=0o500)
    assert "permission was denied" in attempt(f"train small.tsv --out {folder}/run").error_of("train")


def test_a_sentence_as_an_argument_is_to_be_piped(call: Call, model: Path) -> None:
    message = call("translate", model, "I go home.").error_of("translate")  # attempt 68
    assert "no file 'I go home.'" in message
    assert 'echo "I go home." | jumok translate MODEL' in message


@pytest.mark.medium
def test_training_on_a_translation_memory(attempt: Callable[..., Result], tmp_path: Path) -> None:
    """`jumok train memory.tmx --from en --to ko`; the card names the file, not its folder."""
    command = f"train memory.tmx --from en --to ko --out RUN {TINY_OPTIONS}"
    result = attempt(command)
    assert result.code == 0, result.err
    card = json.loads((tmp_path / "run" / "model" / "jumok.json").read_text(encoding="utf-8"))
    assert [corpus["name"] for corpus in card["corpora"]] == ["memory.tmx"]
    assert card["recipe"]["languages"] == {"source": "en", "target": "ko"}
    assert attempt(command).code == 0  # the same command again: finished already


@pytest.mark.medium
def test_a_vocabulary_larger_than_the_text_has(
    attempt: Callable[..., Result], folder: Path, tmp_path: Path
) -> None:
    """Attempt 95: the recipe says how many tokens were made, and the same command again works."""
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
def test_training_from_standard_input_with_several_limits(
    attempt: Callable[..., Result], tmp_path: Path
) -> None:
    """Attempts 86 and 152: the message says which limit applies."""
    options = tiny_options(without=("training.steps",))
    limits = "--steps 4 --epochs 9 --minutes 3"
    result = attempt(f"train - --out RUN {options} {limits}", stdin=FILES["small.tsv"])
    assert result.code == 0, result.err
    said = " ".join(result.err.split())
    assert "training.steps 4 the first limit that is reached, of steps, epochs, minutes" in said
    assert "finished · step 4" in said


@pytest.mark.medium
def test_a_learning_rate_of_1000(attempt: Callable[..., Result], tmp_path: Path) -> None:
    """Attempt 100: no model is made, and the message says what to do."""
    options = tiny_options(without=("training.steps",))
    result = attempt(f"train small.tsv --out RUN {options} --steps 30 --set training.learning_rate=1000")
    assert result.code == 2, result.err
    assert "lower training.learning_rate" in result.err
    assert "best so far" not in result.err
    assert not (tmp_path / "run" / "model").exists()


@pytest.mark.medium
def test_ctrl_c_then_translate_then_finish_then_more(
    attempt: Callable[..., Result], call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After Ctrl-C a person has a model, can end the run, and can give it more steps later."""
    run = tmp_path / "run"
    options = tiny_options(without=("training.steps",))
    update = Worker.update

    def interrupt(self: Worker, step: int, learning_rate: float) -> object:
        if step == 13:
            os.kill(os.getpid(), signal.SIGINT)
        return update(self, step, learning_rate)

    with monkeypatch.context() as patched:
        patched.setattr(Worker, "update", interrupt)
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
def test_a_run_killed_before_its_first_checkpoint_says_that_it_starts_again(
    attempt: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise TrainingError("as if it were killed")

    with monkeypatch.context() as patched:
        patched.setattr(Worker, "update", killed)
        assert attempt(f"train small.tsv --out RUN {TINY_OPTIONS}").code == 2
    again = attempt(f"train small.tsv --out RUN {TINY_OPTIONS}")
    assert again.code == 0, again.err
    assert "starting again from step 0: the earlier session ended before its first checkpoint" in again.err
