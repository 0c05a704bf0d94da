"""Formulas as MathML, which browsers draw themselves: no script, no font to fetch."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from docutils import nodes
from latex2mathml.converter import convert

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.writers.html5 import HTML5Translator


INLINE = re.compile(r"\$`([^`\n]+)`\$")


def read_inline(app: Sphinx, name: str, source: list[str]) -> None:
    """Replace $`x`$, which code hosts show as a formula even next to Hangul, by the form that MyST reads."""
    source[0] = INLINE.sub(r"{math}`\1`", source[0])


def inline_formula(writer: HTML5Translator, node: nodes.math) -> None:
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def displayed_formula(writer: HTML5Translator, node: nodes.math_block) -> None:
    formula = node.astext().replace("{aligned}", "{align*}")  # the converter knows align*, but not aligned
    writer.body.append('<div class="formula">' + convert(formula, display="block") + "</div>")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (inline_formula, None), (displayed_formula, None))
    app.connect("source-read", read_inline)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
