"""The classes of `jumok.errors` match the tree in its docstring; `suggest` finds the closest known name."""

from __future__ import annotations

import re

import pytest

from jumok import errors
from jumok.errors import JumokError, RecipeError, UnsupportedError, suggest

PUBLIC = [getattr(errors, name) for name in errors.__all__]
CLASSES = [item for item in PUBLIC if isinstance(item, type) and not issubclass(item, Warning)]


@pytest.mark.parametrize("error", CLASSES, ids=lambda error: error.__name__)
def test_every_error_is_a_jumok_error_and_has_a_docstring(error: type[Exception]) -> None:
    assert issubclass(error, JumokError)
    assert error.__doc__


def test_an_unsupported_error_is_a_recipe_error() -> None:
    assert UnsupportedError.__base__ is RecipeError


def test_the_tree_shows_every_error_below_its_parent() -> None:
    columns_and_names: list[tuple[int, str]] = [
        (match.start(1), match[1])
        for line in (errors.__doc__ or "").splitlines()
        if (match := re.match(r"[ │├└─]*(\w+Error)\b", line))
    ]
    parents = {}
    for index, (column, name) in enumerate(columns_and_names):
        above = [other for other_column, other in columns_and_names[:index] if other_column < column]
        parents[name] = above[-1] if above else "Exception"
    assert parents == {error.__name__: error.__base__.__name__ for error in CLASSES}


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        ("germann", ["german", "korean"], ' Did you mean "german"?'),
        ("korean", ("german", "korean"), ' Did you mean "korean"?'),
        ("GERMAN", ["german", "korean"], ' Did you mean "german"?'),
        ("xyz", ["german", "korean"], ""),
        ("klingon", ["Ukrainian", "Mongolian", "kin"], ""),
        ("german", [], ""),
        ("", ["german"], ""),
    ],
)
def test_the_closest_name_is_suggested(name: str, known: list[str], expected: str) -> None:
    assert suggest(name, known) == expected


def test_known_names_may_be_any_iterable() -> None:
    assert suggest("bea", (name for name in ("beam", "greedy"))) == ' Did you mean "beam"?'
