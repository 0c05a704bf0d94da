"""The pages of each language, their order, links to other files, and the link to the other language.

The English build also writes live.html: the page of `jumok look`, with the model of the interactive figures
in it. Pages of the course (docs/explain/) link to the panel of live.html that shows their idea.
"""

from __future__ import annotations

import json
import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from navigation import ENGLISH_ONLY, SECTIONS

from jumok.plots.page import live_file_page

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.config import Config

LINK = re.compile(r"(?<!!)\[(?P<text>[^\]\n]*)\]\((?P<target>[^)\s:#]+)(?P<anchor>#[^)\s]*)?\)")
PANEL_PARAGRAPH = re.compile(r"^\*\*(?:On the page|페이지에서)\.\*\*.*(?:\n.+)*", re.MULTILINE)
PANELS = {
    "sequence-to-sequence": "panel=attention",
    "look-up": "panel=attention",
    "self-attention": "panel=attention&site=encoder&show=head&layer=0",
    "scaled-dot": "panel=steps",
    "multi-head": "panel=attention&part=heads",
    "masks": "panel=steps&cell=decoder,0,0,1,0",
    "positions": "panel=steps",
    "block": "panel=steps",
    "decoder-and-training": "panel=beam",
    "graph": "panel=attention&site=encoder&show=roll-out",
}
"""Page of docs/explain/ → fragment of the address of live.html that opens the panel with the page's idea."""
OPEN = {"en": "Open it here.", "ko": "여기서 열어 보세요."}
MODEL = Path(__file__).parent / "static" / "model.js"
KOREAN = ".ko"


def choose_pages(app: Sphinx, config: Config) -> None:
    """Choose the pages of a language. The Korean site uses the English page if there is no Korean page."""
    if config.language == "ko":
        config.root_doc = f"index{KOREAN}"
        folder = Path(app.srcdir)
        translated = [path.relative_to(folder) for path in folder.glob(f"**/*{KOREAN}.md")]
        config.exclude_patterns += [str(path).replace(f"{KOREAN}.md", ".md") for path in translated]
    else:
        config.exclude_patterns.append(f"**{KOREAN}.md")


def resolve_links(app: Sphinx, name: str, source: list[str]) -> None:
    """Link to pages in the language of the site; a link to any other file becomes text that names it."""

    def resolve(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(name), match["target"]))
        english = path.replace(f"{KOREAN}.md", ".md")
        korean = english.removesuffix(".md") + f"{KOREAN}.md"
        pages = [korean, english] if app.config.language == "ko" else [english]
        for page in pages:
            if page.removesuffix(".md") in app.env.found_docs:
                target = posixpath.relpath(page, posixpath.dirname(name) or ".")
                # In the other language, the same heading has another anchor.
                anchor = (match["anchor"] or "") if page == path else ""
                return f"[{match['text']}]({target}{anchor})"
        return f"{match['text']} (`{posixpath.normpath(posixpath.join('docs', path))}`)"

    source[0] = LINK.sub(resolve, source[0])


def link_panels(app: Sphinx, name: str, source: list[str]) -> None:
    """Add a link to live.html to the paragraph that names the panel: **On the page.** or **페이지에서.**"""
    language, page = app.config.language, name.removeprefix("explain/").removesuffix(KOREAN)
    if page in PANELS:
        up = "../../" if language == "ko" else "../"
        link = f'<a href="{up}live.html#{PANELS[page]}&language={language}">{OPEN[language]}</a>'
        source[0] = PANEL_PARAGRAPH.sub(lambda match: f"{match[0]}\n{link}", source[0])


def write_live_page(app: Sphinx, error: Exception | None) -> None:
    """Write the page with the model of the figures in it. Its terms and panels link to this site."""
    if error is not None or app.config.language == "ko":
        return
    model = json.loads(MODEL.read_text(encoding="utf-8").removeprefix("window.jumokModel=").rstrip(";\n"))
    models = [{"name": "jumok demo", "facts": model["description"]["facts"]}]
    page = live_file_page(
        {"live": {"models": models, "run": False, "sentence": "I go home."}, "docs": "./"},
        model=json.dumps(model["description"], ensure_ascii=False, separators=(",", ":")),
        weights=model["weights"],
    )
    (Path(app.outdir) / "live.html").write_text(page, encoding="utf-8")


def korean_entry(page: str) -> str:
    """The entry of a page in the Korean navigation."""
    return f"{ENGLISH_ONLY[page]} <{page}>" if page in ENGLISH_ONLY else f"{page}{KOREAN}"


def add_navigation(app: Sphinx, name: str, source: list[str]) -> None:
    """Append the navigation to the first page.

    It is not in the file of the page, because code hosts would show it there as text.
    """
    if name != app.config.root_doc:
        return
    korean = app.config.language == "ko"
    for english_caption, korean_caption, pages in SECTIONS:
        names = [korean_entry(page) for page in pages] if korean else pages
        caption = korean_caption if korean else english_caption
        source[0] += (
            "\n\n" + "\n".join(("```{toctree}", ":hidden:", f":caption: {caption}", *names, "```")) + "\n"
        )


def link_other_language(app: Sphinx, name: str, template: str, context: dict[str, Any], tree: object) -> None:
    """Give templates/language.html the other language: its code, its name, and the address of the page."""
    up = "../" * name.count("/")
    if app.config.language == "ko":
        context["other_language"] = ("en", "English", f"{up}../{name.removesuffix(KOREAN)}.html")
    else:
        has_korean = (Path(app.srcdir) / f"{name}{KOREAN}.md").is_file()
        context["other_language"] = ("ko", "한국어", f"{up}ko/{name}{KOREAN if has_korean else ''}.html")


def make_accessible(app: Sphinx, name: str, template: str, context: dict[str, Any], tree: object) -> None:
    """Let keyboards reach code and tables that scroll; give captions of the navigation a heading level."""
    if "body" in context:
        body = context["body"].replace("<pre>", '<pre tabindex="0">')
        context["body"] = body.replace('<div class="table-wrapper', '<div tabindex="0" class="table-wrapper')
    navigation = context.get("furo_navigation_tree")
    if navigation:
        context["furo_navigation_tree"] = navigation.replace(
            'role="heading"', 'role="heading" aria-level="2"'
        )


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("config-inited", choose_pages)
    app.connect("source-read", link_panels)
    app.connect("source-read", resolve_links)
    app.connect("source-read", add_navigation)
    app.connect("html-page-context", link_other_language)
    app.connect("html-page-context", make_accessible, priority=900)  # after the theme
    app.connect("build-finished", write_live_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
