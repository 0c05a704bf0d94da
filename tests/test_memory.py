"""The allocator keeps freed memory for reuse if the C library is glibc."""

import platform

from jumok.system.memory import reuse_freed_memory


def test_freed_memory_is_reused_with_glibc_only(monkeypatch):
    assert reuse_freed_memory() is (platform.libc_ver()[0] == "glibc")
    monkeypatch.setattr("sys.platform", "darwin")
    assert reuse_freed_memory() is False
