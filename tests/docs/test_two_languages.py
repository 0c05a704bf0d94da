"""A page x.md and its Korean page x.ko.md have the same headings, code, formulas, numbers, tables and links.

Korean pages and strings use the Korean words of the glossary in CONTRIBUTING.md.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent.parent
DOCS = PROJECT / "docs"
KOREAN_PAGES = [*sorted(DOCS.glob("**/*.ko.md")), PROJECT / "README.ko.md"]
KOREAN_STRINGS = [
    PROJECT / "src" / "jumok" / "server" / "ui_strings.py",
    *sorted((PROJECT / "src" / "jumok" / "cli" / "korean").glob("*.po")),
    *sorted((PROJECT / "web" / "src").glob("**/*.ts")),
]
"""Files with the Korean strings of the web pages and the command line."""
ENGLISH_ONLY = {"log.md", "renames.md", "python.md"}
"""Records of the project, and the page that is generated from docstrings."""
FENCED = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.M | re.S)
NUMBER = re.compile(r"(?<![A-Za-z\d.])\d+(?:,\d{3})*(?:\.\d+)?(?![A-Za-z\d])")
LARGE_NUMBER = re.compile(r"(\d+(?:\.\d+)?)(?:\s(million)|(만)(?=\s?(?:개|쌍|줄|토큰|픽셀)))")
"""만 means 10,000 or "only": before a counter such as 개, 11만 is 110,000. Elsewhere it may be "only 11"."""
SCALES = {"million": 10**6, "만": 10**4}
WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
FRACTIONS = {"half": 2, "third": 3, "quarter": 4, "sixth": 6, "eighth": 8, "tenth": 10}
CODE_SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
INDENTED = re.compile(r"(?<=\n\n)(?: {4}[^\n]*\n)+")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
WRONG_WORDS = {
    r"빔\s+서치": "빔 탐색",
    r"크로스\s+어텐션": "교차 어텐션",
    r"측도": "중요도 지표",
    r"워밍업": "웜업",
    r"히트\s+맵": "히트맵",
    r"그리디": "탐욕 탐색",
    r"참조\s+번역": "정답",
    r"‖값‖": "‖밸류‖",
    r"scaled[ -]dot[ -]product\s+어텐션": "스케일드 닷 프로덕트",
    r"바이어스": "편향",
    r"은닉\s+레이어": "은닉층",
    r"오리진": "출처",
    r"(?<!저)마다의": "별",
}
"""Patterns of Korean words that must not be used → the word of the glossary in CONTRIBUTING.md instead."""


def parts(page: Path) -> dict[str, list[str]]:
    """Return the parts of a page that must be the same in both languages."""
    text = page.read_text(encoding="utf-8")
    code = [f"{language}\n{remove_comments(body)}" for language, body in FENCED.findall(text)]
    prose = FENCED.sub("", text)
    prose = re.sub(r"<!--.*?-->", "", prose, flags=re.S)
    return {
        "headings": re.findall(r"^#+", prose, re.M),
        "code and formulas": code,
        "code and formulas in text": sorted({" ".join(span.split()) for span in CODE_SPAN.findall(prose)}),
        "indented code": [first_column(line) for line in "".join(INDENTED.findall(prose)).split("\n")],
        "numbers": sorted(set(NUMBER.findall(with_digits(LINK.sub(" ", prose))))),
        "targets of links": sorted(without_language(target) for target in LINK.findall(prose)),
        "table rows": [str(line.count("|")) for line in prose.split("\n") if line.startswith("|")],
    }


def korean_page(english: Path) -> Path:
    return english.with_name(f"{english.stem}.ko.md")


def first_column(line: str) -> str:
    """Return the code of an indented line. Text after two or more spaces may be translated."""
    return re.split(r" {2,}", line.strip())[0]


def with_digits(prose: str) -> str:
    """Write large numbers in digits, so that 1.2 million and 120만 become the same number."""

    def digits(match: re.Match[str]) -> str:
        return f"{float(match[1]) * SCALES[match[2] or match[3]]:,.0f} "

    return LARGE_NUMBER.sub(digits, prose)


def numbers_in_words(english: Path) -> set[str]:
    """Return the numbers that an English page has as words. The Korean page may have digits: 5분."""
    words = set(re.findall(r"[a-z]+", english.read_text(encoding="utf-8").lower()))
    integers = {str(value) for value, word in enumerate(WORDS, 1) if word in words}
    return integers | {
        part for word, value in FRACTIONS.items() if word in words for part in ("1", str(value))
    }


def remove_comments(code: str) -> str:
    return re.sub(r"[ \t]*(?<!\S)#.*", "", code)


def without_language(target: str) -> str:
    return target.replace(".ko.", ".").partition("#")[0]


def test_every_page_is_in_both_languages() -> None:
    english = {page for page in DOCS.glob("**/*.md") if not page.name.endswith(".ko.md")}
    untranslated = {page for page in english if not korean_page(page).exists()}
    assert {str(page.relative_to(DOCS)) for page in untranslated} == ENGLISH_ONLY


@pytest.mark.parametrize("korean", KOREAN_PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_a_korean_page_has_the_same_parts_as_the_english_page(korean: Path) -> None:
    english = korean.with_name(korean.name.replace(".ko.md", ".md"))
    actual, expected = parts(korean), parts(english)
    # A number that the English page has only as a word does not count on the Korean page.
    only_in_words = numbers_in_words(english) - set(expected["numbers"])
    actual["numbers"] = [number for number in actual["numbers"] if number not in only_in_words]
    for part in expected:
        assert actual[part] == expected[part], f"{part} of {korean.name} differ from those of {english.name}"


@pytest.mark.parametrize("korean", KOREAN_PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_a_korean_page_links_to_korean_pages(korean: Path) -> None:
    """Where a Korean page exists, a link from a Korean page leads to it."""
    for target in LINK.findall(korean.read_text(encoding="utf-8")):
        path = korean.parent / target.partition("#")[0]
        if path.suffix == ".md" and not path.name.endswith(".ko.md") and korean_page(path) != korean:
            assert not korean_page(path).exists(), f"{target} has a Korean page"


@pytest.mark.parametrize(
    "korean", [*KOREAN_PAGES, *KOREAN_STRINGS], ids=lambda page: str(page.relative_to(PROJECT))
)
def test_korean_uses_the_words_of_the_glossary(korean: Path) -> None:
    text = korean.read_text(encoding="utf-8")
    mistakes = {match[0]: word for wrong, word in WRONG_WORDS.items() for match in re.finditer(wrong, text)}
    assert mistakes == {}


@pytest.mark.parametrize("korean", KOREAN_PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_a_korean_page_does_not_link_to_itself_by_name(korean: Path) -> None:
    """Its link to the English page must lead to x.md; a translator may have changed it to x.ko.md."""
    targets = [target.partition("#")[0] for target in LINK.findall(korean.read_text(encoding="utf-8"))]
    assert korean.name not in [target for target in targets if "/" not in target]


def test_differences_are_detected(tmp_path: Path) -> None:
    english, korean = tmp_path / "x.md", tmp_path / "x.ko.md"
    english.write_text("# A\n\n3 $`W_Q`$ in 1.2 million.\n\n```py\nprint(1)  # one\n```\n", encoding="utf-8")
    korean.write_text("# 가\n\n120만 개 중 $`W_Q`$ 3개.\n\n```py\nprint(1)  # 하나\n```\n", encoding="utf-8")
    assert parts(english) == parts(korean)
    korean.write_text("# 가\n\n12만 개 중 $`W_K`$ 3개.\n\n```py\nprint(2)\n```\n", encoding="utf-8")
    different_parts = {part for part, value in parts(korean).items() if value != parts(english)[part]}
    assert different_parts == {"code and formulas", "code and formulas in text", "numbers"}


def test_numbers_in_words_and_fractions_are_found(tmp_path: Path) -> None:
    english = tmp_path / "x.md"
    english.write_text("Five minutes, a tenth of the rate.", encoding="utf-8")
    assert numbers_in_words(english) == {"5", "1", "10"}
