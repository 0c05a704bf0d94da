"""The codes of a segment, and their positions in a translation from a translation memory."""

from __future__ import annotations

import pickle

import pytest

from jumok.documents.message import Message, has_all_placeholders
from jumok.documents.segment_codes import TextWithCodes, split_at_codes


def segment_of(message: str) -> TextWithCodes:
    [text] = Message(message).segments
    assert isinstance(text, TextWithCodes)
    return text


@pytest.mark.parametrize(
    "message",
    [
        "{a} and {b}",
        "<b>x {a}</b> y",
        "Read <a>this <i>now</i></a>!",
        "a <1>b</1><2>c</2>",
        " {a} {b}, c ",
        "<b></b>x",
    ],
)
def test_a_segment_with_its_codes_is_the_message(message: str) -> None:
    segment = segment_of(message)
    assert segment.with_codes == message
    pieces = split_at_codes(segment, segment.with_codes)
    assert pieces is not None
    written = [piece if isinstance(piece, str) else segment.codes[piece].text for piece in pieces]
    assert "".join(written) == segment.with_codes


@pytest.mark.parametrize(
    ("source", "target", "pieces"),
    [
        ("a {x} b {y}", "{y} 나 {x} 가", [1, " 나 ", 0, " 가"]),
        ("%s of %s", "%s / %s", [0, " / ", 1]),
        ("<b>a</b> <b>{x}</b>", "<b>{x}</b> <b>가</b>", [0, 3, 1, " ", 2, "가", 4]),
        ("{a} {ab} x", "{ab} {a} 엑스", [1, " ", 0, " 엑스"]),
        ("a {x}", "가", None),
        ("a {x}", "가 {y}", None),
        ("a {x}", "가 {x} {x}", None),
        ("a <b>b</b>", "가 </b>나<b>", None),
        ("a <b>b <i>c</i></b>", "<b>가 <i>나</b></i>", None),
    ],
)
def test_a_target_is_split_at_its_codes_if_it_has_all_codes_of_the_source(
    source: str, target: str, pieces: list[str | int] | None
) -> None:
    """In `pieces`, a number is the index of a code in the source. None means that the codes do not fit."""
    assert split_at_codes(segment_of(source), target) == pieces


def test_a_plural_form_has_codes_but_the_text_around_a_choice_has_none() -> None:
    [form, around] = Message("{n, plural, other {# files}} in {place}").segments
    assert isinstance(form, TextWithCodes)
    assert form.with_codes == "# files"
    assert type(around) is str


def test_another_process_receives_the_text_without_codes() -> None:
    assert type(pickle.loads(pickle.dumps(segment_of("{a} and {b}")))) is str


def test_a_translation_must_have_all_placeholders_of_its_source() -> None:
    assert has_all_placeholders("%1$s and {x}", "{x} 및 %1$s")
    assert not has_all_placeholders("%1$s and {x}", "{x} 및")
    assert not has_all_placeholders("%d%% of %s", "%d%%")
    assert has_all_placeholders("20%off, 100% sure", "20% 할인, 100% 확실")
    assert has_all_placeholders("{n, plural, other {# files}}", "{n, plural, other {#개 파일}}")
