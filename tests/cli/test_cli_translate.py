"""`jumok translate` writes as many lines as it reads, whatever the lines contain."""

from __future__ import annotations

import gzip
import json
import os
import select
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

import jumok
from jumok.cli.input_lines import count_lines
from jumok.cli.translate import _time_left
from jumok.types import Alignment
from support.cli_calls import environment, program, spawn

if TYPE_CHECKING:
    from pathlib import Path

    from support.cli_calls import Call

ODD_LINES = [
    b"one two",
    b"",
    b"   ",
    "three\u2028four".encode(),
    "five\u0085six".encode(),
    b"seven\x0beight\x0cnine",
    b"one\rtwo",
    "하나 둘 🙂".encode(),
    b"",
    b"nine",
]


def lines_of(out: str) -> list[str]:
    assert out == "" or out.endswith("\n")
    return out.split("\n")[:-1]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["newline", "carriage return"])
@pytest.mark.parametrize("ends_with_newline", [True, False], ids=["ended", "without a last newline"])
def test_as_many_lines_are_written_as_read(
    end: bytes, ends_with_newline: bool, call: Call, model: Path
) -> None:
    text = end.join(ODD_LINES) + (end if ends_with_newline else b"")
    result = call("translate", model, stdin=text)
    assert result.code == 0
    assert all(line.startswith("note: ") for line in result.err.splitlines())
    lines = lines_of(result.out)
    assert len(lines) == len(ODD_LINES)
    assert all(
        translation == "" for translation, line in zip(lines, ODD_LINES, strict=True) if not line.strip()
    )
    assert all(len(line.splitlines()) <= 1 for line in lines)
    expected = jumok.load(model).translate([line.decode() for line in ODD_LINES])
    assert lines == [" ".join(translation.text.splitlines()) for translation in expected]


def test_a_file_and_standard_input_give_the_same_translations(
    call: Call, model: Path, tmp_path: Path
) -> None:
    file = tmp_path / "in.txt"
    file.write_bytes(b"\n".join(ODD_LINES))
    assert call("translate", model, file) == call("translate", model, stdin=file.read_bytes())


def test_a_byte_order_mark_is_removed(call: Call, model: Path) -> None:
    [line] = lines_of(call("translate", model, "--json", stdin=b"\xef\xbb\xbfone two\n").out)
    assert json.loads(line)["source"] == "one two"


@pytest.mark.parametrize(("text", "count"), [(b"", 0), (b"\n", 1), (b"\n\n", 2)])
def test_empty_input_gives_empty_output(text: bytes, count: int, call: Call, model: Path) -> None:
    result = call("translate", model, stdin=text)
    assert (result.code, result.out) == (0, "\n" * count)


def test_more_lines_than_are_read_ahead_are_all_translated(call: Call, model: Path) -> None:
    result = call("translate", model, "--beam", "1", stdin=b"one\n\n" * 300)
    lines = lines_of(result.out)
    assert len(lines) == 600
    assert set(lines[1::2]) == {""}
    assert len(set(lines[::2])) == 1


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_lines_before_a_line_that_is_not_utf8_are_translated(engine: str, call: Call, model: Path) -> None:
    valid_lines = b"one\ntwo three\n\nfour\n"
    result = call("translate", model, "--engine", engine, stdin=valid_lines + b"\xff\nfive\n")
    assert "line 5, byte 1: this is not UTF-8" in result.error_of("translate")
    assert result.out == call("translate", model, "--engine", engine, stdin=valid_lines).out
    assert len(lines_of(result.out)) == 4


def test_json_has_the_text_the_score_and_the_tokens(call: Call, model: Path) -> None:
    records = [
        json.loads(line) for line in lines_of(call("translate", model, "--json", stdin=b"one two\n\n").out)
    ]
    assert [set(record) - {"notes"} for record in records] == [{"source", "text", "score", "tokens"}] * 2
    assert records[0]["source"] == "one two"
    assert records[0]["score"] < 0
    assert records[0]["tokens"]
    assert records[1] == {"source": "", "text": "", "score": 0.0, "tokens": []}
    [plain] = lines_of(call("translate", model, stdin=b"one two\n").out)
    assert records[0]["text"] == plain


