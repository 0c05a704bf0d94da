"""Keep freed memory in the process instead of returning it to the kernel.

A step of training or of a search frees and allocates the same large tensors over and over. By default glibc
returns large blocks to the kernel at once, and the kernel has to clear every page again for the next step.
"""

from __future__ import annotations

import ctypes
import sys

# Names and numbers of <malloc.h>.
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3

MAX_THRESHOLD = 2**31 - 1  # mallopt takes an int
MAX_MMAP_THRESHOLD_OF_OLD_GLIBC = 32 * 2**20  # an old glibc refuses larger thresholds
TOP_PAD = 64 * 2**20  # bytes that glibc requests from the kernel beyond what it needs


def reuse_freed_memory() -> bool:
    """Tell glibc to keep freed memory for this process. Return whether glibc does this.

    Without glibc, return False.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return False
    if mallopt(M_MMAP_THRESHOLD, MAX_THRESHOLD) != 1:
        mallopt(M_MMAP_THRESHOLD, MAX_MMAP_THRESHOLD_OF_OLD_GLIBC)
    thresholds = ((M_TRIM_THRESHOLD, MAX_THRESHOLD), (M_TOP_PAD, TOP_PAD))
    accepted = [mallopt(name, value) == 1 for name, value in thresholds]
    return all(accepted)
