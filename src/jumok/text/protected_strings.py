"""Whether a text may have an address, a placeholder or `code`: a quick test before patterns are imported."""

from __future__ import annotations

import re

_SIGN = re.compile(r"://|www\.|[@{%`]|\d\.\d")


def may_have_protected(text: str) -> bool:
    return _SIGN.search(text) is not None
