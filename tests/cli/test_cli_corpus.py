"""`jumok corpus` prints the pairs of a built-in corpus. A file with this output is a corpus for jumok."""

from __future__ import annotations

import subprocess
from random import Random
from typing import TYPE_CHECKING

import pytest

from jumok.data.corpora import open_corpora
from jumok.datasets.english_korean import generate, generation
from jumok.datasets.english_korean.patterns.table import PATTERNS
from jumok.datasets.english_korean.scene import Scene, Sentence
from support.cli_calls import environment, program, spawn

if TYPE_CHECKING:
    from pathlib import Path

    from support.cli_calls import Call


def test_a_corpus_has_a_header_and_the_requested_number_of_pairs(call: Call) -> None:
    result = call("corpus", "english-korean", "--count", "7")
    assert (result.code, result.err) == (0, "")
    lines = result.out.split("\n")
    assert lines[0] == "en\tko\talignment"
    assert lines[-1] == ""
    assert len(lines) == 1 + 7 + 1
    assert all(line.count("\t") == 2 for line in lines[:-1])


def test_the_corpus_english_french_is_printed_and_suggested(call: Call) -> None:
    lines = call("corpus", "english-french", "--count", "3").out.splitlines()
    assert lines[0] == "en\tfr\talignment"
    assert len(lines) == 1 + 3
    assert "english-french" in call("corpus", "english-french2").err


def test_no_align_leaves_out_the_alignments(call: Call) -> None:
    with_alignments = call("corpus", "english-korean", "--count", "4").out.splitlines()
    without_alignments = call("corpus", "english-korean", "--count", "4", "--no-align").out.splitlines()
    assert without_alignments[0] == "en\tko"
    assert without_alignments[1:] == ["\t".join(line.split("\t")[:2]) for line in with_alignments[1:]]


def test_a_printed_corpus_can_be_read_back(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "pairs.tsv"
    file.write_text(call("corpus", "english-korean", "--count", "50").out, encoding="utf-8")
    [corpus] = open_corpora([str(file)])
    assert (corpus.source_language, corpus.target_language) == ("en", "ko")
    assert list(corpus.pairs()) == list(generate("train", 50))
    assert all(pair.alignment is not None for pair in corpus.pairs())


def test_splits_are_disjoint_and_seeds_give_different_pairs(call: Call) -> None:
    printed = {
        (split, seed): set(
            call("corpus", "english-korean", "--count", "200", "--split", split, "--seed", seed).out.split(
                "\n"
            )[1:-1]
        )
        for split in ("train", "valid", "test")
        for seed in ("1", "2")
    }
    assert all(len(lines) == 200 for lines in printed.values())
    for split in ("train", "valid", "test"):
        assert printed[split, "1"] != printed[split, "2"]
        others = [lines for (other, _), lines in printed.items() if other != split]
        assert all(printed[split, "1"].isdisjoint(lines) for lines in others)


def test_an_unknown_corpus_is_refused_with_a_suggestion(call: Call) -> None:
    result = call("corpus", "english-corean")
    assert "'english-corean'" in result.error_of("corpus")
    assert 'Did you mean "english-korean"?' in result.err
    assert result.out == ""


def test_an_unknown_split_is_refused_with_a_suggestion(call: Call) -> None:
    result = call("corpus", "english-korean", "--split", "tset")
    assert 'Did you mean "test"?' in result.error_of("corpus")
    assert result.out == ""


def test_a_count_above_the_number_of_distinct_pairs_ends_with_an_error(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def one_of_ten(scene: Scene) -> Sentence:
        seed = int(10 * scene.random())
        return PATTERNS["but another subject"].build(Scene(Random(seed).random, scene.polite))

    monkeypatch.setattr(generation, "_BUILDERS", (one_of_ten,))
    monkeypatch.setattr(generation, "_CUMULATIVE", (1.0,))
    monkeypatch.setattr(generation, "MAX_FAILED_DRAWS", 500)
    result = call("corpus", "english-korean", "--count", "21")
    printed = result.out.splitlines()[1:]
    assert 2 <= len(set(printed)) == len(printed) <= 20  # ten scenes, each plain and polite
    message = result.error_of("corpus")
    assert f"after {len(printed)} distinct ones, 500 draws in a row gave nothing new" in message
    assert "Received: count 21" in message
    assert call("corpus", "english-korean", "--count", str(len(printed))).code == 0


# The output of 3 pairs fits into the buffer, so a closed pipe or a full disk is noticed at the end.
@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("count", [3, 20_000], ids=["at the end", "in the middle"])
def test_a_closed_pipe_is_not_an_error(count: int, unbuffered: str) -> None:
    with subprocess.Popen(
        program(["corpus", "english-korean", "--count", str(count)]),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(PYTHONUNBUFFERED=unbuffered),
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        if count > 3:
            assert process.stdout.readline() == b"en\tko\talignment\n"
        process.stdout.close()
        message = process.stderr.read()
        assert process.wait(timeout=60) == 141  # 128 + SIGPIPE
    assert message == b""


@pytest.mark.parametrize("count", [3, 20_000], ids=["at the end", "in the middle"])
def test_a_full_disk_is_reported(count: int) -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        result = subprocess.run(
            program(["corpus", "english-korean", "--count", str(count)]),
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            timeout=60,
            env=environment(),
        )
    assert result.returncode == 2
    assert (
        result.stderr
        == b"jumok corpus: The output could not be written: the disk is full. Free some space.\n"
    )


def test_sentences_are_utf8_whatever_the_locale() -> None:
    result = spawn("corpus", "english-korean", "--count", "2", PYTHONIOENCODING="latin-1")
    assert (result.returncode, result.stderr) == (0, b"")
    assert result.stdout.decode("utf-8").count("\n") == 3
