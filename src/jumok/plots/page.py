"""The page that shows attention: one self-contained HTML file, which can be mailed.

`page.html` and `engine.js` are built from `web/` and stored ready to use. `engine.js` runs a model in the
browser, and is embedded only in live files, which contain a model. Data are embedded as JSON or base64, which
a browser does not execute. The content security policy in the page allows only the page's own script and
style, and in a live file also the worker in which the engine runs. A page that a server delivers may send
requests to that server; a page in a file may not send any requests.

The environment variable JUMOK_DOCS has the address of the documentation that `make docs` built. If it is set,
the panels and terms of the page link to the documentation.
"""

from __future__ import annotations

import html
import json
import os
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from jumok.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

_DATA_ELEMENT = '<script type="application/json" id="jumok-data">{}</script>'
_SERVED_POLICY, _FILE_POLICY = "connect-src 'self'", "connect-src 'none'"
DOCS_VARIABLE, DOCS_SCHEMES = "JUMOK_DOCS", ("http://", "https://", "file://")
_LIVE_FILE_POLICY = "connect-src 'none'; worker-src blob:"  # the engine runs in a worker


def static_page(explanations: Sequence[str]) -> str:
    """Return the page with these explanations, each as the JSON of `explanation_to_json`."""
    if not explanations:
        raise DataError("A page shows at least one explanation. Received: none.")
    docs = f',"docs":{json.dumps(address)}' if (address := docs_address()) else ""
    data = f'{{"explanations":[{",".join(text.strip() for text in explanations)}]{docs}}}'
    return _fill_template(_data_element(data), _FILE_POLICY)


def served_page(data: dict[str, Any]) -> str:
    """Return the page that a server delivers. `data` has the facts that its requests to the server need."""
    return _fill_template(_data_element(_with_docs(data)), _SERVED_POLICY)


def live_file_page(data: dict[str, Any], *, model: str, weights: str) -> str:
    """Return the page with a model that runs in the page.

    `model` is the description of the model as JSON, and `weights` are its weights in base64.
    """
    elements = (
        _data_element(_with_docs(data)),
        f'<script type="application/json" id="jumok-model">{_escape(model)}</script>',
        f'<script type="text/plain" id="jumok-weights">{weights}</script>',
        f'<script type="text/plain" id="jumok-engine">{_read("engine.js")}</script>',
    )
    return _fill_template("\n    ".join(elements), _LIVE_FILE_POLICY)


def docs_address() -> str:
    """Return the address of the documentation, ending in "/", or "" if none is set."""
    address = os.environ.get(DOCS_VARIABLE, "")
    if address and not address.startswith(DOCS_SCHEMES):
        raise DataError(
            f"{DOCS_VARIABLE} is the address of the documentation and begins with "
            f"{', '.join(DOCS_SCHEMES[:-1])} or {DOCS_SCHEMES[-1]}. Received: {address}. "
            "For a folder: file:// and its whole path."
        )
    return address.rstrip("/") + "/" if address else ""


def iframe(page: str, *, height: int = 760) -> str:
    """Return the page in a sandboxed iframe, for example for a notebook cell."""
    return (
        f'<iframe srcdoc="{html.escape(page)}" sandbox="allow-scripts allow-downloads" '
        f'style="width: 100%; height: {height}px; border: 0" title="jumok"></iframe>'
    )


def _with_docs(data: dict[str, Any]) -> str:
    docs = {"docs": address} if (address := docs_address()) else {}
    return json.dumps(docs | data, ensure_ascii=False)


def _data_element(data: str) -> str:
    return _DATA_ELEMENT.replace("{}", _escape(data))


def _escape(text: str) -> str:
    """Escape "<" in JSON, so that it cannot end its script element early.

    In JSON, "<" occurs only in strings, where an escape has the same meaning.
    """
    return text.replace("<", "\\u003c")


def _fill_template(elements: str, policy: str) -> str:
    template = _read("page.html")
    if template.count(_DATA_ELEMENT) != 1 or template.count(_SERVED_POLICY) != 1:
        raise DataError(
            "The page of this installation is damaged: it has no element for data, or no policy. Install "
            "jumok again."
        )
    return template.replace(_SERVED_POLICY, policy).replace(_DATA_ELEMENT, elements)


def _read(name: str) -> str:
    return files("jumok.plots").joinpath(name).read_text(encoding="utf-8")