def test_json_output_has_one_line_per_input_line(call: Call, model: Path) -> None:
    lines = lines_of(call("translate", model, "--json", "--align", stdin=b"\n".join(ODD_LINES)).out)
    assert [json.loads(line)["source"] for line in lines] == [line.decode() for line in ODD_LINES]


def test_n_best_gives_alternatives_in_the_order_of_their_scores(call: Call, model: Path) -> None:
    options = ["--json", "--n-best", "3", "--beam", "4"]
    [line] = lines_of(call("translate", model, *options, stdin=b"one two three\n").out)
    record = json.loads(line)
    scores = [record["score"], *(other["score"] for other in record["alternatives"])]
    assert 1 <= len(record["alternatives"]) <= 2
    assert scores == sorted(scores, reverse=True)


def test_fewer_translations_than_n_best_are_reported_once(call: Call, model: Path) -> None:
    options = ["--json", "--n-best", "2", "--sample", "--top-k", "1"]  # with top-k 1, both draws are the same
    result = call("translate", model, *options, stdin=b"one two three\n\nfour\n")
    assert result.code == 0
    assert len(lines_of(result.out)) == 3
    assert "2 of 3 lines have fewer than 2 translations" in result.err
    assert result.err.count("fewer than") == 1
    sample = call("translate", model, *options[:-2], "--temperature", "5", stdin=b"one two three\n")
    assert len(json.loads(sample.out)["alternatives"]) == 1
    assert "fewer than" not in sample.err


def test_every_translation_starts_with_the_prefix(call: Call, model: Path) -> None:
    lines = lines_of(call("translate", model, "--prefix", "drei vier", stdin=b"one\n\ntwo three\n").out)
    assert [line.startswith("drei vier") for line in lines] == [True, False, True]
    assert lines[1] == ""


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("length_penalty", 3.0),
        ("coverage_penalty", 4.0),
        ("no_repeat_ngram_size", 1),
        ("max_length_ratio", 0.1),
    ],
)
def test_search_options_have_the_same_effect_as_in_python(
    option: str, value: float, call: Call, model: Path
) -> None:
    options = [f"--{option.replace('_', '-')}", str(value), "--json", "--n-best", "2", "--beam", "4"]
    text = "one two three four five six seven"
    record = json.loads(call("translate", model, *options, stdin=text.encode()).out)
    translator = jumok.load(model)
    [expected] = translator.translate([text], beam=4, n_best=2, **{option: value})  # type: ignore[arg-type]
    assert (record["text"], record["score"]) == (expected.text, round(expected.score, 5))
    [without_option] = translator.translate([text], beam=4, n_best=2)
    assert expected != without_option


def test_alignments_equal_those_of_python(call: Call, model: Path) -> None:
    [line, empty] = lines_of(call("translate", model, "--json", "--align", stdin=b"one two\n\n").out)
    record = json.loads(line)
    expected = jumok.load(model).align("one two", record["text"])
    assert record["alignment"] == str(expected)
    assert json.loads(empty)["alignment"] == str(Alignment(frozenset()))


def test_sampling_depends_on_its_seed(call: Call, model: Path) -> None:
    text = b"one two three four five\n" * 4
    samples = {seed: call("translate", model, "--sample", "--seed", seed, stdin=text).out for seed in "123"}
    assert samples["1"] == call("translate", model, "--sample", "--seed", "1", stdin=text).out
    assert samples["1"] == call("translate", model, "--sample", stdin=text).out
    assert len(set(samples.values())) == 3
    assert len(set(lines_of(samples["1"]))) > 1


