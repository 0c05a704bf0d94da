"""`jumok check`: what is in the pairs, what is wrong with them, what leaks."""

from __future__ import annotations

import gzip
import json
import subprocess
from typing import TYPE_CHECKING

import pytest
from cli_calls import environment, program, spawn

from digit_lines import TINY, digit_lines, write_tsv

if TYPE_CHECKING:
    from pathlib import Path

    from cli_calls import Call

GOOD = [("I go home.", "나는 집에 간다."), ("You read a book.", "너는 책을 읽는다.")]
PLANTED = {
    "empty": ("Nothing here.", ""),
    "too long": ("word " * 300, "낱말 " * 300),
    "replaced characters": ("A broken � letter.", "깨진 글자가 있다."),
    "mojibake": ("The cafÃ© is closed.", "카페가 닫혔다."),
    "control characters": ("A bell \x07 rings.", "종이 울린다."),
    "wrong script": ("This is not Korean.", "Das ist kein Koreanisch."),
    "untranslated": ("Seoul Station", "Seoul Station"),
    "odd length ratio": ("Yes.", "그렇다고 생각하지만 " * 12),
    "duplicate": GOOD[0],
    "other translation": (GOOD[1][0], "당신은 책을 읽습니다."),
    "zero-width characters": ("A zero\u200bwidth space.", "폭이 없는 공백이다."),
    "not NFC": ("The cafe\u0301 is open.", "카페가 열렸다."),
    "HTML entities": ("Salt &amp; pepper.", "소금과 후추."),
}
TINY_OPTIONS = [word for name, value in TINY.items() for word in ("--set", f"{name}={value}")]
KEPT_FAULTS = {"other translation", "zero-width characters", "not NFC", "HTML entities"}


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    return write_tsv(tmp_path / "faulty.en-ko.tsv", [*GOOD, *PLANTED.values()])


def test_nothing_wrong(call: Call, pairs: Path) -> None:
    ran = call("check", pairs)
    assert ran.code == 0
    assert ran.err == ""
    assert f"{pairs}: 60 pairs" in ran.out
    assert "source en" in ran.out
    assert "target de" in ran.out
    assert "nothing is wrong with them." in ran.out
    assert "training will use 60 of 60 pairs, 6 of them for validation, and skip 0." in ran.out


@pytest.mark.parametrize(
    "rows",
    [[("one", "eins")], [("one", f"eins {number}") for number in range(40)]],
    ids=["one", "one source"],
)
def test_a_corpus_that_leaves_no_validation_set_is_told_of_as_training_refuses_it(
    rows: list[tuple[str, str]], call: Call, tmp_path: Path
) -> None:
    few = write_tsv(tmp_path / "few.en-de.tsv", rows)
    ran = call("check", few)
    assert ran.code == 0
    assert "Training would be refused" in ran.out
    assert "--valid" in ran.out
    said = call("train", few, "--out", tmp_path / "run").paragraph("train")
    assert "no sentence to validate on" in said
    valid = write_tsv(tmp_path / "valid.en-de.tsv", [("two", "zwei")])
    assert "refused" not in call("check", few, "--valid", valid).out


def test_planted_faults_are_told(call: Call, faulty: Path) -> None:
    ran = call("check", faulty)
    assert ran.code == 0
    for number, title in enumerate(PLANTED, start=len(GOOD) + 1):
        assert f" {title} (" in ran.out
        assert f"line {number}:" in ran.out
    skipped = len(PLANTED) - len(KEPT_FAULTS)
    total = len(PLANTED) + len(GOOD)
    assert f"training will use {total - skipped} of {total} pairs and skip {skipped}." in ran.out
    assert "\x07" not in ran.out
    assert "\\x07" in ran.out


def test_planted_faults_as_json(call: Call, faulty: Path) -> None:
    ran = call("check", faulty, "--json")
    assert ran.code == 0
    report = json.loads(ran.out)
    by_title = {fault["fault"]: fault for fault in report["faults"]}
    assert set(PLANTED) <= set(by_title)
    for number, title in enumerate(PLANTED, start=len(GOOD) + 1):
        assert number in [example["line"] for example in by_title[title]["examples"]], title
        if title != "untranslated":  # what is not translated is also in the wrong script, which counts first
            assert (by_title[title]["skipped"] == 0) == (title in KEPT_FAULTS), title
    assert report["pairs"] == len(PLANTED) + len(GOOD)
    assert report["kept"] + sum(report["skipped"].values()) == report["pairs"]
    assert report["kept"] == len(GOOD) + len(KEPT_FAULTS)
    assert report["leaked"] == {}
    assert report["source"]["language"] == "en"
    assert report["target"]["language"] == "ko"
    assert {"words", "distinct_words", "median", "longest"} <= set(report["source"])


