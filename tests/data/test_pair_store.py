"""A store returns the pairs that were written, is either complete or absent, and refuses damaged files."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jumok.data import store
from jumok.data.store import CorpusPairs, open_store, write_store
from jumok.errors import DataError, StorageError
from jumok.storage.folders import json_with_checksum, read_json_with_checksum
from jumok.types import Pair
from support.corpus_fakes import FakeTokenizer, FakeTokenizerPair, pairs_of_lengths

if TYPE_CHECKING:
    from pathlib import Path

TOKENIZERS = FakeTokenizerPair()
PAIRS = pairs_of_lengths([(3, 4), (1, 1), (10, 2), (5, 5)])


def write(
    folder: Path, pairs: list[Pair] = PAIRS, *, store_text: bool = True, max_tokens: int = 50
) -> store.PairStore:
    return write_store(
        folder, [CorpusPairs("all", pairs)], TOKENIZERS, max_tokens=max_tokens, store_text=store_text
    )


words = st.text(st.characters(codec="utf-8", exclude_categories=["Z", "C"]), min_size=1, max_size=5)
sentences = st.lists(words, min_size=1, max_size=8).map(" ".join)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(st.lists(st.tuples(sentences, sentences), min_size=1, max_size=20))
def test_pairs_are_read_back_as_ids_and_as_text(tmp_path: Path, texts: list[tuple[str, str]]) -> None:
    pairs = [Pair(*text) for text in texts]
    stored = write(tmp_path / "data", pairs)
    assert len(stored) == len(pairs)
    for index, pair in enumerate(pairs):
        source, target = stored.pair_ids(index)
        assert [source] == TOKENIZERS.source.encode_batch([pair.source])
        assert [target] == TOKENIZERS.target.encode_batch([pair.target])
        assert stored.pair_text(index) == pair
        assert stored.source_lengths[index] == len(source) + 1  # </s>
        assert stored.target_lengths[index] == len(target) + 2  # <s> and </s>


def test_ids_take_two_bytes_or_four_if_the_vocabulary_is_large(tmp_path: Path) -> None:
    stored = write(tmp_path / "data")
    assert stored.source.ids.dtype == np.uint16
    assert stored.target.ids.dtype == np.uint32


def test_the_block_size_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_one_block = write(tmp_path / "in-one-block")
    monkeypatch.setattr(store, "_BLOCK_PAIRS", 3)
    assert write(tmp_path / "in-blocks").fingerprint == in_one_block.fingerprint


def test_corpora_have_their_weights_and_ranges(tmp_path: Path) -> None:
    corpora = [CorpusPairs("a", PAIRS[:3], 2.5), CorpusPairs("b", PAIRS[3:])]
    stored = write_store(tmp_path / "data", corpora, TOKENIZERS, max_tokens=50)
    assert [(corpus.name, corpus.weight, corpus.first, corpus.end) for corpus in stored.corpora] == [
        ("a", 2.5, 0, 3),
        ("b", 1.0, 3, 4),
    ]


def test_long_and_empty_pairs_are_skipped_and_counted(tmp_path: Path) -> None:
    pairs = [*PAIRS, Pair("  ", "x"), Pair("a b c d e f", "x")]
    stored = write(tmp_path / "data", pairs, max_tokens=5)
    assert len(stored) == 3
    assert stored.skipped == {"too many tokens": 2, "no tokens": 1}


def test_a_store_without_pairs_is_an_error_with_the_reasons(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="3 with too many tokens"):
        write(tmp_path / "data", PAIRS[:1] * 3, max_tokens=2)
    assert list(tmp_path.iterdir()) == []


def test_stores_of_equal_pairs_have_equal_fingerprints_unless_the_order_differs(tmp_path: Path) -> None:
    first, second = write(tmp_path / "a"), write(tmp_path / "b")
    assert first.fingerprint == second.fingerprint
    assert write(tmp_path / "c", PAIRS[::-1]).fingerprint != first.fingerprint


def test_a_store_is_replaced_but_a_foreign_folder_is_not(tmp_path: Path) -> None:
    write(tmp_path / "data")
    assert len(write(tmp_path / "data", PAIRS[:2])) == 2
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1").write_text("words")
    with pytest.raises(StorageError, match="in the way"):
        write(tmp_path / "thesis")
    assert (tmp_path / "thesis" / "chapter1").exists()


@pytest.mark.parametrize("num_removed", [2, 4, 6])
def test_the_remains_of_a_partly_removed_store_are_replaced(tmp_path: Path, num_removed: int) -> None:
    """Version 0.1 removed an old store file by file. A run that was killed then could not be resumed."""
    write(tmp_path / "data")
    # The first name in alphabetical order is source.ids.
    for name in sorted(path.name for path in (tmp_path / "data").iterdir())[:num_removed]:
        (tmp_path / "data" / name).unlink(missing_ok=True)
    assert not (tmp_path / "data" / "source.ids").exists()
    (tmp_path / "data" / "store.json").unlink(missing_ok=True)
    assert len(write(tmp_path / "data")) == len(PAIRS)


def test_a_killed_writer_leaves_no_store_and_the_next_writer_succeeds(tmp_path: Path) -> None:
    class Killed(BaseException):
        pass

    def interrupted() -> object:
        yield PAIRS[0]
        raise Killed

    with pytest.raises(Killed):
        write_store(tmp_path / "data", [CorpusPairs("all", interrupted())], TOKENIZERS, max_tokens=50)
    assert not (tmp_path / "data").exists()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "data.tmp-7").mkdir()  # as kill -9 would leave it
    assert len(write(tmp_path / "data")) == len(PAIRS)


def test_a_full_disk_is_a_storage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(store.os, "fsync", no_space)
    with pytest.raises(StorageError, match="the disk is full"):
        write(tmp_path / "data")
    assert list(tmp_path.iterdir()) == []


FILES = ["source.ids", "source.offsets", "target.ids", "target.offsets", "source.text", "target.text-offsets"]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", ["flip", "cut", "grow", "delete"])
def test_the_error_names_the_damaged_file(tmp_path: Path, name: str, damage: str) -> None:
    path = write(tmp_path / "data").folder / name
    data = path.read_bytes()
    if damage == "delete":
        path.unlink()
    else:
        flipped = bytes([data[0] ^ 1]) + data[1:]
        path.write_bytes({"flip": flipped, "cut": data[:-1], "grow": data + b"\0"}[damage])
    with pytest.raises(StorageError, match=name.replace(".", r"\.")):
        open_store(tmp_path / "data")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1}', '{"format": 1, "files": 3}', "{"])
def test_a_damaged_manifest_is_refused(tmp_path: Path, text: str) -> None:
    write(tmp_path / "data")
    (tmp_path / "data" / "store.json").write_text(text)
    with pytest.raises(StorageError, match=r"store\.json"):
        open_store(tmp_path / "data")


def test_a_store_of_another_format_is_not_called_damaged(tmp_path: Path) -> None:
    write(tmp_path / "data")
    manifest_path = tmp_path / "data" / "store.json"
    manifest_path.write_bytes(json_with_checksum(read_json_with_checksum(manifest_path) | {"format": 1}))
    with pytest.raises(StorageError, match=r"written by another version of jumok \(format 1, expected 2\)"):
        open_store(tmp_path / "data")


def test_a_manifest_with_a_changed_number_of_pairs_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "data")
    manifest_path = tmp_path / "data" / "store.json"
    manifest = read_json_with_checksum(manifest_path)
    manifest_path.write_bytes(json_with_checksum(manifest | {"pairs": 3}))
    with pytest.raises(StorageError, match="should hold 3 pairs"):
        open_store(tmp_path / "data")


@pytest.mark.parametrize(
    ("stored", "changed"), [('"weight": 1.0', '"weight": 9.0'), ('"longest": 50', '"longest": 51')]
)
def test_a_changed_digit_is_refused_by_the_checksum(tmp_path: Path, stored: str, changed: str) -> None:
    write(tmp_path / "data")
    manifest_path = tmp_path / "data" / "store.json"
    text = manifest_path.read_text(encoding="utf-8")
    assert stored in text
    manifest_path.write_text(text.replace(stored, changed, 1), encoding="utf-8")
    with pytest.raises(StorageError, match=r"store\.json cannot be used: its checksum"):
        open_store(tmp_path / "data")


def test_a_missing_store_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no encoded pairs"):
        open_store(tmp_path)


def test_reading_text_from_a_store_without_text_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="store_text"):
        write(tmp_path / "data", store_text=False).pair_text(0)


def test_the_hash_of_the_tokenizers_is_stored(tmp_path: Path) -> None:
    stored_hash = write(tmp_path / "data").tokenizer_hash
    assert stored_hash == store.hash_tokenizers(FakeTokenizerPair())
    assert stored_hash != store.hash_tokenizers(FakeTokenizerPair(source=FakeTokenizer(name="other")))
