"""Read the README of an imported model, and its licence, which is in the README or in the file LICENSE."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jumok.interop.package import Package

MAX_README_BYTES = 1_000_000
MAX_README_CHARACTERS = 100_000
"""The maximum number of characters of the README that are copied into the model folder."""
MAX_LICENCE_BYTES = 100_000
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)\n---[ \t]*\n", re.DOTALL)
_LICENCE = re.compile(r"^license:[ \t]{0,8}[\"']?([\w.+ -]{1,80}?)[\"']?[ \t]{0,8}$", re.MULTILINE)


def read_readme(package: Package) -> str:
    """Return the README of a model without its front matter, or "" if the model has no README."""
    return _FRONT_MATTER.sub("", _readme(package))[:MAX_README_CHARACTERS].strip()


def read_licence(package: Package) -> str:
    """Return the licence in the front matter of the README or in the file LICENSE.

    In LICENSE, only CC BY 4.0 is recognised; for any other text, return "see LICENSE in the original". If
    there is no licence, return "".
    """
    front_matter = _FRONT_MATTER.match(_readme(package))
    if front_matter and (match := _LICENCE.search(front_matter[1])):
        return match[1].strip()
    if "LICENSE" in package and package.sizes["LICENSE"] < MAX_LICENCE_BYTES:
        text = package.read("LICENSE").decode("utf-8", errors="replace")
        return "cc-by-4.0" if "Attribution 4.0 International" in text else "see LICENSE in the original"
    return ""


def _readme(package: Package) -> str:
    if "README.md" not in package or package.sizes["README.md"] > MAX_README_BYTES:
        return ""
    return package.read("README.md").decode("utf-8", errors="replace").replace("\r\n", "\n")
