"""Tiny models that have learned nothing, and one server on them for all tests that only ask."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from serve_models import train_digits
from serve_process import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from serve_process import Served

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each of these starts servers and their workers: they belong to the slow tier."""
    for item in items:
        if item.path.parent == HERE:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """English → German."""
    return train_digits(tmp_path_factory.mktemp("serve-model"), "en", "de")


@pytest.fixture(scope="session")
def second_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """German → French."""
    return train_digits(tmp_path_factory.mktemp("serve-second"), "de", "fr")


@pytest.fixture(scope="session")
def served(model: Path, second_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with both, which tests must leave as it is."""
    with serving(tmp_path_factory.mktemp("served"), model, second_model, "--workers", "1") as found:
        yield found
