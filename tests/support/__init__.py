"""Modules that several test files use: small corpora, models, translators, processes, files and checks."""

import os
from pathlib import Path


def child_environment(**variables: str) -> dict[str, str]:
    """Return the environment for a child process that imports this package, `support`."""
    paths = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths), **variables}
