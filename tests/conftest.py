"""Settings of all tests: the same random examples in every run, one thread per process, a private cache."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import settings

# Small tensors gain nothing from a second thread, and workers of pytest-xdist would compete for the cores.
# torch reads this variable when torch is first imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Messages are English, whatever the locale of the machine.
os.environ["JUMOK_LANG"] = "en"

# Tests that a script runs in the background ignore Ctrl-C by default. Processes that such tests start would
# ignore Ctrl-C as well, so the tests that interrupt a process would fail.
signal.signal(signal.SIGINT, signal.default_int_handler)

# New examples in every run would make tests fail by chance; the profile `search` tries new ones.
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


@pytest.fixture(scope="session", autouse=True)
def private_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep tests away from the cache of the user who runs them."""
    os.environ["JUMOK_CACHE"] = str(tmp_path_factory.mktemp("cache"))
