"""A spool cleans a large corpus on all cores. Its pairs, counts and store are those of a single process."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from jumok.config.recipe import TextSettings
from jumok.data import spool as spool_module
from jumok.data.cleaning import Cleaner
from jumok.data.corpora import open_corpora
from jumok.data.faults import Fault
from jumok.data.hold_out import choose_hold_out
from jumok.data.spool import WORKER_CODE, Spool, SpooledBlock, SpooledPairs
from jumok.data.store import CorpusPairs, open_store, write_store
from jumok.errors import StorageError
from jumok.system.worker_processes import WorkerProcesses
from jumok.text.tokenizer_training import train_tokenizers
from jumok.training.run import corpus_reader
from jumok.training.run.corpus_reader import read_sentences

if TYPE_CHECKING:
    from jumok.data.corpora import Corpus

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
GERMAN_WORDS = ["eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn"]


def write_corpus(path: Path, count: int, seed: int = 1) -> Path:
    """Write pairs with faults of six kinds, duplicates across the file, capitals and an emoji."""
    generator = random.Random(seed)
    lines = []
    for _ in range(count):
        digits = [generator.randrange(10) for _ in range(generator.randint(1, 4))]
        source, target = (" ".join(words[digit] for digit in digits) for words in (WORDS, GERMAN_WORDS))
        kind = generator.randrange(40)
        source, target = {
            0: ("", target),
            1: (source, source),
            2: (source + " \ufffd", target),
            3: (source, target * 30),
            4: (source, "Ã©tÃ© " + target),
            5: (source + "\x07", target),
            6: (source.upper() + "!", target + " 🙂"),
        }.get(kind, (source, target))
        lines.append(f"{source}\t{target}\n")
    path.write_text("".join(lines), encoding="utf-8")
    return path


@pytest.fixture
def corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Corpus]:
    monkeypatch.setattr(spool_module, "BLOCK_PAIRS", 700)
    monkeypatch.setattr(spool_module, "MAX_COMPARED_HASHES", 1000)
    files = [
        write_corpus(tmp_path / "a.en-de.tsv", 3000),
        write_corpus(tmp_path / "b.en-de.tsv", 900, seed=2),
    ]
    return open_corpora(list(map(str, files)))


@pytest.mark.medium
def test_a_spool_keeps_what_one_process_keeps(corpora: list[Corpus], tmp_path: Path) -> None:
    valid = open_corpora([str(write_corpus(tmp_path / "valid.en-de.tsv", 40, seed=3))])
    cleaner = Cleaner(exclude=valid)
    expected = [[(pair.source, pair.target) for pair in cleaner.clean(corpus)] for corpus in corpora]
    spool = Spool.read(tmp_path / "spool", corpora, exclude=valid, with_keys=True)
    received = [[(pair.source, pair.target) for pair in spool.pairs(number)] for number in range(2)]
    assert received == expected
    assert spool.kept == sum(map(len, expected))
    assert {fault: count for fault, count in spool.skipped.items() if count} == {
        fault: count for fault, count in cleaner.skipped.items() if count
    }
    assert {Fault.DUPLICATE, Fault.LEAKED, Fault.EMPTY, Fault.MOJIBAKE, Fault.CONTROL} <= set(cleaner.skipped)
    pairs = [pair for number in range(2) for pair in spool.pairs(number)]
    for count in (1, 7, 50, 10_000):
        assert spool.choose_hold_out(count) == choose_hold_out(pairs, count=count)
    hold_out = choose_hold_out(pairs, count=50)
    assert list(spool.held_out(hold_out)) == [pair for pair in pairs if pair in hold_out]
    assert list(spool.sample(7)) == pairs[::7]
    folder = spool.folder
    assert folder.exists()
    del spool
    assert not folder.exists()


@pytest.mark.medium
def test_sentences_and_store_are_the_same_with_and_without_a_spool(
    corpora: list[Corpus], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_spool = read_sentences(corpora, [], held_out_pairs=50)
    # Words are counted in a sample of the pairs. With and without a spool, the sample must be the same.
    monkeypatch.setattr(corpus_reader, "SAMPLE_PAIRS", 100)
    with_small_sample = read_sentences(corpora, [], held_out_pairs=50)
    monkeypatch.setattr(spool_module, "MIN_SPOOLED_BYTES", 1)
    with_spool = read_sentences(corpora, [], held_out_pairs=50, work=tmp_path / "work")
    assert with_spool.spool is not None
    assert without_spool.spool is None
    assert with_small_sample.spool is None
    assert with_spool.fingerprint == without_spool.fingerprint
    assert with_spool.validation_pairs == without_spool.validation_pairs
    assert with_spool.skipped == without_spool.skipped
    assert list(with_spool.pairs()) == list(without_spool.pairs())
    assert with_small_sample.facts == with_spool.facts
    sources, targets = zip(*((pair.source, pair.target) for pair in without_spool.pairs()), strict=True)
    tokenizers = train_tokenizers(sources, targets, TextSettings(), 300)
    stores = [
        write_store(tmp_path / name, sentences.corpus_pairs(), tokenizers, max_tokens=12, store_text=True)
        for name, sentences in (("without", without_spool), ("with", with_spool))
    ]
    assert stores[0].fingerprint == stores[1].fingerprint  # the same bytes in every file
    assert stores[0].corpora == stores[1].corpora
    assert stores[0].skipped == stores[1].skipped
    assert stores[0].skipped  # otherwise the comparison of skipped pairs would test nothing


@pytest.mark.medium
def test_a_run_with_a_spool_reads_its_files_once(
    corpora: list[Corpus], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool_module, "MIN_SPOOLED_BYTES", 1)
    passes = 0
    reader = corpora[0].reader

    def counting_reader(dropped):  # type: ignore[no-untyped-def]
        nonlocal passes
        passes += 1
        return reader(dropped)

    sentences = read_sentences(
        [replace(corpora[0], reader=counting_reader)], [], held_out_pairs=20, work=tmp_path / "work"
    )
    pairs = list(sentences.pairs())
    assert list(sentences.pairs()) == pairs
    assert passes == 1


def test_an_empty_spool_has_no_pairs(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    assert list(spool.pairs()) == []
    assert list(SpooledPairs(spool, 0, choose_hold_out([], count=1))) == []
    assert np.array_equal(spool._duplicates(), np.zeros(0, dtype=bool))
    assert CorpusPairs("none", []).weight == 1.0
    with pytest.raises(StorageError, match="no store"):
        open_store(spool.folder)


def test_a_private_folder_stays_private_and_a_folder_with_files_is_emptied(tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    spool = Spool(private)
    assert spool.folder.stat().st_mode & 0o777 == 0o700
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "old").touch()
    assert not list(Spool(tmp_path / "used").folder.iterdir())


@pytest.mark.medium
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
@pytest.mark.parametrize("kind", ["faults", "text"])
def test_the_error_of_a_worker_names_a_full_disk(tmp_path: Path, kind: str) -> None:
    SpooledBlock.for_files(tmp_path, 0).path(kind).symlink_to("/dev/full")
    first = {"folder": str(tmp_path), "excluded": [], "with_keys": False}
    workers: WorkerProcesses[int] = WorkerProcesses(WORKER_CODE, count=1, first=first, advice="")
    block = {
        "number": 0,
        "languages": ["en", "de"],
        "plain": False,
        "expected_ratio": 1.0,
        "sources": ["one"],
        "targets": ["eins"],
    }
    with pytest.raises(StorageError, match="the disk is full"):
        list(workers.map(iter([(0, block)])))


@pytest.mark.medium
def test_the_error_for_a_dead_worker_names_its_pairs_and_ends_with_the_advice(tmp_path: Path) -> None:
    dying_worker = (
        "import os; from jumok.system.worker_processes import answer_messages; "
        "answer_messages(lambda message: {} if 'ready' in message else os._exit(1))"
    )
    block = SpooledBlock(tmp_path, 1, corpus=0, first=32_768, num_read=1_000)
    for first, message in (({"ready": True}, "on pairs 32,769 to 33,768"), ({}, "ended while it started")):
        workers: WorkerProcesses[SpooledBlock] = WorkerProcesses(
            dying_worker, count=1, first=first, advice="End other programs."
        )
        with pytest.raises(StorageError, match=rf"{message}.* End other programs\.$"):
            list(workers.map(iter([(block, {"number": 1})])))
