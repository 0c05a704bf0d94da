"""A quick test whether a text may contain an address, a placeholder or `code`.

The exact patterns are in `glossary.py`.
"""

from __future__ import annotations

import re

_POSSIBLE_SIGN = re.compile(r"://|www\.|[@{%`]|\d\.\d")


def may_have_protected(text: str) -> bool:
    return _POSSIBLE_SIGN.search(text) is not None
