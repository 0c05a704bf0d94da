"""`jumok check` reports what a corpus contains, its faults, and validation pairs that are training pairs."""

from __future__ import annotations

import gzip
import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from support.cli_calls import environment, program, spawn
from support.digit_lines import TINY, digit_lines, write_tsv

if TYPE_CHECKING:
    from pathlib import Path

    from support.cli_calls import Call

PAIRS_WITHOUT_FAULTS = [("I go home.", "나는 집에 간다."), ("You read a book.", "너는 책을 읽는다.")]
PAIR_BY_FAULT = {
    "empty": ("Nothing here.", ""),
    "too long": ("word " * 300, "낱말 " * 300),
    "replaced characters": ("A broken � letter.", "깨진 글자가 있다."),
    "mojibake": ("The cafÃ© is closed.", "카페가 닫혔다."),
    "control characters": ("A bell \x07 rings.", "종이 울린다."),
    "wrong script": ("This is not Korean.", "Das ist kein Koreanisch."),
    "untranslated": ("Seoul Station", "Seoul Station"),
    "odd length ratio": ("Yes.", "그렇다고 생각하지만 " * 12),
    "duplicate": PAIRS_WITHOUT_FAULTS[0],
    "other translation": (PAIRS_WITHOUT_FAULTS[1][0], "당신은 책을 읽습니다."),
    "zero-width characters": ("A zero\u200bwidth space.", "폭이 없는 공백이다."),
    "not NFC": ("The cafe\u0301 is open.", "카페가 열렸다."),
    "HTML entities": ("Salt &amp; pepper.", "소금과 후추."),
}
TINY_OPTIONS = [option for name, value in TINY.items() for option in ("--set", f"{name}={value}")]
# Pairs with these faults are reported but used for training. Pairs with any other fault are skipped.
KEPT_FAULTS = {"other translation", "zero-width characters", "not NFC", "HTML entities"}


@pytest.fixture
def faulty_file(tmp_path: Path) -> Path:
    return write_tsv(tmp_path / "faulty.en-ko.tsv", [*PAIRS_WITHOUT_FAULTS, *PAIR_BY_FAULT.values()])


def test_the_text_after_each_label_begins_in_the_same_column(call: Call, tmp_path: Path) -> None:
    table = write_tsv(
        tmp_path / "table.tsv", [("en", "year", "ko"), *((s, "2024", t) for s, t in PAIRS_WITHOUT_FAULTS)]
    )
    lines = call("check", table, "--columns", "en,ko").out.splitlines()
    labelled = [line for line in lines if line.split()[:1] in (["read"], ["source"], ["target"])]
    assert len(labelled) == 3
    # Two spaces, a label that is padded to seven columns, and the text.
    assert all(line[8] == " " != line[9] for line in labelled)


def test_no_faults_are_found_in_good_pairs(call: Call, pairs: Path) -> None:
    result = call("check", pairs)
    assert result.code == 0
    assert result.err == ""
    assert f"{pairs}: 60 pairs" in result.out
    assert "source en" in result.out
    assert "target de" in result.out
    assert "no faults found." in result.out
    assert "training will use 60 of 60 pairs, 6 of them for validation, and skip 0." in result.out


@pytest.mark.parametrize(
    "rows",
    [[("one", "eins")], [("one", f"eins {number}") for number in range(40)]],
    ids=["one pair", "one source"],
)
def test_a_corpus_too_small_for_a_validation_set_is_reported(
    rows: list[tuple[str, str]], call: Call, tmp_path: Path
) -> None:
    few = write_tsv(tmp_path / "few.en-de.tsv", rows)
    result = call("check", few)
    assert result.code == 1
    assert "Training would be refused: no pair can be held out for validation" in result.out
    assert "--valid" in result.out
    message = call("train", few, "--out", tmp_path / "run").error_of("train")
    assert "no sentence to validate on" in message
    valid = write_tsv(tmp_path / "valid.en-de.tsv", [("two", "zwei")])
    with_valid = call("check", few, "--valid", valid)
    assert with_valid.code == 0
    assert "would be refused" not in with_valid.out


