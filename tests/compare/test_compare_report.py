"""The report: one page that stands alone."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from jumok.compare import CurvePoint, Result, Row, draw_report
from jumok.compare.charts import Series, line_chart
from jumok.compare.result import quarters_by_length
from jumok.look import alignment_map
from jumok.look.heat_map import FONTS

VOID = {"meta"}


class Checked(HTMLParser):
    """Fails on a tag that is not closed in its turn; collects what stands in the page."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag, attributes):
        self.handle_startendtag(tag, attributes)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes.extend(name for name, _ in attributes)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def make_row(name, *, attention=None, curve=()):
    return Row(
        name=name,
        bleu=12.34,
        bleu_interval=(10.0, 14.0),
        p_value=0.25,
        chrf=30.0,
        alignment_error=0.5,
        parameters=1234,
        steps=3,
        training_seconds=1.0,
        training_tokens=10.0,
        decoding_pieces=100.0,
        decoding_sentences=10.0,
        peak_memory=300.0,
        curve=curve,
        bleu_by_length=(1.0, 2.0),
        translation="나는 집에 <간다>",
        attention=attention,
    )


def make_page(*rows):
    quarters = quarters_by_length(["one", "one two"])
    return draw_report(Result(rows, quarters, 2, "I go & <stay>", "nrefs:1", "3 steps"))


def attention_map(weight):
    return alignment_map([[weight, 0.5]], source=["I", "</s>"], target=["나는"])


def parsed(page):
    checked = Checked()
    checked.feed(page)
    checked.close()
    assert checked.open == []
    return checked


def test_the_page_is_well_formed_and_holds_every_contender():
    curve = (CurvePoint(10, 1.0, 3.0, 0.0), CurvePoint(20, 2.0, 2.0, 5.0))
    page = make_page(make_row("with <&", attention=attention_map(0.5), curve=curve), make_row("without"))
    checked = parsed(page)
    said = " ".join(checked.texts)
    assert "with <&" in said
    assert "without: 나는 집에 <간다>" in said
    assert "It has no attention to its source." in said
    assert "I go & <stay>" in said
    assert "12.3" in said
    assert "0.250" in said
    assert checked.tags.count("svg") == 4, "two curves, the bars, one map"
    assert checked.tags.count("polyline") == 4


def test_the_page_stands_alone_and_reads_in_the_dark():
    page = make_page(make_row("a", attention=attention_map(0.5)), make_row("b", attention=attention_map(1)))
    checked = parsed(page)
    assert "http" not in page
    assert not {"script", "link", "img", "iframe", "a"} & set(checked.tags)
    assert not {"href", "src", "xlink:href"} & set(checked.attributes)
    assert not any(name.startswith("on") for name in checked.attributes)
    assert "@import" not in page
    assert "url(" not in page
    assert "prefers-color-scheme: dark" in page
    assert FONTS in page


def test_all_maps_have_one_scale():
    page = make_page(make_row("a", attention=attention_map(2.0)), make_row("b", attention=attention_map(1.0)))
    assert page.count("white: 2") == 2
    assert "I → 나는: 1.0000" in page
    assert "I → 나는: 0.5000" in page
    plain = make_page(make_row("a", attention=attention_map(0.3)), make_row("b"))
    assert "I → 나는: 0.3000" in plain
    assert "white:" not in plain.partition("</style>")[2]


def test_curves_go_over_steps_where_a_time_is_missing():
    timed, untimed = CurvePoint(10, 1.0, 3.0, 0.0), CurvePoint(20, None, 2.0, 5.0)
    assert "over seconds" in make_page(make_row("a", curve=(timed,)), make_row("b", curve=(timed,)))
    assert "over steps" in make_page(make_row("a", curve=(timed,)), make_row("b", curve=(untimed,)))


@pytest.mark.parametrize("points", [(), ((5.0, 0.0),), ((1.0, 2.0), (2.0, 2.0)), ((0.0, -3.0), (9e6, 1e-6))])
def test_odd_curves_are_drawn_inside_the_chart(points):
    chart = line_chart([Series("a", points)], title="t", across="steps")
    parsed(chart)
    assert "nan" not in chart
    for part in chart.split('cx="')[1:]:
        assert 0 <= float(part.partition('"')[0]) <= 540
