"""docs/python.md is up to date with the docstrings, and lists every public name."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import jumok

PROGRAM = Path(__file__).parents[2] / "docs" / "make_python_reference.py"


def load_program() -> Any:
    specification = importlib.util.spec_from_file_location("make_python_reference", PROGRAM)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_the_reference_page_is_current() -> None:
    program = load_program()
    assert program.PAGE.read_text(encoding="utf-8") == program.reference(), "run `make reference`"


def test_the_reference_page_has_every_public_name() -> None:
    listed = {name for names in load_program().SECTIONS.values() for name in names}
    assert listed >= set(jumok.__all__)
