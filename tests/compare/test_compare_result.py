"""The numbers of a comparison: quarters by source length, learning curves, JSON and Markdown."""

from __future__ import annotations

import json

from jumok.compare.result import ComparisonResult, CurvePoint, Row, quarters_by_length, read_curve_and_speed
from jumok.compare.system_result import (
    SystemResult,
    peak_memory,
    read_peak_memory,
    read_system_result,
    write_peak_memory,
    write_system_result,
)
from jumok.compare.table import as_markdown
from jumok.storage.folders import json_with_checksum, read_json_with_checksum
from support.attention_maps import alignment_map


def test_quarters_are_equal_parts_from_few_words_to_many():
    lengths = [8, 1, 7, 2, 6, 3, 5, 4]
    quarters = quarters_by_length(["w " * length for length in lengths])
    assert [(quarter.min_words, quarter.max_words) for quarter in quarters] == [
        (1, 2),
        (3, 4),
        (5, 6),
        (7, 8),
    ]
    assert [quarter.sentences for quarter in quarters] == [(1, 3), (5, 7), (6, 4), (2, 0)]


def test_every_sentence_is_in_one_quarter_however_many_there_are():
    for count in range(1, 14):
        quarters = quarters_by_length(["one two three"] * count)
        assert len(quarters) == min(count, 4)
        assert sorted(index for quarter in quarters for index in quarter.sentences) == list(range(count))
        sizes = [len(quarter.sentences) for quarter in quarters]
        assert max(sizes) - min(sizes) <= 1


def test_punctuation_marks_count_as_words_like_in_alignments():
    assert quarters_by_length(["No, I go home."])[0].max_words == 6


def test_a_curve_has_the_time_of_the_run_and_the_median_speed(tmp_path):
    records = [
        {"kind": "train", "step": 20, "tokens_per_second": 100.0, "seconds": 4.0},
        {"kind": "train", "step": 40, "tokens_per_second": 300.0, "seconds": 5.0},
        {"kind": "validation", "step": 40, "loss": 2.5, "bleu": 10.0, "chrf": 20.0, "seconds": 0.5},
        {"kind": "validation", "step": 41, "loss": 2.4, "bleu": 11.0, "chrf": 21.0, "seconds": 0.5},
        {"kind": "train", "step": 60, "tokens_per_second": 310.0, "seconds": 7.0},
        {"kind": "validation", "step": 60, "loss": None, "bleu": 0.0, "seconds": 0.5},
    ]
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    # The time at a validation is that of the last training report, plus the seconds of all validations since.
    # A validation without a loss is left out.
    assert read_curve_and_speed(path) == (
        (CurvePoint(40, 5.5, 2.5, 10.0), CurvePoint(41, 6.0, 2.4, 11.0)),
        300.0,
    )
    path.write_text(json.dumps(records[2]) + "\n", encoding="utf-8")
    assert read_curve_and_speed(path) == ((CurvePoint(40, None, 2.5, 10.0),), None)


def test_a_damaged_line_does_not_hide_the_rest_of_a_curve(tmp_path):
    path = tmp_path / "metrics.jsonl"
    complete_line = b'{"kind": "train", "step": 20, "tokens_per_second": 100.0, "seconds": 4.0}\n'
    damaged = [b"\x00\xff\n", b'{"kind": "validation", "st\n', b'{"step": 7}\n', b'{"kind": "validation"}\n']
    last = b'{"kind": "validation", "step": 40, "loss": 2.5, "bleu": 10.0, "seconds": 0.5}\n'
    path.write_bytes(complete_line + b"".join(damaged) + last + b'{"kind": "tr')
    assert read_curve_and_speed(path) == ((CurvePoint(40, 4.5, 2.5, 10.0),), 100.0)
    path.unlink()
    assert read_curve_and_speed(path) == ((), None)


def make_system_result():
    return SystemResult(
        key="k",
        translations=("eins", "", "zwei\u2028drei"),
        translation_seconds=0.5,
        output_tokens=7,
        alignment_error=None,
        parameters=10,
        steps=3,
        training_seconds=1.5,
        sentence_translation="eins",
        attention=alignment_map([[0.25, 0.75]], source=["one", "</s>"], target=["eins"]),
    )


def test_a_system_result_is_read_back_whole_or_not_at_all(tmp_path):
    assert read_system_result(tmp_path) is None
    write_system_result(tmp_path, make_system_result())
    stored = read_system_result(tmp_path)
    assert stored.translations == ("eins", "", "zwei\u2028drei")
    assert (stored.key, stored.output_tokens, stored.alignment_error) == ("k", 7, None)
    assert stored.attention.weights.tolist() == [[[[0.25, 0.75]]]]
    (tmp_path / "translations.txt").write_text("eins\n", encoding="utf-8")
    assert read_system_result(tmp_path) is None
    (tmp_path / "outcome.json").write_text("{}", encoding="utf-8")
    assert read_system_result(tmp_path) is None


def test_a_result_of_an_older_format_is_computed_again(tmp_path):
    write_system_result(tmp_path, make_system_result())
    content = read_json_with_checksum(tmp_path / "outcome.json")
    content["pieces"] = content.pop("tokens")  # the old name
    (tmp_path / "outcome.json").write_bytes(json_with_checksum(content))
    assert read_system_result(tmp_path) is None


def test_the_largest_peak_of_all_processes_is_stored(tmp_path):
    assert read_peak_memory(tmp_path) is None
    for peak_bytes in (5, 9, 7):
        write_peak_memory(tmp_path, peak_bytes)
    assert read_peak_memory(tmp_path) == 9
    assert 2**20 < peak_memory() < 2**40


def test_a_result_becomes_json_without_maps_and_a_table_in_markdown():
    row = Row(
        name="a",
        bleu=12.34,
        bleu_interval=(10.0, 14.0),
        p_value=None,
        chrf=30.0,
        alignment_error=None,
        parameters=1234,
        steps=3,
        training_seconds=1.0,
        training_tokens_per_second=None,
        decoding_tokens_per_second=100.0,
        decoding_sentences_per_second=10.0,
        peak_memory_mb=None,
        curve=(CurvePoint(3, None, 2.0, 1.0),),
        bleu_by_length=(1.0, 2.0),
        translation="eins",
        attention=alignment_map([[1.0]], source=["one"], target=["eins"]),
    )
    quarters = quarters_by_length(["one", "one two"])
    result = ComparisonResult(
        (row,), quarters, 2, "one", "nrefs:1", "3 steps", ("text.kind is not the same.",)
    )
    stored = json.loads(json.dumps(result.as_dict(), allow_nan=False))
    assert stored["systems"][0]["curve"] == [{"step": 3, "seconds": None, "loss": 2.0, "bleu": 1.0}]
    assert "attention" not in stored["systems"][0]
    assert stored["quarters"][1] == {"shortest": 2, "longest": 2, "sentences": 1}
    markdown = as_markdown(result)
    assert "| a | 12.3 | 10.0–14.0 | – | 30.0 | – | 1,234 | – | 100 | – |" in markdown
    assert "- text.kind is not the same." in markdown
    assert "| system | 1 word | 2 words |" in markdown
