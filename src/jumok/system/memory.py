"""Memory that is freed and wanted again a moment later: let the C library keep it.

A step of training or of a search frees and allocates the same large tensors over and over. By default glibc
hands large blocks back to the kernel at once, which then clears every page anew for the next step.
"""

from __future__ import annotations

import ctypes
import sys

__all__ = ["reuse_pages"]

# Names and numbers of <malloc.h>.
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3

LARGEST = 2**31 - 1  # mallopt takes an int
LARGEST_OF_OLDER = 32 * 2**20  # the most that some versions of glibc take
PAD = 64 * 2**20


def reuse_pages() -> bool:
    """Ask glibc to keep freed memory for this process. False where there is no glibc to ask."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return False
    if mallopt(M_MMAP_THRESHOLD, LARGEST) != 1:
        mallopt(M_MMAP_THRESHOLD, LARGEST_OF_OLDER)
    taken = [mallopt(name, value) == 1 for name, value in ((M_TRIM_THRESHOLD, LARGEST), (M_TOP_PAD, PAD))]
    return all(taken)
