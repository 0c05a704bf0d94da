"""Tiny untrained models, and one server with them for all tests that only send requests."""

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
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that use a server as medium: the first such test waits until the server has started."""
    for item in items:
        if isinstance(item, pytest.Function) and SERVER_FIXTURES & set(item.fixturenames):
            item.add_marker(pytest.mark.medium)


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """English → German."""
    return make_digit_model(tmp_path_factory.mktemp("serve-model"), "en", "de")


@pytest.fixture(scope="session")
def second_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """German → French."""
    return make_digit_model(tmp_path_factory.mktemp("serve-second"), "de", "fr")


@pytest.fixture(scope="session")
def shared_server(
    model: Path, second_model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningServer]:
    """A server with both models. Tests must not change it."""
    with serving_in_thread(tmp_path_factory.mktemp("served"), model, second_model) as server:
        yield server