def test_top_k_and_top_p_limit_sampling(call: Call, model: Path) -> None:
    text = b"one two three\n"
    greedy = call("translate", model, "--beam", "1", stdin=text).out
    assert call("translate", model, "--sample", "--top-k", "1", stdin=text).out == greedy
    assert call("translate", model, "--sample", "--top-p", "0.000001", stdin=text).out == greedy


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--n-best", "3"], "Add --json"),
        (["--align"], "Add --json"),
        (["--json", "--n-best", "5", "--beam", "2"], "n_best 5 with beam 2"),
        (
            ["--json", "--n-best", "2", "--patience-factor", "0.25"],
            "n_best 2 with beam 2 and patience_factor 0.25",
        ),
        (["--sample", "--temperature", "0"], "temperature"),
        (["--sample", "--temperature", "nan"], "temperature"),
        (["--sample", "--temperature", "inf"], "temperature"),
        (["--sample", "--temperature", "1e-300", "--engine", "torch"], "between 1e-06 and 1e+06"),
        (["--sample", "--temperature", "1e300", "--engine", "torch"], "between 1e-06 and 1e+06"),
        (["--sample", "--top-p", "2"], "top_p"),
        (["--sample", "--top-k", "-1"], "top_k"),
        (["--length-penalty", "nan"], "--length-penalty: Input should be a finite number"),
        (["--temperature", "0.5"], "--temperature would be ignored: only --sample draws at random"),
        (["--top-k", "5", "--top-p", "0.9"], "--top-k, --top-p would be ignored: only --sample"),
        (["--seed", "1"], "Add --sample, or leave --seed out"),
        (["--sample", "--beam", "2"], "Sampling has no beam, so beam would be ignored"),
        (["--sample", "--patience-factor", "2"], "Sampling has no beam, so patience_factor would"),
        (["--beam", "1", "--patience-factor", "2"], "patience_factor would be ignored"),
        (["--patience-factor", "0"], "jumok translate: --patience-factor: Input should be"),
        (["--coverage-penalty", "-1"], "jumok translate: --coverage-penalty: Input should be"),
        (["--coverage-penalty", "inf"], "jumok translate: --coverage-penalty: Input should be"),
        (["--no-repeat-ngram-size", "-1"], "jumok translate: --no-repeat-ngram-size: Input should be"),
        (["--max-length-ratio", "nan"], "jumok translate: --max-length-ratio: Input should be"),
        (
            ["--max-length-ratio", "1e30", "--engine", "torch"],
            "jumok translate: --max-length-ratio: Input should be",
        ),
    ],
)
def test_options_that_cannot_be_used_are_refused(
    options: list[str], message: str, call: Call, model: Path
) -> None:
    result = call("translate", model, *options, stdin=b"one\n")
    assert message in result.error_of("translate")
    assert result.out == ""


@pytest.mark.medium
def test_translations_in_a_pipe_are_utf8_whatever_the_locale(model: Path) -> None:
    result = spawn("translate", model, stdin=b"\n".join(ODD_LINES), PYTHONIOENCODING="ascii")
    assert result.returncode == 0
    assert all(line.startswith(b"note: ") for line in result.stderr.splitlines())
    assert result.stdout.count(b"\n") == len(ODD_LINES)
    result.stdout.decode("utf-8")  # raises an error if the output is not UTF-8