def test_examples_can_be_left_out(call: Call, faulty: Path) -> None:
    assert "line 3:" not in call("check", faulty, "--examples", "0").out


@pytest.mark.parametrize("text", [":heart: [bold]x[/] a", "[/] a b", "a b \\", "a b \\\\", "[red]a \\[b]"])
def test_sentences_are_shown_as_they_are(text: str, call: Call, tmp_path: Path) -> None:
    file = write_tsv(tmp_path / "marks.tsv", [("x y", "z"), (text, text)])
    assert f"line 2: {text} ||| {text}\n" in call("check", file).out


def test_a_name_is_shown_as_it_is(call: Call, tmp_path: Path) -> None:
    file = write_tsv(tmp_path / "[bold]:heart:.tsv", [("x y", "z")])
    assert f"{file}: 1 pairs" in call("check", file).out


def test_what_the_reader_dropped_is_told(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "windows.en-de.tsv"
    file.write_bytes(b"\xef\xbb\xbfone\teins\r\ntwo\tzwei")
    ran = call("check", file)
    assert "1 byte order mark" in ran.out
    assert "1 carriage return" in ran.out
    assert "1 no final newline" in ran.out


def test_a_header_with_a_code_that_is_not_known_is_told(tmp_path: Path) -> None:
    file = write_tsv(tmp_path / "pairs.tsv", [("hsb", "de"), ("Dobry dźeń.", "Guten Tag.")])
    done = spawn("check", file)
    assert done.returncode == 0
    assert done.stderr.decode().startswith(f"jumok check: the first line of {file} was taken as a header")
    assert done.stderr.count(b"\n") == 1
    assert f"{file}: 1 pairs; 1 header line".encode() in done.stdout


def test_languages_can_be_said_and_turned(call: Call, tmp_path: Path) -> None:
    file = write_tsv(tmp_path / "pairs.tsv", GOOD)
    report = json.loads(call("check", file, "--from", "English", "--to", "kor", "--json").out)
    assert (report["source"]["language"], report["target"]["language"]) == ("en", "ko")
    named = write_tsv(tmp_path / "pairs.en-ko.tsv", GOOD)
    report = json.loads(call("check", named, "--from", "ko", "--json").out)
    assert (report["source"]["language"], report["target"]["language"]) == ("ko", "en")


def test_two_texts_compressed_and_standard_input(call: Call, tmp_path: Path) -> None:
    lines = digit_lines(5)
    source, target = tmp_path / "t.en.gz", tmp_path / "t.de"
    source.write_bytes(gzip.compress("".join(f"{line[0]}\n" for line in lines).encode()))
    target.write_text("".join(f"{line[1]}\n" for line in lines), encoding="utf-8")
    assert json.loads(call("check", source, target, "--json").out)["pairs"] == 5
    piped = "".join(f"{line[0]}\t{line[1]}\n" for line in lines).encode()
    assert json.loads(call("check", "-", "--json", stdin=piped).out)["pairs"] == 5


@pytest.fixture
def leaking(tmp_path: Path) -> dict[str, Path]:
    """Ten pairs, and five for validation of which two are among them, as two texts and as one file."""
    train, valid = digit_lines(10), [*digit_lines(2), ("nine nine nine nine nine nine", "neun " * 6, "")]
    files = {"train": write_tsv(tmp_path / "train.en-de.tsv", [line[:2] for line in train])}
    files["both"] = write_tsv(tmp_path / "valid.en-de.tsv", [line[:2] for line in valid])
    for side, language in enumerate(("en", "de")):
        files[language] = tmp_path / f"valid.{language}"
        files[language].write_text("".join(f"{line[side]}\n" for line in valid), encoding="utf-8")
    return files


@pytest.mark.parametrize("option", ["--valid", "--test"])
@pytest.mark.parametrize("before", [True, False], ids=["before the pairs", "after the pairs"])
def test_leaks_from_two_texts(option: str, before: bool, call: Call, leaking: dict[str, Path]) -> None:
    named = [option, leaking["en"], leaking["de"]]
    words = [*named, leaking["train"]] if before else [leaking["train"], *named]
    ran = call("check", *words)
    name = f"{leaking['en']} + {leaking['de']}"
    assert ran.code == 0
    told = f"2 of 3 sentences of {name} are also in the training pairs"
    report = json.loads(call("check", *words, "--json").out)
    assert report["leaked"] == {name: 2}
    assert "nothing is wrong" not in ran.out
    if option == "--valid":
        assert f"{told}.\n" in ran.out
        assert " leaked (2 skipped)" in ran.out
        assert (report["kept"], report["held_out"]) == (8, 0)
    else:  # `jumok train` has no --test
        assert f"{told}; `jumok train` does not know that set and will learn them." in ran.out
        assert (report["kept"], report["held_out"]) == (10, 1)


@pytest.mark.medium
def test_what_is_said_of_training_is_what_training_does(call: Call, tmp_path: Path) -> None:
    lines = [line[:2] for line in digit_lines(40)]
    long = " ".join(["one two three four five"] * 45), " ".join(["eins zwei drei vier fünf"] * 45)
    file = write_tsv(tmp_path / "some.en-de.tsv", [*lines, lines[0], ("&amp; one", "&amp; eins"), long])
    report = json.loads(call("check", file, "--json").out)
    ran = call("train", file, "--out", tmp_path / "run", *TINY_OPTIONS)
    assert ran.code == 0, ran.err
    assert (report["kept"], report["held_out"]) == (42, 4)
    run = json.loads((tmp_path / "run" / "model" / "jumok.json").read_text(encoding="utf-8"))
    learnt = sum(corpus["pairs"] for corpus in run["corpora"])
    assert learnt == report["kept"] - report["held_out"] - 1  # `long` has more than 200 pieces
    assert "It will also skip sentences of more than 200 pieces" in call("check", file).out


def test_the_longest_sentence_is_told_as_it_is_and_the_limit_too(call: Call, tmp_path: Path) -> None:
    file = write_tsv(tmp_path / "long.en-de.tsv", [("one two", "eins zwei"), ("one " * 3000, "eins " * 3000)])
    ran = call("check", file)
    assert ran.out.count("longest 3000") == 2
    assert " too long (1 skipped): more than 250 words or 2,000 characters" in ran.out


def test_links_to_words_that_are_not_there_are_told_with_their_line(call: Call, tmp_path: Path) -> None:
    lines = [
        ("I go.", "나는 간다.", "0-0 1-1 2-2"),
        ("I go.", "내가 간다.", "0-0 3-1 1?7"),
        ("Go!", "가라!", "1-1"),
    ]
    file = write_tsv(tmp_path / "gold.en-ko.tsv", lines)
    ran = call("check", file)
    assert " 1 links out of range (kept): " in ran.out
    assert "line 2: I go. ||| 내가 간다.\n" in ran.out
    assert "received 1-7, 3-1; the source has 3 words, the target 3\n" in ran.out
    [fault] = [
        one for one in json.loads(call("check", file, "--json").out)["faults"] if "links" in one["fault"]
    ]
    assert (fault["examples"][0]["line"], fault["skipped"]) == (2, 0)
    assert "received 1-7, 3-1" in fault["examples"][0]["detail"]


def test_leaks_from_one_file(call: Call, leaking: dict[str, Path]) -> None:
    report = json.loads(call("check", "--valid", leaking["both"], leaking["train"], "--json").out)
    assert report["leaked"] == {str(leaking["both"]): 2}


def test_leaks_of_validation_and_test(call: Call, leaking: dict[str, Path]) -> None:
    words = ["--valid", leaking["en"], leaking["de"], "--test", leaking["both"], "--json"]
    report = json.loads(call("check", leaking["train"], *words).out)
    assert report["leaked"] == {f"{leaking['en']} + {leaking['de']}": 2, str(leaking["both"]): 2}


def test_a_reader_that_leaves_before_the_report_is_no_fault(faulty: Path) -> None:
    with subprocess.Popen(
        program(["check", faulty]), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
        assert process.wait(timeout=60) == 141
    assert said == b""
