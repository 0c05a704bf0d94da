"""Tiny untrained models, and a server with them for all tests that need no other settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.serve_models import make_digit_model
from support.serve_process import serving_in_thread

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.serve_process import RunningServer

SERVER_FIXTURES = {
    "shared_server",
    "server_with_keys",
    "strict_server",
    "malicious_server",
    "captioning_server",
    "server_with_terms",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that use one of these servers as medium: the first test waits for its start."""
    for item in items:
        if isinstance(item, pytest.Function) and SERVER_FIXTURES & set(item.fixturenames):
            item.add_marker(pytest.mark.medium)


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder: English → German, with random weights."""
    return make_digit_model(tmp_path_factory.mktemp("serve-model"), "en", "de")


@pytest.fixture(scope="session")
def second_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder: German → French, with random weights."""
    return make_digit_model(tmp_path_factory.mktemp("serve-second"), "de", "fr")


@pytest.fixture(scope="session")
def shared_server(
    model: Path, second_model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningServer]:
    """A server with both models. Tests must not change it."""
    with serving_in_thread(tmp_path_factory.mktemp("served"), model, second_model) as server:
        yield server
