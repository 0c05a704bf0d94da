"""Tiny models that have learned nothing, and one server on them for all tests that only ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from serve_models import make_digits
from serve_process import serving_here

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from serve_process import Served

NEED_A_SERVER = {"served", "guarded", "hasty", "attacking"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whoever asks a server first waits until it has started: that is no fast test."""
    for item in items:
        if isinstance(item, pytest.Function) and NEED_A_SERVER & set(item.fixturenames):
            item.add_marker(pytest.mark.medium)


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """English → German."""
    return make_digits(tmp_path_factory.mktemp("serve-model"), "en", "de")


@pytest.fixture(scope="session")
def second_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """German → French."""
    return make_digits(tmp_path_factory.mktemp("serve-second"), "de", "fr")


@pytest.fixture(scope="session")
def served(model: Path, second_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with both, which tests must leave as it is."""
    with serving_here(tmp_path_factory.mktemp("served"), model, second_model) as found:
        yield found
