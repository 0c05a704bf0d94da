"""Bad input: one clear paragraph on standard error, exit code 2, no traceback."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from digit_lines import write_tsv
from jumok.storage import checked_json, read_checked_json

if TYPE_CHECKING:
    from pathlib import Path

    from cli_calls import Call

READERS = ["check", "train", "evaluate"]


@pytest.fixture
def read(call: Call, model: Path, tmp_path: Path):
    """Call a verb that reads pairs, with what else it needs, and give its paragraph."""

    def paragraph(verb: str, *pairs: str | Path) -> str:
        words = {"check": [], "train": ["--out", tmp_path / "run"], "evaluate": [model]}[verb]
        if verb == "evaluate":
            return call(verb, *words, *pairs).paragraph(verb)
        return call(verb, *pairs, *words).paragraph(verb)

    return paragraph


# --- sentences ---


@pytest.mark.parametrize("verb", READERS)
def test_a_missing_file(verb: str, read, tmp_path: Path) -> None:
    assert f"There is no file {tmp_path / 'no.tsv'}." in read(verb, tmp_path / "no.tsv")


@pytest.mark.parametrize("verb", READERS)
def test_a_folder_for_a_file(verb: str, read, tmp_path: Path) -> None:
    (tmp_path / "folder.tsv").mkdir()
    assert "folder.tsv is a folder" in read(verb, tmp_path / "folder.tsv")


@pytest.mark.parametrize("verb", READERS)
def test_unequal_lines(verb: str, read, tmp_path: Path) -> None:
    source, target = tmp_path / "a.en", tmp_path / "a.de"
    source.write_text("one\n" * 1200, encoding="utf-8")
    target.write_text("eins\n" * 1199, encoding="utf-8")
    said = read(verb, source, target)
    assert "do not have the same number of lines" in said
    for file, count in ((source, "1,200 lines"), (target, "1,199 lines")):
        assert any(str(file) in line and count in line for line in said.splitlines())


@pytest.mark.parametrize("verb", READERS)
def test_bytes_that_are_not_utf8(verb: str, read, tmp_path: Path) -> None:
    file = tmp_path / "latin.en-de.tsv"
    file.write_bytes(b"one\teins\nfive\tf\xfcnf\n")
    said = read(verb, file)
    assert str(file) in said
    assert "line 2, byte 7 is 0xFC" in said


def test_standard_input_that_is_not_utf8(call: Call, model: Path, tmp_path: Path) -> None:
    said = call("translate", model, stdin=b"one\nf\xfcnf\n").paragraph("translate")
    assert "standard input, line 2, byte 2" in said
    file = tmp_path / "latin.txt"
    file.write_bytes(b"one\n\nf\xfcnf\n")
    assert f"{file}, line 3, byte 2" in call("translate", model, file).paragraph("translate")


def test_a_text_to_translate_that_is_not_there(call: Call, model: Path, tmp_path: Path) -> None:
    assert str(tmp_path / "no.txt") in call("translate", model, tmp_path / "no.txt").paragraph("translate")
    assert str(tmp_path) in call("translate", model, tmp_path).paragraph("translate")


@pytest.mark.parametrize("verb", READERS)
@pytest.mark.parametrize("content", [b"", b"en\tde\n"], ids=["empty", "only a header"])
def test_an_empty_corpus(verb: str, content: bytes, read, tmp_path: Path) -> None:
    file = tmp_path / "empty.tsv"
    file.write_bytes(content)
    assert f"{file} holds no sentence pairs" in read(verb, file)


def test_a_corpus_with_nothing_worth_training(read, tmp_path: Path) -> None:
    file = tmp_path / "blank.en-de.tsv"
    file.write_text("\t\n" * 5 + "same\tsame\n", encoding="utf-8")
    said = read("train", file)
    assert "No pair was left to train on. Received: 6 pairs; skipped: 5 empty, 1 untranslated." in said
    assert "`jumok check` with the same files" in said


@pytest.mark.parametrize(
    "content",
    [None, b"", b"one\teins\nfive\tf\xfcnf\n", b"same\tsame\n"],
    ids=["missing", "empty", "not UTF-8", "nothing left"],
)
def test_no_folder_is_left_of_a_run_that_could_not_begin(content: bytes | None, read, tmp_path: Path) -> None:
    file = tmp_path / "pairs.en-de.tsv"
    if content is not None:
        file.write_bytes(content)
    read("train", file)
    assert list(tmp_path.iterdir()) == [file][: content is not None]
    (tmp_path / "run").mkdir()
    read("train", file)
    assert (tmp_path / "run").is_dir()  # it was there before


def test_a_missing_file_takes_nothing_from_a_run_that_has_begun(
    call: Call, unfinished_run: Path, tmp_path: Path
) -> None:
    before = sorted(unfinished_run.rglob("*"))
    call("train", tmp_path / "no.tsv", "--out", unfinished_run).paragraph("train")
    assert sorted(unfinished_run.rglob("*")) == before


@pytest.mark.parametrize("verb", [verb for verb in READERS if verb != "check"])
def test_half_a_pair(verb: str, read, tmp_path: Path) -> None:
    file = tmp_path / "alone.en"
    file.write_text("one\n", encoding="utf-8")
    assert "a text needs its other half" in read(verb, file)


@pytest.mark.parametrize("verb", READERS)
def test_too_many_columns(verb: str, read, tmp_path: Path) -> None:
    file = tmp_path / "wide.en-de.tsv"
    file.write_text("one\teins\none\ttwo\tthree\tfour\n", encoding="utf-8")
    assert f"Line 2 of {file} has 4 columns" in read(verb, file)


@pytest.mark.parametrize("verb", READERS)
@pytest.mark.parametrize("line", [1, 2])
def test_a_cell_longer_than_csv_reads(verb: str, line: int, read, tmp_path: Path) -> None:
    file = tmp_path / "long.en-de.csv"
    file.write_text("one,eins\n" * (line - 1) + f'"{"a " * 70_000}",b\n', encoding="utf-8")
    assert f"Line {line} of {file} is not CSV (field larger than" in read(verb, file)


def test_a_cell_as_long_in_tsv_is_a_sentence_that_is_too_long(call: Call, tmp_path: Path) -> None:
    file = write_tsv(tmp_path / "long.en-de.tsv", [("a " * 70_000, "b"), ("one", "eins")])
    assert "1 too long (1 skipped)" in call("check", file).out


def test_a_sentence_on_the_command_line_that_is_not_utf8(call: Call, model: Path) -> None:
    odd = os.fsdecode(b"caf\xe9")
    for words in (
        ["look", model, odd],
        ["look", model, "x", "--target", odd],
        ["translate", model, "--prefix", odd],
    ):
        ran = call(*words)
        assert (ran.code, ran.out) == (2, "")
        assert "this is not UTF-8 text." in ran.err


@pytest.mark.parametrize("verb", ["check", "train"])
def test_an_unknown_language(verb: str, call: Call, pairs: Path, tmp_path: Path) -> None:
    words = ["--out", tmp_path / "run"] if verb == "train" else []
    said = call(verb, pairs, *words, "--from", "englsh").paragraph(verb)
    assert "'englsh'" in said
    assert 'Did you mean "English"?' in said
    assert list(tmp_path.iterdir()) == []


# --- settings ---


@pytest.mark.parametrize(
    ("setting", "said"),
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
def test_settings_that_cannot_be_used(
    setting: str, said: str, call: Call, pairs: Path, tmp_path: Path
) -> None:
    ran = call("train", pairs, "--out", tmp_path / "run", "--set", setting)
    assert ran.code == 2
    assert said in ran.err
    assert "Traceback" not in ran.err
    assert "\n\n" not in ran.err


@pytest.mark.parametrize("word", ["model.size", "dropout=0.2", "=", ""])
def test_a_malformed_setting(word: str, call: Call, pairs: Path, tmp_path: Path) -> None:
    said = call("train", pairs, "--out", tmp_path / "run", "--set", word).paragraph("train")
    assert "SECTION.NAME=VALUE" in said
    assert repr(word) in said
    assert list(tmp_path.iterdir()) == []


def test_all_faults_of_a_recipe_are_told_at_once(call: Call, pairs: Path, tmp_path: Path) -> None:
    words = ["--set", "model.sise=tiny", "--minutes", "-1", "--set", "text.pieces=3"]
    ran = call("train", pairs, "--out", tmp_path / "run", *words)
    assert ran.code == 2
    assert all(name in ran.err for name in ("model.sise", "training.minutes", "text.pieces"))


def test_a_recipe_that_is_not_there_or_not_toml(call: Call, pairs: Path, tmp_path: Path) -> None:
    words = ["train", pairs, "--out", tmp_path / "run", "--recipe"]
    assert "There is no recipe at" in call(*words, tmp_path / "no.toml").paragraph("train")
    (tmp_path / "odd.toml").write_text("[model\n", encoding="utf-8")
    assert "odd.toml is not a TOML file" in call(*words, tmp_path / "odd.toml").paragraph("train")


# --- model folders ---

USERS = [["translate"], ["info"], ["look", "one"], ["evaluate", "test.tsv"]]


def use(call: Call, words: list[str], folder: Path) -> str:
    ran = call(words[0], folder, *words[1:], stdin=b"one\n")
    assert ran.out == ""
    return ran.paragraph(words[0])


@pytest.mark.parametrize("words", USERS, ids=lambda words: words[0])
@pytest.mark.parametrize("name", ["weights.safetensors", "pieces.model", "jumok.json"])
def test_a_flipped_byte(name: str, words: list[str], call: Call, model: Path, tmp_path: Path) -> None:
    shutil.copytree(model, tmp_path / "model")
    damaged = tmp_path / "model" / name
    data = bytearray(damaged.read_bytes())
    data[len(data) // 2] ^= 1
    damaged.write_bytes(data)
    assert str(damaged) in use(call, words, tmp_path / "model")


@pytest.mark.parametrize("name", ["weights.safetensors", "pieces.model"])
def test_a_missing_or_cut_off_part(name: str, call: Call, model: Path, tmp_path: Path) -> None:
    shutil.copytree(model, tmp_path / "model")
    part = tmp_path / "model" / name
    part.write_bytes(part.read_bytes()[:-10])
    assert str(part) in use(call, ["info"], tmp_path / "model")
    part.unlink()
    assert "it is missing" in use(call, ["info"], tmp_path / "model")


@pytest.mark.parametrize("words", USERS, ids=lambda words: words[0])
@pytest.mark.parametrize(
    ("part", "odd"),
    [("facts", "fast"), ("scores", {"bleu": {"value": "x", "signature": ""}}), ("corpora", [{"pairs": 3}])],
    ids=["facts", "scores", "corpora"],
)
def test_an_odd_card(
    part: str, odd: object, words: list[str], call: Call, model: Path, tmp_path: Path
) -> None:
    shutil.copytree(model, tmp_path / "model")
    path = tmp_path / "model" / "jumok.json"
    path.write_bytes(checked_json({**read_checked_json(path), part: odd}))
    said = use(call, words, tmp_path / "model")
    assert str(path) in said
    assert part in said


@pytest.mark.parametrize("words", USERS, ids=lambda words: words[0])
def test_what_is_no_model_folder(words: list[str], call: Call, finished_run: Path, tmp_path: Path) -> None:
    (tmp_path / "foreign").mkdir()
    assert "an empty folder" in use(call, words, tmp_path / "foreign")
    (tmp_path / "foreign" / "pytorch_model.bin").write_bytes(b"x")
    assert "Received: pytorch_model.bin" in use(call, words, tmp_path / "foreign")
    assert "is a file" in use(call, words, tmp_path / "foreign" / "pytorch_model.bin")
    assert f"There is no folder {tmp_path / 'no'}" in use(call, words, tmp_path / "no")
    assert f"Did you mean {finished_run / 'model'}?" in use(call, words, finished_run)


def test_a_model_to_compare_with_that_is_none(
    call: Call, model: Path, gold_pairs: Path, tmp_path: Path
) -> None:
    ran = call("evaluate", model, gold_pairs, "--against", tmp_path)
    assert "is not a jumok model folder" in ran.paragraph("evaluate")
