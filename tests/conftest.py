"""What every test stands on: the same random examples each time, one thread a process, a cache of its own."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import settings

# Small tensors gain nothing from a second thread, and workers of pytest-xdist would fight over the cores.
# This must stand before the first import of torch.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# In the background of a script Ctrl-C is ignored, here and in every program that is started from here.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Examples that change between runs let a first run fail by chance; the profile `search` hunts for more.
settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test reads or fills the cache of the person who runs it."""
    os.environ["JUMOK_CACHE"] = str(tmp_path_factory.mktemp("cache"))
