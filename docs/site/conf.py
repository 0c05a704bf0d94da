"""The site of docs/, one build per language: x.md in English, x.ko.md in Korean. `make docs` builds both.

sphinx-build -c docs/site docs site              English
sphinx-build -c docs/site docs site/ko -D language=ko
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

project = "jumok"
copyright = "the jumok authors"  # noqa: A001
html_title = "jumok · 주목"
extensions = ["myst_parser", "mathml", "pages"]
exclude_patterns = ["site", "**/*.py", "notebooks"]
myst_fence_as_directive = ["math"]  # ```math is a formula, as on code hosts
myst_heading_anchors = 4
html_theme = "furo"
html_math_renderer = "mathml"
html_static_path = ["static"]
html_css_files = ["book.css"]
html_js_files = ["figures.js"]
templates_path = ["templates"]
html_copy_source = False
html_show_sphinx = False
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "language.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
