"""The page on which attention is watched: one HTML file with everything in it, so that it can be mailed.

`page.html` is built from `web/` and stored ready to use. Its data stand in it as JSON, which no browser runs.
"""

from __future__ import annotations

import html
import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from jumok.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["framed_page", "frozen_page", "page_with"]

_EMPTY = '<script type="application/json" id="jumok-data">{}</script>'


def frozen_page(explanations: Sequence[str]) -> str:
    """The page with these explanations in it, each as the JSON that `Explanation.to_json` gives."""
    if not explanations:
        raise DataError("A page shows at least one explanation. Received: none.")
    return _filled(f'{{"explanations":[{",".join(text.strip() for text in explanations)}]}}')


def page_with(data: dict[str, Any]) -> str:
    """The page with other data in it: what a live page needs to ask its program."""
    return _filled(json.dumps(data, ensure_ascii=False))


def framed_page(page: str, *, height: int = 760) -> str:
    """The page as part of another one, a notebook's cell say: pages in frames do not see each other."""
    return (
        f'<iframe srcdoc="{html.escape(page)}" sandbox="allow-scripts allow-downloads" '
        f'style="width: 100%; height: {height}px; border: 0" title="jumok"></iframe>'
    )


def _filled(data: str) -> str:
    template = files("jumok.look").joinpath("page.html").read_text(encoding="utf-8")
    if template.count(_EMPTY) != 1:
        raise DataError(
            "The page of this installation is damaged: it has no place for data. Install jumok again."
        )
    # In JSON, "<" stands in strings only, where it may be written so: then nothing ends the script early.
    return template.replace(_EMPTY, _EMPTY.replace("{}", data.replace("<", "\\u003c")))
