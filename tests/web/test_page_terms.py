"""The glossary of the page links to pages of the docs, and these pages exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_page_that_the_glossary_links_to_exists() -> None:
    source = (ROOT / "web" / "src" / "lib" / "glossary.ts").read_text(encoding="utf-8")
    pages = re.findall(r'page: "([^"]+)"', source)
    assert len(pages) >= 20
    # In Korean, the page links to the Korean versions of these pages.
    pages += [page.replace(".md", ".ko.md") for page in pages]
    assert [page for page in pages if not (ROOT / "docs" / page).is_file()] == []
