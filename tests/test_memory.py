from jumok.system.memory import reuse_freed_memory


def test_freed_memory_is_reused_with_glibc_only(monkeypatch):
    assert reuse_freed_memory() in (True, False)  # musl and others have no mallopt
    monkeypatch.setattr("sys.platform", "darwin")
    assert reuse_freed_memory() is False
