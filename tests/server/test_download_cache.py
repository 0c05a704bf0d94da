"""The cache of translated files is bounded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jumok.documents.registry import DOCUMENT_FORMATS
from jumok.server.download_cache import DownloadCache
from jumok.server.limits import Limits

if TYPE_CHECKING:
    import pytest


def test_files_are_evicted_by_count_size_and_age(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("jumok.server.download_cache.time.monotonic", lambda: now[0])
    cache = DownloadCache(Limits(max_cached_files=3, max_cached_file_bytes=100, cached_file_lifetime=10))
    plain_text = DOCUMENT_FORMATS[0]
    names = [cache.put(b"x" * 10, plain_text) for _ in range(4)]
    assert [cache.get(name) is not None for name in names] == [False, True, True, True]
    # 85 bytes and two files of 10 bytes would be more than 100 bytes.
    large = cache.put(b"x" * 85, plain_text)
    assert [cache.get(name) is not None for name in [*names, large]] == [False, False, False, True, True]
    now[0] = 11  # later than `cached_file_lifetime`
    assert cache.get(large) is None


def test_a_file_that_is_larger_than_the_cache_can_be_downloaded_until_the_next_file_is_stored() -> None:
    cache = DownloadCache(Limits(max_cached_file_bytes=100))
    plain_text = DOCUMENT_FORMATS[0]
    large = cache.put(b"x" * 101, plain_text)
    assert cache.get(large) is not None
    small = cache.put(b"x", plain_text)
    assert [cache.get(name) is not None for name in (large, small)] == [False, True]


def test_a_file_of_every_format_can_be_downloaded() -> None:
    cache = DownloadCache(Limits())
    for document_format in DOCUMENT_FORMATS:
        name = cache.put(b"x", document_format)
        file = cache.get(name)
        assert name.endswith(document_format.suffix)
        assert file is not None
        assert file.document_format is document_format
