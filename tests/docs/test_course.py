"""Every page of the course (docs/explain) has every element of `ELEMENTS`, in both languages."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent.parent
EXPLAIN = PROJECT / "docs" / "explain"
COURSE: tuple[str, ...] = runpy.run_path(str(PROJECT / "docs" / "site" / "navigation.py"))["COURSE"]

ELEMENTS = {
    "question": (r"^\*\*The question\.\*\* .*\?", r"^\*\*질문\.\*\* "),
    "idea": (r"^\*\*The idea\.\*\* ", r"^\*\*핵심 아이디어\.\*\* "),
    "picture": (r"^!\[.+\]\([./]*pictures/[\w.-]+\)", r"^!\[.+\]\([./]*pictures/[\w.-]+\)"),
    "formula": (r"^```math$|\| n²·d \|", r"^```math$|\| n²·d \|"),
    "paper": (r"\w+ (?:et al\.|& \w+)", r"\w+ (?:et al\.|& \w+)"),
    "numbers by hand": (r"(?i)by hand|\d = \*?\*?\d", r"손으로|\d = \*?\*?\d"),
    "code": (r"^```python$", r"^```python$"),
    "panel": (
        r"^\*\*On the page\.\*\* .*\.\./page\.md#",
        r"^\*\*페이지에서\.\*\* .*\.\./page\.ko\.md#",
    ),
    "common mistakes": (r"^## Common mistakes$", r"^## 흔한 오해$"),
    "exercise": (r"^## Exercise$", r"^## 연습 문제$"),
    "answer": (r"^<summary>Answer</summary>$", r"^<summary>정답</summary>$"),
}
"""Patterns of each element on an English page and on a Korean page. A table of costs counts as a formula."""


@pytest.mark.parametrize("language", ["en", "ko"])
@pytest.mark.parametrize("page", COURSE)
def test_a_page_of_the_course_has_every_element(page: str, language: str) -> None:
    text = (EXPLAIN / f"{page}{'.ko' if language == 'ko' else ''}.md").read_text(encoding="utf-8")
    patterns = {name: korean if language == "ko" else english for name, (english, korean) in ELEMENTS.items()}
    missing = [name for name, pattern in patterns.items() if not re.search(pattern, text, re.M)]
    assert missing == []
