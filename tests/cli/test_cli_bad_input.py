"""Bad input ends a command with one clear paragraph on standard error, exit code 2 and no traceback."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from jumok.storage.folders import json_with_checksum, read_json_with_checksum
from support.digit_lines import write_tsv

if TYPE_CHECKING:
    from pathlib import Path

    from support.cli_calls import Call

READERS = ["check", "train", "evaluate"]


@pytest.fixture
def error_of_reading(call: Call, model: Path, tmp_path: Path):
    """A function that runs a command on pairs that cannot be used, and returns its error message."""

    def error_of(command: str, *pairs: str | Path) -> str:
        other_arguments = {"check": [], "train": ["--out", tmp_path / "run"], "evaluate": [model]}[command]
        if command == "evaluate":
            return call(command, *other_arguments, *pairs).error_of(command)
        return call(command, *pairs, *other_arguments).error_of(command)

    return error_of


# --- sentences ---


@pytest.mark.parametrize("command", READERS)
def test_a_missing_file_is_named(command: str, error_of_reading, tmp_path: Path) -> None:
    assert f"There is no file {tmp_path / 'no.tsv'}." in error_of_reading(command, tmp_path / "no.tsv")


@pytest.mark.parametrize("command", READERS)
def test_a_folder_instead_of_a_file_is_refused(command: str, error_of_reading, tmp_path: Path) -> None:
    (tmp_path / "folder.tsv").mkdir()
    assert "folder.tsv is a folder" in error_of_reading(command, tmp_path / "folder.tsv")


@pytest.mark.parametrize("command", READERS)
def test_files_with_unequal_numbers_of_lines_are_refused_with_both_counts(
    command: str, error_of_reading, tmp_path: Path
) -> None:
    source, target = tmp_path / "a.en", tmp_path / "a.de"
    source.write_text("one\n" * 1200, encoding="utf-8")
    target.write_text("eins\n" * 1199, encoding="utf-8")
    message = error_of_reading(command, source, target)
    assert "do not have the same number of lines" in message
    for file, count in ((source, "1,200 lines"), (target, "1,199 lines")):
        assert any(str(file) in line and count in line for line in message.splitlines())


@pytest.mark.parametrize("command", READERS)
def test_bytes_that_are_not_utf8_are_refused_with_their_line(
    command: str, error_of_reading, tmp_path: Path
) -> None:
    file = tmp_path / "latin.en-de.tsv"
    file.write_bytes(b"one\teins\nfive\tf\xfcnf\n")
    message = error_of_reading(command, file)
    assert str(file) in message
    assert "line 2, byte 7 is 0xFC" in message


def test_a_text_to_translate_that_is_not_utf8_is_refused_with_the_line(
    call: Call, model: Path, tmp_path: Path
) -> None:
    message = call("translate", model, stdin=b"one\nf\xfcnf\n").error_of("translate")
    assert "standard input, line 2, byte 2" in message
    file = tmp_path / "latin.txt"
    file.write_bytes(b"one\n\nf\xfcnf\n")
    assert f"{file}, line 3, byte 2" in call("translate", model, file).error_of("translate")


def test_a_missing_text_or_a_folder_to_translate_is_named(call: Call, model: Path, tmp_path: Path) -> None:
    assert str(tmp_path / "no.txt") in call("translate", model, tmp_path / "no.txt").error_of("translate")
    assert str(tmp_path) in call("translate", model, tmp_path).error_of("translate")


@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize("content", [b"", b"en\tde\n"], ids=["empty", "only a header"])
def test_an_empty_corpus_is_refused(command: str, content: bytes, error_of_reading, tmp_path: Path) -> None:
    file = tmp_path / "empty.tsv"
    file.write_bytes(content)
    assert f"{file} holds no sentence pairs" in error_of_reading(command, file)


def test_a_corpus_in_which_every_pair_is_skipped_is_refused_with_the_counts(
    error_of_reading, tmp_path: Path
) -> None:
    file = tmp_path / "blank.en-de.tsv"
    file.write_text("\t\n" * 5 + "same\tsame\n", encoding="utf-8")
    message = error_of_reading("train", file)
    assert "No pair was left to train on. Received: 6 pairs; skipped: 5 empty, 1 untranslated." in message
    assert "`jumok check` with the same files" in message


@pytest.mark.parametrize(
    "content",
    [None, b"", b"one\teins\nfive\tf\xfcnf\n", b"same\tsame\n"],
    ids=["missing", "empty", "not UTF-8", "nothing left"],
)
def test_a_run_that_cannot_start_leaves_no_folder(
    content: bytes | None, error_of_reading, tmp_path: Path
) -> None:
    file = tmp_path / "pairs.en-de.tsv"
    if content is not None:
        file.write_bytes(content)
    error_of_reading("train", file)
    assert list(tmp_path.iterdir()) == ([] if content is None else [file])
    (tmp_path / "run").mkdir()
    error_of_reading("train", file)
    assert (tmp_path / "run").is_dir()  # a folder that existed before is not removed


def test_a_missing_file_does_not_damage_an_existing_run(
    call: Call, unfinished_run: Path, tmp_path: Path
) -> None:
    before = sorted(unfinished_run.rglob("*"))
    call("train", tmp_path / "no.tsv", "--out", unfinished_run).error_of("train")
    assert sorted(unfinished_run.rglob("*")) == before


# `check` accepts a text without its translation: the training data of a language model.
@pytest.mark.parametrize("command", [command for command in READERS if command != "check"])
def test_a_text_without_its_translation_is_refused(command: str, error_of_reading, tmp_path: Path) -> None:
    file = tmp_path / "alone.en"
    file.write_text("one\n", encoding="utf-8")
    assert "A text needs its translation" in error_of_reading(command, file)


@pytest.mark.parametrize("command", READERS)
def test_a_line_with_too_many_columns_is_refused(command: str, error_of_reading, tmp_path: Path) -> None:
    file = tmp_path / "wide.en-de.tsv"
    file.write_text("one\teins\none\ttwo\tthree\tfour\n", encoding="utf-8")
    assert f"Line 2 of {file} has 4 columns" in error_of_reading(command, file)


@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize("line", [1, 2])
def test_a_cell_longer_than_the_limit_of_csv_is_refused(
    command: str, line: int, error_of_reading, tmp_path: Path
) -> None:
    file = tmp_path / "long.en-de.csv"
    file.write_text("one,eins\n" * (line - 1) + f'"{"a " * 70_000}",b\n', encoding="utf-8")
    assert f"Line {line} of {file} is not CSV (field larger than" in error_of_reading(command, file)


def test_an_equally_long_cell_in_tsv_is_a_sentence_that_is_too_long(call: Call, tmp_path: Path) -> None:
    file = write_tsv(tmp_path / "long.en-de.tsv", [("a " * 70_000, "b"), ("one", "eins")])
    assert "1 too long (1 skipped)" in call("check", file).out


def test_a_sentence_on_the_command_line_that_is_not_utf8_is_refused(call: Call, model: Path) -> None:
    odd = os.fsdecode(b"caf\xe9")
    for arguments in (
        ["look", model, odd],
        ["look", model, "x", "--target", odd],
        ["translate", model, "--prefix", odd],
    ):
        result = call(*arguments)
        assert (result.code, result.out) == (2, "")
        assert "this is not UTF-8 text." in result.err


@pytest.mark.parametrize("command", ["check", "train"])
def test_an_unknown_language_is_refused_with_a_suggestion(
    command: str, call: Call, pairs: Path, tmp_path: Path
) -> None:
    options = ["--out", tmp_path / "run"] if command == "train" else []
    message = call(command, pairs, *options, "--from", "englsh").error_of(command)
    assert "'englsh'" in message
    assert 'Did you mean "English"?' in message
    assert list(tmp_path.iterdir()) == []


# --- settings ---


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("model.sise=tiny", 'model.sise: there is no such setting. Did you mean "size"?'),
        ("modle.size=tiny", 'modle: there is no such setting. Did you mean "model"?'),
        ("model.dropout=1.5", "model.dropout: Input should be less than 1. Received: 1.5"),
        ("training.steps=0", "training.steps: Input should be greater than or equal to 1. Received: 0"),
        ("training.steps=many", "training.steps: Input should be a valid integer"),
        ("training.learning_rate=nan", "training.learning_rate: Input should be a finite number"),
        ("text.kind=words", "text.kind: Input should be 'unigram' or 'bpe'. Received: 'words'"),
        ("model.heads=3", "heads"),
        ("training.patience=0", "This run would never end"),
    ],
)
def test_invalid_settings_are_refused_with_a_reason(
    setting: str, message: str, call: Call, pairs: Path, tmp_path: Path
) -> None:
    result = call("train", pairs, "--out", tmp_path / "run", "--set", setting)
    assert result.code == 2
    assert message in result.err
    assert "Traceback" not in result.err
    assert "\n\n" not in result.err


@pytest.mark.parametrize("assignment", ["model.size", "dropout=0.2", "=", ""])
def test_a_malformed_setting_is_refused(assignment: str, call: Call, pairs: Path, tmp_path: Path) -> None:
    message = call("train", pairs, "--out", tmp_path / "run", "--set", assignment).error_of("train")
    assert "SECTION.NAME=VALUE" in message
    assert repr(assignment) in message
    assert list(tmp_path.iterdir()) == []


def test_all_faults_of_a_recipe_are_listed_at_once(call: Call, pairs: Path, tmp_path: Path) -> None:
    options = ["--set", "model.sise=tiny", "--minutes", "-1", "--set", "text.vocab_size=3"]
    result = call("train", pairs, "--out", tmp_path / "run", *options)
    assert result.code == 2
    assert all(name in result.err for name in ("model.sise", "training.minutes", "text.vocab_size"))


def test_a_recipe_that_is_missing_or_not_toml_is_refused(call: Call, pairs: Path, tmp_path: Path) -> None:
    arguments = ["train", pairs, "--out", tmp_path / "run", "--recipe"]
    assert "There is no recipe at" in call(*arguments, tmp_path / "no.toml").error_of("train")
    (tmp_path / "odd.toml").write_text("[model\n", encoding="utf-8")
    assert "odd.toml is not a TOML file" in call(*arguments, tmp_path / "odd.toml").error_of("train")


# --- model folders ---

MODEL_COMMANDS = [["translate"], ["info"], ["look", "one"], ["evaluate", "test.tsv"]]


def error_of_using(call: Call, arguments: list[str], folder: Path) -> str:
    """Run a command on a model folder that cannot be used, and return its error message."""
    result = call(arguments[0], folder, *arguments[1:], stdin=b"one\n")
    assert result.out == ""
    return result.error_of(arguments[0])


@pytest.mark.parametrize("arguments", MODEL_COMMANDS, ids=lambda arguments: arguments[0])
@pytest.mark.parametrize("name", ["weights.safetensors", "pieces.model", "jumok.json"])
def test_a_flipped_byte_in_a_model_folder_is_detected(
    name: str, arguments: list[str], call: Call, model: Path, tmp_path: Path
) -> None:
    shutil.copytree(model, tmp_path / "model")
    damaged = tmp_path / "model" / name
    data = bytearray(damaged.read_bytes())
    data[len(data) // 2] ^= 1
    damaged.write_bytes(data)
    assert str(damaged) in error_of_using(call, arguments, tmp_path / "model")


@pytest.mark.parametrize("name", ["weights.safetensors", "pieces.model"])
def test_a_missing_or_truncated_file_of_a_model_folder_is_named(
    name: str, call: Call, model: Path, tmp_path: Path
) -> None:
    shutil.copytree(model, tmp_path / "model")
    part = tmp_path / "model" / name
    part.write_bytes(part.read_bytes()[:-10])
    assert str(part) in error_of_using(call, ["info"], tmp_path / "model")
    part.unlink()
    assert "it is missing" in error_of_using(call, ["info"], tmp_path / "model")


@pytest.mark.parametrize("arguments", MODEL_COMMANDS, ids=lambda arguments: arguments[0])
@pytest.mark.parametrize(
    ("key", "wrong_value"),
    [("facts", "fast"), ("scores", {"bleu": {"value": "x", "signature": ""}}), ("corpora", [{"pairs": 3}])],
    ids=["facts", "scores", "corpora"],
)
def test_a_model_card_with_a_value_of_the_wrong_type_is_refused(
    key: str, wrong_value: object, arguments: list[str], call: Call, model: Path, tmp_path: Path
) -> None:
    shutil.copytree(model, tmp_path / "model")
    path = tmp_path / "model" / "jumok.json"
    path.write_bytes(json_with_checksum({**read_json_with_checksum(path), key: wrong_value}))
    message = error_of_using(call, arguments, tmp_path / "model")
    assert str(path) in message
    assert key in message


@pytest.mark.parametrize("arguments", MODEL_COMMANDS, ids=lambda arguments: arguments[0])
def test_a_folder_that_is_not_a_model_folder_is_refused(
    arguments: list[str], call: Call, model: Path, tmp_path: Path
) -> None:
    (tmp_path / "foreign").mkdir()
    assert "an empty folder" in error_of_using(call, arguments, tmp_path / "foreign")
    (tmp_path / "foreign" / "pytorch_model.bin").write_bytes(b"x")
    assert "Received: pytorch_model.bin" in error_of_using(call, arguments, tmp_path / "foreign")
    assert "is a file" in error_of_using(call, arguments, tmp_path / "foreign" / "pytorch_model.bin")
    assert f"There is no folder {tmp_path / 'no'}" in error_of_using(call, arguments, tmp_path / "no")
    model_copy = tmp_path / "copied" / "model"  # as in a run folder, but without the record of the run
    shutil.copytree(model, model_copy)
    assert f"Did you mean {model_copy}?" in error_of_using(call, arguments, model_copy.parent)


@pytest.mark.parametrize("arguments", MODEL_COMMANDS, ids=lambda arguments: arguments[0])
def test_a_run_folder_is_a_model_folder_once_it_has_a_model(
    arguments: list[str], call: Call, finished_run: Path, gold_pairs: Path, tmp_path: Path
) -> None:
    other_arguments = [gold_pairs if word == "test.tsv" else word for word in arguments[1:]]
    result = call(arguments[0], finished_run, *other_arguments, stdin=b"one\n")
    assert result.code == 0, result.err
    shutil.copytree(finished_run, tmp_path / "run", ignore=shutil.ignore_patterns("model"))
    assert "has no model yet" in error_of_using(call, arguments, tmp_path / "run")


def test_a_baseline_that_is_not_a_model_folder_is_refused(
    call: Call, model: Path, gold_pairs: Path, tmp_path: Path
) -> None:
    result = call("evaluate", model, gold_pairs, "--against", tmp_path)
    assert "is not a jumok model folder" in result.error_of("evaluate")
