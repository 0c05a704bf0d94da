"""The store gives back what was put in, is whole or absent, and refuses damage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from corpus_fakes import FakeVocabularies, WordPieces, pairs_of_lengths
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jumok.corpus import Part, open_store, store, write_store
from jumok.errors import DataError, StorageError
from jumok.storage import checked_json, read_checked_json
from jumok.values import Pair

if TYPE_CHECKING:
    from pathlib import Path

VOCABULARIES = FakeVocabularies()
PAIRS = pairs_of_lengths([(3, 4), (1, 1), (10, 2), (5, 5)])


def write(
    folder: Path, pairs: list[Pair] = PAIRS, *, keep_text: bool = True, longest: int = 50
) -> store.PairStore:
    return write_store(folder, [Part("all", pairs)], VOCABULARIES, longest=longest, keep_text=keep_text)


words = st.text(st.characters(codec="utf-8", exclude_categories=["Z", "C"]), min_size=1, max_size=5)
sentences = st.lists(words, min_size=1, max_size=8).map(" ".join)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(st.lists(st.tuples(sentences, sentences), min_size=1, max_size=20))
def test_pairs_come_back_as_ids_and_as_text(tmp_path: Path, texts: list[tuple[str, str]]) -> None:
    pairs = [Pair(*text) for text in texts]
    stored = write(tmp_path / "data", pairs)
    assert len(stored) == len(pairs)
    for index, pair in enumerate(pairs):
        source, target = stored.pair_ids(index)
        assert [source] == VOCABULARIES.source.encode_batch([pair.source])
        assert [target] == VOCABULARIES.target.encode_batch([pair.target])
        assert stored.pair_text(index) == pair
        assert stored.source_lengths[index] == len(source) + 1
        assert stored.target_lengths[index] == len(target) + 2


def test_ids_take_two_bytes_where_the_vocabulary_allows(tmp_path: Path) -> None:
    stored = write(tmp_path / "data")
    assert stored.source.ids.dtype == np.uint16
    assert stored.target.ids.dtype == np.uint32


def test_blocks_join_without_a_seam(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = write(tmp_path / "whole")
    monkeypatch.setattr(store, "_BLOCK", 3)
    assert write(tmp_path / "in-blocks").fingerprint == whole.fingerprint


def test_parts_keep_their_weights_and_ranges(tmp_path: Path) -> None:
    parts = [Part("a", PAIRS[:3], 2.5), Part("b", PAIRS[3:])]
    stored = write_store(tmp_path / "data", parts, VOCABULARIES, longest=50)
    assert [(p.name, p.weight, p.first, p.last) for p in stored.parts] == [("a", 2.5, 0, 3), ("b", 1.0, 3, 4)]


def test_long_and_empty_pairs_are_skipped_and_counted(tmp_path: Path) -> None:
    pairs = [*PAIRS, Pair("  ", "x"), Pair("a b c d e f", "x")]
    stored = write(tmp_path / "data", pairs, longest=5)
    assert len(stored) == 3
    assert stored.skipped == {"too many pieces": 2, "no pieces": 1}


def test_nothing_left_is_an_error_that_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="3 with too many pieces"):
        write(tmp_path / "data", PAIRS[:1] * 3, longest=2)
    assert list(tmp_path.iterdir()) == []


def test_the_same_pairs_have_the_same_fingerprint_and_others_do_not(tmp_path: Path) -> None:
    first, again = write(tmp_path / "a"), write(tmp_path / "b")
    assert first.fingerprint == again.fingerprint
    assert write(tmp_path / "c", PAIRS[::-1]).fingerprint != first.fingerprint


def test_a_store_is_replaced_but_a_foreign_folder_is_not(tmp_path: Path) -> None:
    write(tmp_path / "data")
    assert len(write(tmp_path / "data", PAIRS[:2])) == 2
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1").write_text("words")
    with pytest.raises(StorageError, match="in the way"):
        write(tmp_path / "thesis")
    assert (tmp_path / "thesis" / "chapter1").exists()


def test_a_killed_writer_leaves_no_store_and_the_next_one_succeeds(tmp_path: Path) -> None:
    class PullThePlug(BaseException):
        pass

    def interrupted() -> object:
        yield PAIRS[0]
        raise PullThePlug

    with pytest.raises(PullThePlug):
        write_store(tmp_path / "data", [Part("all", interrupted())], VOCABULARIES, longest=50)
    assert not (tmp_path / "data").exists()
    (tmp_path / "data.tmp").mkdir()  # as kill -9 would leave it
    assert len(write(tmp_path / "data")) == len(PAIRS)
    assert not (tmp_path / "data.tmp").exists()


def test_a_full_disk_is_a_storage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store.os, "fsync", no_space)
    with pytest.raises(StorageError, match="No space left"):
        write(tmp_path / "data")
    assert list(tmp_path.iterdir()) == []


FILES = ["source.ids", "source.offsets", "target.ids", "target.offsets", "source.text", "target.text-offsets"]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("harm", ["flip", "cut", "grow", "delete"])
def test_damage_is_refused_by_the_name_of_the_file(tmp_path: Path, name: str, harm: str) -> None:
    path = write(tmp_path / "data").folder / name
    data = path.read_bytes()
    if harm == "delete":
        path.unlink()
    else:
        flipped = bytes([data[0] ^ 1]) + data[1:]
        path.write_bytes({"flip": flipped, "cut": data[:-1], "grow": data + b"\0"}[harm])
    with pytest.raises(StorageError, match=name.replace(".", r"\.")):
        open_store(tmp_path / "data")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1}', '{"format": 1, "files": 3}', "{"])
def test_a_damaged_list_of_contents_is_refused(tmp_path: Path, text: str) -> None:
    write(tmp_path / "data")
    (tmp_path / "data" / "store.json").write_text(text)
    with pytest.raises(StorageError, match=r"store\.json"):
        open_store(tmp_path / "data")


def test_changed_counts_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "data")
    meta_path = tmp_path / "data" / "store.json"
    meta = read_checked_json(meta_path)
    meta_path.write_bytes(checked_json(meta | {"pairs": 3}))
    with pytest.raises(StorageError, match="should hold 3 pairs"):
        open_store(tmp_path / "data")


@pytest.mark.parametrize(("number", "flipped"), [('"weight": 1.0', '"weight": 9.0'), ("50", "51")])
def test_a_flipped_digit_that_no_other_number_tells_of_is_refused(
    tmp_path: Path, number: str, flipped: str
) -> None:
    write(tmp_path / "data")
    meta_path = tmp_path / "data" / "store.json"
    text = meta_path.read_text(encoding="utf-8")
    assert number in text
    meta_path.write_text(text.replace(number, flipped, 1), encoding="utf-8")
    with pytest.raises(StorageError, match=r"store\.json cannot be used: its checksum"):
        open_store(tmp_path / "data")


def test_a_missing_store_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no encoded pairs"):
        open_store(tmp_path)


def test_text_that_was_not_kept_cannot_be_asked_for(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="keep_text"):
        write(tmp_path / "data", keep_text=False).pair_text(0)


def test_the_vocabulary_is_part_of_the_store(tmp_path: Path) -> None:
    other = FakeVocabularies(source=WordPieces(name="other"))
    assert store.vocabulary_hash(other) != write(tmp_path / "data").vocabulary
