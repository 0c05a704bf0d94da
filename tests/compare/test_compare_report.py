"""The HTML report of a comparison: one page that needs no other file."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from jumok.compare.report import draw_report
from jumok.compare.result import ComparisonResult, CurvePoint, Row, quarters_by_length
from jumok.plots.charts import WIDTH, Series, line_chart
from jumok.plots.heat_map import FONTS
from support.attention_maps import alignment_map

VOID = {"meta"}  # elements of the page that have no end tag


class PageChecker(HTMLParser):
    """Fails if a tag is not closed in order; collects tags, names of attributes, and texts."""

    def __init__(self) -> None:
        super().__init__()
        self.open_tags: list[str] = []
        self.tags: list[str] = []
        self.attribute_names: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag, attributes):
        self.handle_startendtag(tag, attributes)
        if tag not in VOID:
            self.open_tags.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)
        self.attribute_names.extend(name for name, _ in attributes)

    def handle_endtag(self, tag):
        assert self.open_tags.pop() == tag

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
        training_tokens_per_second=10.0,
        decoding_tokens_per_second=100.0,
        decoding_sentences_per_second=10.0,
        peak_memory_mb=300.0,
        curve=curve,
        bleu_by_length=(1.0, 2.0),
        translation="나는 집에 <간다>",
        attention=attention,
    )


def make_page(*rows):
    quarters = quarters_by_length(["one", "one two"])
    return draw_report(ComparisonResult(rows, quarters, 2, "I go & <stay>", "nrefs:1", "3 steps"))


def attention_map(weight):
    return alignment_map([[weight, 0.5]], source=["I", "</s>"], target=["나는"])


def parse_page(page):
    checker = PageChecker()
    checker.feed(page)
    checker.close()
    assert checker.open_tags == []
    return checker


def test_the_page_is_well_formed_and_has_every_system():
    curve = (CurvePoint(10, 1.0, 3.0, 0.0), CurvePoint(20, 2.0, 2.0, 5.0))
    page = make_page(make_row("with <&", attention=attention_map(0.5), curve=curve), make_row("without"))
    checker = parse_page(page)
    text = " ".join(checker.texts)
    assert "with <&" in text
    assert "without: 나는 집에 <간다>" in text
    assert "There is no map: the model has no cross-attention" in text
    assert "I go & <stay>" in text
    assert "12.3" in text
    assert "0.250" in text
    assert checker.tags.count("svg") == 4  # two curves, the bars, one map
    assert checker.tags.count("polyline") == 4  # two systems in each of two charts


def test_the_page_needs_no_other_file_and_has_a_dark_mode():
    page = make_page(make_row("a", attention=attention_map(0.5)), make_row("b", attention=attention_map(1)))
    checker = parse_page(page)
    assert "http" not in page
    assert not {"script", "link", "img", "iframe", "a"} & set(checker.tags)
    assert not {"href", "src", "xlink:href"} & set(checker.attribute_names)
    assert not any(name.startswith("on") for name in checker.attribute_names)
    assert "@import" not in page
    assert "url(" not in page
    assert "prefers-color-scheme: dark" in page
    assert FONTS in page


def ends_of_scales(page):
    """Return the number at the upper end of the scale of each map."""
    legends = page.split('<g class="legend"')[1:]
    return [re.findall(r"<text[^>]*>([^<]*)</text>", legend)[1] for legend in legends]


def test_all_maps_have_the_same_scale():
    page = make_page(make_row("a", attention=attention_map(2.0)), make_row("b", attention=attention_map(1.0)))
    # In both maps the scale ends at 2, the largest weight of all.
    assert ends_of_scales(page) == ["2", "2"]
    brightest, half = (
        re.search(rf'fill="([^"]+)"><title>나는 → I: {weight}</title>', page)
        for weight in ("2.0000", "1.0000")
    )
    assert brightest is not None
    assert half is not None
    assert brightest[1] != half[1]
    # No weight is above 1, so the scale ends at 1.
    small = make_page(make_row("a", attention=attention_map(0.3)), make_row("b"))
    assert "나는 → I: 0.3000" in small
    assert ends_of_scales(small) == ["1"]


def test_curves_are_over_steps_if_a_time_is_missing():
    with_time, without_time = CurvePoint(10, 1.0, 3.0, 0.0), CurvePoint(20, None, 2.0, 5.0)
    assert "over seconds" in make_page(make_row("a", curve=(with_time,)), make_row("b", curve=(with_time,)))
    assert "over steps" in make_page(make_row("a", curve=(with_time,)), make_row("b", curve=(without_time,)))


@pytest.mark.parametrize("points", [(), ((5.0, 0.0),), ((1.0, 2.0), (2.0, 2.0)), ((0.0, -3.0), (9e6, 1e-6))])
def test_curves_of_no_points_one_point_or_extreme_points_stay_inside_the_chart(points):
    chart = line_chart([Series("a", points)], title="t", x_label="steps")
    parse_page(chart)
    assert "nan" not in chart
    for after_cx in chart.split('cx="')[1:]:
        assert 0 <= float(after_cx.partition('"')[0]) <= WIDTH
