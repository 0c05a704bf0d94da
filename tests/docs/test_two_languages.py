"""A page x.md and its Korean page x.ko.md have the same parts, formulas, numbers and code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent.parent
KOREAN_PAGES = sorted((PROJECT / "docs").glob("**/*.ko.md"))
FENCED = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.M | re.S)
NUMBER = re.compile(r"(?<![A-Za-z\d.])\d+(?:,\d{3})*(?:\.\d+)?(?![A-Za-z\d])")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def parts(page: Path) -> dict[str, list[str]]:
    """What must not differ between the languages."""
    text = page.read_text(encoding="utf-8")
    code = [f"{language}\n{remove_comments(body)}" for language, body in FENCED.findall(text)]
    prose = FENCED.sub("", text)
    prose = re.sub(r"<!--.*?-->", "", prose, flags=re.S)
    return {
        "headings": re.findall(r"^#+", prose, re.M),
        "code and formulas": code,
        "numbers": sorted(set(NUMBER.findall(LINK.sub(" ", prose)))),
        "targets of links": sorted(without_language(target) for target in LINK.findall(prose)),
        "table rows": [str(line.count("|")) for line in prose.split("\n") if line.startswith("|")],
    }


def remove_comments(code: str) -> str:
    return re.sub(r"[ \t]*(?<!\S)#.*", "", code)


def without_language(target: str) -> str:
    return target.replace(".ko.", ".").partition("#")[0]


@pytest.mark.parametrize("korean", KOREAN_PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_a_korean_page_says_what_the_english_one_says(korean: Path) -> None:
    english = korean.with_name(korean.name.replace(".ko.md", ".md"))
    found, expected = parts(korean), parts(english)
    for what in expected:
        assert found[what] == expected[what], f"{what} of {korean.name} differ from those of {english.name}"


@pytest.mark.parametrize("korean", KOREAN_PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_a_korean_page_links_to_korean_pages(korean: Path) -> None:
    """Where a Korean page exists, a link from a Korean page leads to it."""
    for target in LINK.findall(korean.read_text(encoding="utf-8")):
        path = korean.parent / target.partition("#")[0]
        if target.endswith(".md") and not target.endswith(".ko.md"):
            assert not path.with_name(path.name.replace(".md", ".ko.md")).exists(), (
                f"{target} has a Korean page"
            )


def test_differences_are_seen(tmp_path: Path) -> None:
    english, korean = tmp_path / "x.md", tmp_path / "x.ko.md"
    english.write_text("# A\n\n3 words and 0.5.\n\n```python\nprint(1)  # one\n```\n", encoding="utf-8")
    korean.write_text("# 가\n\n단어 3개와 0.5.\n\n```python\nprint(1)  # 하나\n```\n", encoding="utf-8")
    assert parts(english) == parts(korean)
    korean.write_text("# 가\n\n단어 3개와 0.6.\n\n```python\nprint(2)\n```\n", encoding="utf-8")
    differing = {what for what, value in parts(korean).items() if value != parts(english)[what]}
    assert differing == {"code and formulas", "numbers"}