def test_every_fault_is_reported_with_its_line(call: Call, faulty_file: Path) -> None:
    result = call("check", faulty_file)
    assert result.code == 1  # six pairs remain, too few for a validation set
    for number, title in enumerate(PAIR_BY_FAULT, start=len(PAIRS_WITHOUT_FAULTS) + 1):
        assert f" {title} (" in result.out
        assert f"line {number}:" in result.out
    skipped = len(PAIR_BY_FAULT) - len(KEPT_FAULTS)
    total = len(PAIR_BY_FAULT) + len(PAIRS_WITHOUT_FAULTS)
    assert f"{total - skipped} of {total} pairs are left, {skipped} would be skipped." in result.out
    assert (
        "Training would be refused: no pair can be held out for validation, as fewer than ten" in result.out
    )
    assert "\x07" not in result.out
    assert "\\x07" in result.out


def test_the_json_report_has_every_fault_with_its_line(call: Call, faulty_file: Path) -> None:
    result = call("check", faulty_file, "--json")
    assert result.code == 1
    report = json.loads(result.out)
    by_title = {fault["fault"]: fault for fault in report["faults"]}
    assert set(PAIR_BY_FAULT) <= set(by_title)
    for number, title in enumerate(PAIR_BY_FAULT, start=len(PAIRS_WITHOUT_FAULTS) + 1):
        assert number in [example["line"] for example in by_title[title]["examples"]], title
        if title != "untranslated":  # this pair is skipped because of its script
            assert (by_title[title]["skipped"] == 0) == (title in KEPT_FAULTS), title
    assert report["pairs"] == len(PAIR_BY_FAULT) + len(PAIRS_WITHOUT_FAULTS)
    assert report["kept"] + sum(report["skipped"].values()) == report["pairs"]
    assert report["kept"] == len(PAIRS_WITHOUT_FAULTS) + len(KEPT_FAULTS)
    assert report["leaked"] == {}
    assert report["source"]["language"] == "en"
    assert report["target"]["language"] == "ko"
    assert {"words", "distinct_words", "median", "longest"} <= set(report["source"])


