"""The page that shows attention: one self-contained HTML file, which can be mailed.

`page.html` is built from `web/` and stored ready to use. Data are embedded as JSON, which no browser runs.
"""

from __future__ import annotations

import html
import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from jumok.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["iframe", "page_with_data", "static_page"]

_DATA_ELEMENT = '<script type="application/json" id="jumok-data">{}</script>'


def static_page(explanations: Sequence[str]) -> str:
    """Return the page with these explanations, each as the JSON of `explanation_to_json`."""
    if not explanations:
        raise DataError("A page shows at least one explanation. Received: none.")
    return _fill_template(f'{{"explanations":[{",".join(text.strip() for text in explanations)}]}}')


def page_with_data(data: dict[str, Any]) -> str:
    """Return the page with other data: what a live page needs to send requests to its server."""
    return _fill_template(json.dumps(data, ensure_ascii=False))


def iframe(page: str, *, height: int = 760) -> str:
    """Return the page in an iframe, for example for a notebook cell. Pages in iframes are isolated."""
    return (
        f'<iframe srcdoc="{html.escape(page)}" sandbox="allow-scripts allow-downloads" '
        f'style="width: 100%; height: {height}px; border: 0" title="jumok"></iframe>'
    )


def _fill_template(data: str) -> str:
    template = files("jumok.plots").joinpath("page.html").read_text(encoding="utf-8")
    if template.count(_DATA_ELEMENT) != 1:
        raise DataError(
            "The page of this installation is damaged: it has no element for data. Install jumok again."
        )
    # In JSON, "<" occurs in strings only. Escaped, it cannot end the script element early.
    return template.replace(_DATA_ELEMENT, _DATA_ELEMENT.replace("{}", data.replace("<", "\\u003c")))
