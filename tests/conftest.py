"""Settings of all tests: equal random examples in every run, one thread per process, a cache of their own."""

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

# If a script runs the tests in the background, they ignore Ctrl-C by default, and so does every process that
# they start. Tests that interrupt a process would fail.
signal.signal(signal.SIGINT, signal.default_int_handler)

# New examples in every run would make tests fail by chance; the profile `search` tries new ones.
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


@pytest.fixture(scope="session", autouse=True)
def private_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep tests away from the cache of the user who runs them."""
    os.environ["JUMOK_CACHE"] = str(tmp_path_factory.mktemp("cache"))