@pytest.mark.medium
@pytest.mark.parametrize("options", [[], ["--json"], ["--engine", "torch"]], ids=" ".join)
def test_each_line_is_translated_before_the_next_line_is_written(options: list[str], model: Path) -> None:
    input_lines = [b"one two\n", b"\n", b"three\n", b"without a last newline"]
    answers: list[bytes] = []
    with subprocess.Popen(
        program(["translate", model, *options]),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for line in input_lines[:-1]:
            process.stdin.write(line)
            process.stdin.flush()
            readable, _, _ = select.select([process.stdout], [], [], 60)
            assert readable
            answers.append(process.stdout.readline())
        process.stdin.write(input_lines[-1])
        process.stdin.close()
        answers.append(process.stdout.read())
    all_at_once = spawn("translate", model, *options, stdin=b"".join(input_lines))
    assert b"".join(answers) == all_at_once.stdout


def test_the_progress_bar_counts_a_last_line_without_newline(tmp_path: Path) -> None:
    file = tmp_path / "in.txt"
    for text, count in (("", 0), ("one", 1), ("one\n", 1), ("one\n\ntwo", 3), ("one\n\n", 2)):
        file.write_text(text, encoding="utf-8")
        assert count_lines(file) == count


def test_the_progress_bar_counts_the_lines_of_a_compressed_text(tmp_path: Path) -> None:
    file = tmp_path / "in.txt.gz"
    file.write_bytes(gzip.compress(b"one two three\n" * 1_000))
    assert count_lines(file) == 1_000


@pytest.mark.medium
def test_a_closed_pipe_is_not_an_error_of_a_translation(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "many.txt"
    file.write_bytes(b"one two three\n" * 3000)
    with subprocess.Popen(
        # The output is larger than the buffer of a pipe.
        program(["translate", model, file, "--beam", "1", "--json"]),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().endswith(b"\n")
        process.stdout.close()
        message = process.stderr.read()
        assert process.wait(timeout=60) == 141  # 128 + SIGPIPE
    assert message == b""


def test_the_option_engine_chooses_the_engine(call: Call, model: Path) -> None:
    text = b"one two three\n\nfour\n"
    with_ctranslate2, with_torch = (
        call("translate", model, "--engine", name, stdin=text) for name in ("ctranslate2", "torch")
    )
    assert (with_ctranslate2.code, with_torch.code) == (0, 0)
    assert "engine" not in with_ctranslate2.err + with_torch.err
    assert len(lines_of(with_ctranslate2.out)) == len(lines_of(with_torch.out)) == 3
    refused = call("translate", model, "--engine", "onnx", stdin=text)
    assert 'There is no engine "onnx"' in refused.error_of("translate")


def test_a_note_says_why_torch_is_used_instead_of_ctranslate2(
    call: Call, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampling = ("--sample", "--top-p", "0.9", "--temperature", "0.8")
    assert call("translate", model, *sampling, stdin=b"one\n").err.startswith(
        "engine torch: CTranslate2 applies"
    )
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    result = call("translate", model, stdin=b"one two three\n")
    assert result.code == 0
    assert result.err.startswith("engine torch: the package ctranslate2 cannot be used")
    assert result.err.count("engine torch") == 1


def test_the_time_left_is_computed_from_all_lines_so_far() -> None:
    assert _time_left(4.0, 2_304, 30_000) == "0:48 left"  # 2,304 lines in 4 seconds are 576 per second
    assert _time_left(90.0, 100, 400) == "4:30 left"
    assert _time_left(1.0, 10, 10) == "0:00 left"
    assert _time_left(1.0, 5, None) == _time_left(1.0, 11, 10) == ""


@pytest.mark.medium
def test_the_progress_bar_moves_while_translations_go_to_a_file(model: Path, tmp_path: Path) -> None:
    lines = tmp_path / "in.txt"
    lines.write_text("one two\n" * 30)
    terminal, other_end = os.openpty()
    command = program(["translate", model, lines])
    with (tmp_path / "out.txt").open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=other_end, env=environment())
    os.close(other_end)
    terminal_output = b""
    with suppress(OSError):  # Linux reports an I/O error when the other end is closed
        while chunk := os.read(terminal, 2**16):
            terminal_output += chunk
    os.close(terminal)
    assert process.wait(timeout=120) == 0, terminal_output
    assert b"translating" in terminal_output
    assert b"30/30" in terminal_output
    assert (tmp_path / "out.txt").read_text().count("\n") == 30
