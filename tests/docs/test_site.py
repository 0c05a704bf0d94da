"""The site of docs/ is built without a warning, and no page loads anything from another host."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

PROJECT = Path(__file__).parent.parent.parent
LANGUAGES = {"en": ".", "ko": "ko"}
"""Language → folder of its pages in the site."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("furo", reason="the extra `docs` is not installed")
    folder = tmp_path_factory.mktemp("site")
    for language, subfolder in LANGUAGES.items():
        command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-c", "docs/site"]
        command += [
            "-d",
            str(folder / f".{language}"),
            "-D",
            f"language={language}",
            "docs",
            str(folder / subfolder),
        ]
        result = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr[-3000:]
    return folder


@pytest.mark.medium
def test_both_languages_are_built_and_their_pages_load_and_link_only_files_that_exist(site: Path) -> None:
    pages = sorted(site.glob("**/*.html"))
    assert len(pages) > 80
    for page in pages:
        text = page.read_text(encoding="utf-8")
        expected = 'lang="ko"' if (site / "ko") in page.parents else 'lang="en"'
        assert expected in text[:200], page
        resources = re.findall(r'<(?:script|img|iframe)[^>]*\ssrc="([^"]*)"', text)
        resources += re.findall(r'<link[^>]*\shref="([^"]*)"', text)
        resources = [address for address in resources if not address.startswith("data:")]
        assert not [address for address in resources if "//" in address], page
        for address in (*resources, *re.findall(r'<a[^>]*\shref="([^"#:?]+)[#?"]', text)):
            target = page.parent / unquote(address.partition("?")[0].partition("#")[0])
            assert target.exists(), f"{page.relative_to(site)} leads to {address}, which does not exist"


@pytest.mark.medium
def test_formulas_are_mathml(site: Path) -> None:
    text = (site / "explain" / "before-attention.html").read_text(encoding="utf-8")
    assert text.count("<mtr>") >= 6  # one per equation of the LSTM
    for page in site.glob("**/explain/*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"\\(?:frac|begin|tanh|mathrm|mid)\b|\$<code|\$`", text), page
        assert "<mi>&</mi>" not in text, page  # & aligns equations; it must not be shown as a symbol


@pytest.mark.medium
def test_emphasis_is_rendered(site: Path) -> None:
    """In Markdown, the second ** of `**−∞**는` does not end the emphasis, so the asterisks would be shown."""
    for page in sorted(site.glob("ko/**/*.ko.html")):
        text = page.read_text(encoding="utf-8")
        prose = re.sub(r"<(pre|code|script|style|math)\b.*?</\1>", "", text, flags=re.S)
        assert "**" not in prose, f"{page.relative_to(site)}: {prose[prose.index('**') :][:80]}"