DOCUMENTS = {
    "film.srt": ("1\n00:00:01,000 --> 00:00:02,000\nHello.\n", "subtitles"),
    "film.vtt": ("WEBVTT\n\n00:01.000 --> 00:02.000\nHello.\n", "subtitles"),
    "app.yml": ("en:\n  hello: Hello\n", "YAML"),
    "app.strings": ('"hello" = "Hello";\n', "messages of an app"),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_is_refused_as_a_text_with_one_sentence_per_line(
    name: str, call: Call, tmp_path: Path
) -> None:
    text, kind = DOCUMENTS[name]
    first, second = tmp_path / name, tmp_path / f"ko.{name}"
    for path in (first, second):
        path.write_text(text, encoding="utf-8")
    for arguments in (("check", first), ("check", first, second), ("train", first, second, "--out", "run")):
        message = call(*arguments).error_of(arguments[0])
        assert f"{name} holds {kind}" in message
        assert f"jumok translate MODEL {first.name} --out" in message


def test_examples_can_be_left_out(call: Call, faulty_file: Path) -> None:
    assert "line 3:" not in call("check", faulty_file, "--examples", "0").out


@pytest.mark.parametrize("text", [":heart: [bold]x[/] a", "[/] a b", "a b \\", "a b \\\\", "[red]a \\[b]"])
def test_sentences_are_shown_as_they_are(text: str, call: Call, tmp_path: Path) -> None:
    file = write_tsv(tmp_path / "marks.tsv", [("x y", "z"), (text, text)])
    assert f"line 2: {text} ||| {text}\n" in call("check", file).out


def test_a_name_is_shown_as_it_is(call: Call, tmp_path: Path) -> None:
    file = write_tsv(tmp_path / "[bold]:heart:.tsv", [("x y", "z")])
    assert f"{file}: 1 pairs" in call("check", file).out


def test_characters_that_the_reader_removed_are_reported(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "windows.en-de.tsv"
    file.write_bytes(b"\xef\xbb\xbfone\teins\r\ntwo\tzwei")
    result = call("check", file)
    assert "1 byte order mark" in result.out
    assert "1 carriage return" in result.out
    assert "1 no final newline" in result.out


def test_an_unknown_language_code_in_a_header_is_reported(tmp_path: Path) -> None:
    file = write_tsv(tmp_path / "pairs.tsv", [("hsb", "de"), ("Dobry dźeń.", "Guten Tag.")])
    result = spawn("check", file)
    assert result.returncode == 1  # one pair is too few
    assert result.stderr.decode().startswith(f"jumok check: the first line of {file} was taken as a header")
    assert result.stderr.count(b"\n") == 1
    assert f"{file}: 1 pairs; 1 header line".encode() in result.stdout


def test_languages_can_be_given_and_swapped(call: Call, tmp_path: Path) -> None:
    file = write_tsv(tmp_path / "pairs.tsv", PAIRS_WITHOUT_FAULTS)
    report = json.loads(call("check", file, "--from", "English", "--to", "kor", "--json").out)
    assert (report["source"]["language"], report["target"]["language"]) == ("en", "ko")
    with_languages = write_tsv(tmp_path / "pairs.en-ko.tsv", PAIRS_WITHOUT_FAULTS)
    report = json.loads(call("check", with_languages, "--from", "ko", "--json").out)
    assert (report["source"]["language"], report["target"]["language"]) == ("ko", "en")


def test_compressed_texts_and_standard_input_are_read(call: Call, tmp_path: Path) -> None:
    lines = digit_lines(5)
    source, target = tmp_path / "t.en.gz", tmp_path / "t.de"
    source.write_bytes(gzip.compress("".join(f"{line[0]}\n" for line in lines).encode()))
    target.write_text("".join(f"{line[1]}\n" for line in lines), encoding="utf-8")
    assert json.loads(call("check", source, target, "--json").out)["pairs"] == 5
    piped = "".join(f"{line[0]}\t{line[1]}\n" for line in lines).encode()
    assert json.loads(call("check", "-", "--json", stdin=piped).out)["pairs"] == 5


@pytest.fixture
def leaking_files(tmp_path: Path) -> dict[str, Path]:
    """Files of ten training pairs and of three validation pairs, two of which are also training pairs.

    `both` has the validation pairs in one file. `en` and `de` have one side of the validation pairs each.
    """
    train, valid = digit_lines(10), [*digit_lines(2), ("nine nine nine nine nine nine", "neun " * 6, "")]
    files = {"train": write_tsv(tmp_path / "train.en-de.tsv", [line[:2] for line in train])}
    files["both"] = write_tsv(tmp_path / "valid.en-de.tsv", [line[:2] for line in valid])
    for side, language in enumerate(("en", "de")):
        files[language] = tmp_path / f"valid.{language}"
        files[language].write_text("".join(f"{line[side]}\n" for line in valid), encoding="utf-8")
    return files


@pytest.mark.parametrize("option", ["--valid", "--test"])
@pytest.mark.parametrize("before", [True, False], ids=["before the pairs", "after the pairs"])
def test_leaked_pairs_of_a_held_out_set_in_two_files_are_reported(
    option: str, before: bool, call: Call, leaking_files: dict[str, Path]
) -> None:
    options = [option, leaking_files["en"], leaking_files["de"]]
    arguments = [*options, leaking_files["train"]] if before else [leaking_files["train"], *options]
    result = call("check", *arguments)
    name = f"{leaking_files['en']} + {leaking_files['de']}"
    assert result.code == 0
    message = f"2 of 3 sentences of {name} are also in the training pairs"
    report = json.loads(call("check", *arguments, "--json").out)
    assert report["leaked"] == {name: 2}
    assert "no faults found" not in result.out
    if option == "--valid":
        assert f"{message}.\n" in result.out
        assert " leaked (2 skipped)" in result.out
        assert (report["kept"], report["held_out"]) == (8, 0)
    else:  # `jumok train` has no --test
        assert f"{message}; `jumok train` does not read that set and will train on them." in result.out
        assert (report["kept"], report["held_out"]) == (10, 1)


@pytest.mark.medium
def test_check_predicts_how_many_pairs_training_uses(call: Call, tmp_path: Path) -> None:
    lines = [line[:2] for line in digit_lines(40)]
    long = " ".join(["one two three four five"] * 45), " ".join(["eins zwei drei vier fünf"] * 45)
    file = write_tsv(tmp_path / "some.en-de.tsv", [*lines, lines[0], ("&amp; one", "&amp; eins"), long])
    report = json.loads(call("check", file, "--json").out)
    result = call("train", file, "--out", tmp_path / "run", *TINY_OPTIONS)
    assert result.code == 0, result.err
    assert (report["kept"], report["held_out"]) == (42, 4)  # 43 pairs, less a duplicate; a tenth of 42
    run = json.loads((tmp_path / "run" / "model" / "jumok.json").read_text(encoding="utf-8"))
    trained_pairs = sum(corpus["pairs"] for corpus in run["corpora"])
    assert trained_pairs == report["kept"] - report["held_out"] - 1  # `long` has more than 200 tokens
    assert "It will also skip sentences of more than 200 tokens" in call("check", file).out


def test_the_longest_sentence_and_the_limit_are_reported(call: Call, tmp_path: Path) -> None:
    file = write_tsv(tmp_path / "long.en-de.tsv", [("one two", "eins zwei"), ("one " * 3000, "eins " * 3000)])
    result = call("check", file)
    assert result.out.count("longest 3000") == 2
    assert " too long (1 skipped): more than 250 words or 2,000 characters" in result.out


def test_links_to_missing_words_are_reported_with_their_line(call: Call, tmp_path: Path) -> None:
    lines = [
        ("I go.", "나는 간다.", "0-0 1-1 2-2"),
        ("I go.", "내가 간다.", "0-0 3-1 1?7"),  # `1?7` is a link that is only possible
        ("Go!", "가라!", "1-1"),
    ]
    file = write_tsv(tmp_path / "gold.en-ko.tsv", lines)
    result = call("check", file)
    assert " 1 links out of range (kept): " in result.out
    assert "line 2: I go. ||| 내가 간다.\n" in result.out
    assert "received 1-7, 3-1; the source has 3 words, the target 3\n" in result.out
    faults = json.loads(call("check", file, "--json").out)["faults"]
    [fault] = [fault for fault in faults if "links" in fault["fault"]]
    assert (fault["examples"][0]["line"], fault["skipped"]) == (2, 0)
    assert "received 1-7, 3-1" in fault["examples"][0]["detail"]


def test_leaked_pairs_of_a_held_out_set_in_one_file_are_reported(
    call: Call, leaking_files: dict[str, Path]
) -> None:
    report = json.loads(call("check", "--valid", leaking_files["both"], leaking_files["train"], "--json").out)
    assert report["leaked"] == {str(leaking_files["both"]): 2}


def test_leaked_pairs_of_the_validation_set_and_the_test_set_are_reported(
    call: Call, leaking_files: dict[str, Path]
) -> None:
    options = ["--valid", leaking_files["en"], leaking_files["de"], "--test", leaking_files["both"], "--json"]
    report = json.loads(call("check", leaking_files["train"], *options).out)
    assert report["leaked"] == {
        f"{leaking_files['en']} + {leaking_files['de']}": 2,
        str(leaking_files["both"]): 2,
    }


def test_a_closed_pipe_before_the_report_is_not_an_error(faulty_file: Path) -> None:
    with subprocess.Popen(
        program(["check", faulty_file]), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        message = process.stderr.read()
        assert process.wait(timeout=60) == 141  # 128 + SIGPIPE
    assert message == b""
