"""The allocator keeps freed memory for reuse, where the C library can be told so."""

from jumok.system.memory import reuse_freed_memory


def test_freed_memory_is_reused_with_glibc_only(monkeypatch):
    assert reuse_freed_memory() in (True, False)  # no error; False without mallopt, as with musl
    monkeypatch.setattr("sys.platform", "darwin")
    assert reuse_freed_memory() is False
