"""Bulk translation divides lines into blocks and stores the translation of each block in a part file."""

from __future__ import annotations

import os
import time
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from jumok.cli.bulk import BulkOptions, check_replaceable, translate_files
from jumok.cli.input_lines import InputLines
from jumok.errors import DataError, RecipeError, StorageError, UnsupportedError
from jumok.inference.bulk.job import BulkJob, Shard, parse_shard, run_jobs
from jumok.inference.bulk.parts import MIN_LEFTOVER_SECONDS, Block, BulkSettings, Part, PartFolder, blocks
from jumok.inference.bulk.ray_workers import count_actors
from jumok.inference.read_ahead import block_sizes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from jumok.inference.bulk.processes import BulkWorkers

SETTINGS = BulkSettings("model", "digest", {"engine": "auto"}, {"beam": 4})


class UpperCaseWorkers:
    """Workers that need no model, finish blocks in reverse order, and record the numbers of these blocks."""

    count = 1
    fallback_message = ""

    def __init__(self, fail_after: int | None = None) -> None:
        self.done: list[int] = []
        self.fail_after = fail_after

    def compute(self, todo: Iterator[Block]) -> Iterator[tuple[Block, Part]]:
        for block in reversed(list(todo)):
            if self.fail_after is not None and len(self.done) >= self.fail_after:
                raise StorageError("killed")
            self.done.append(block.number)
            output = "".join(f"{text.upper()}\n" for text in block.texts).encode()
            yield block, Part(output, len(block.texts), [], 0, 0)


def lines(count: int) -> list[str]:
    return [f"line {number}" for number in range(count)]


def run(out: Path, texts: list[str], workers: UpperCaseWorkers, shard: Shard | None = None) -> BulkJob:
    job = BulkJob(texts, out, SETTINGS, shard)
    run_jobs([job], workers, lambda progress: None)
    return job


def test_blocks_are_cut_as_in_a_stream_and_contain_all_lines() -> None:
    sizes = block_sizes()
    assert [next(sizes) for _ in range(3)] == [256, 2048, 2048]
    split_blocks = list(blocks(lines(5000)))
    assert [(block.number, block.first_line, len(block.texts)) for block in split_blocks] == [
        (0, 1, 256),
        (1, 257, 2048),
        (2, 2305, 2048),
        (3, 4353, 648),
    ]
    assert [text for block in split_blocks for text in block.texts] == lines(5000)


def test_the_lines_before_a_read_error_form_a_block() -> None:
    def broken() -> Iterator[str]:
        yield from lines(300)
        raise DataError("line 301")

    split_blocks = blocks(broken())
    assert [len(next(split_blocks).texts), len(next(split_blocks).texts)] == [256, 44]
    with pytest.raises(DataError, match="line 301"):
        next(split_blocks)


@pytest.mark.parametrize(
    "change",
    [
        {"digest": "b"},
        {"loading": {"engine": "torch"}},
        {"options": {"beam": 5}},
        {"glossary": {"a": "b"}},
        {"sampling": {"seed": 1}},
        {"n_best": 2},
        {"output": "json"},
        {"prefix": "a"},
    ],
)
def test_the_key_of_a_part_depends_on_everything_that_affects_its_content(change: dict[str, Any]) -> None:
    assert replace(SETTINGS, **change).key(["a"]) != SETTINGS.key(["a"])
    assert SETTINGS.key(["a", "b"]) != SETTINGS.key(["a b"]) != SETTINGS.key(["a"])
    assert replace(SETTINGS, model="elsewhere").key(["a"]) == SETTINGS.key(["a"])  # the digest identifies it


def test_each_block_is_sampled_with_a_different_seed() -> None:
    sampled = replace(SETTINGS, sampling={"seed": 1})
    seeds = [sampled.for_block(number).sampling["seed"] for number in range(3)]  # type: ignore[index]
    assert len(set(seeds)) == 3
    assert SETTINGS.for_block(2) is SETTINGS


def test_a_part_that_is_cut_or_changed_is_treated_as_missing(tmp_path: Path) -> None:
    folder, part = PartFolder(tmp_path / "out"), Part(b"eins\n", 1, [(0, "cut")], 1, 0)
    folder.write("key", part)
    assert folder.read("key") == part
    [file] = folder.path.iterdir()
    whole = file.read_bytes()
    bad_note, no_notes = (whole.replace(b'[[0, "cut"]]', notes) for notes in (b"[[0]]", b"null"))
    assert whole not in (bad_note, no_notes)
    other_output = whole.replace(b"eins", b"zwei")
    for damaged in (whole[:-1], other_output, bad_note, no_notes, b"", b"{}\n", b"[]\n", b"\xff"):
        file.write_bytes(damaged)
        assert folder.read("key") is None


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1, 0], [1, 1, 2, 0]])
def test_the_output_does_not_depend_on_the_order_or_repetition_of_shards(
    tmp_path: Path, order: list[int]
) -> None:
    texts, done = lines(9000), []  # 6 blocks: of 256, four times 2,048, and 552 lines
    for number in order:
        workers = UpperCaseWorkers()
        job = run(tmp_path / "out", texts, workers, Shard(number, 3))
        done += workers.done
    assert sorted(done) == [0, 1, 2, 3, 4, 5]  # each block once, even if a shard ran twice
    assert job.num_parts() == (6, 6)
    job.join()
    assert (tmp_path / "out").read_text() == "".join(f"{text.upper()}\n" for text in texts)


def test_a_second_run_translates_only_the_missing_blocks(tmp_path: Path) -> None:
    texts, killed_workers, new_workers = lines(9000), UpperCaseWorkers(fail_after=2), UpperCaseWorkers()
    with pytest.raises(StorageError, match="killed"):
        run(tmp_path / "out", texts, killed_workers)
    run(tmp_path / "out", texts, new_workers)
    # These workers begin with the last block.
    assert (sorted(killed_workers.done), sorted(new_workers.done)) == ([4, 5], [0, 1, 2, 3])


def test_after_a_change_only_changed_blocks_are_translated_and_old_parts_are_removed(tmp_path: Path) -> None:
    texts = lines(5000)
    run(tmp_path / "out", texts, UpperCaseWorkers()).join()
    texts[3000] = "another line"  # in block 2
    workers = UpperCaseWorkers()
    job = run(tmp_path / "out", [*texts, "one more"], workers)  # the new line is in block 3, the last
    job.join()
    assert sorted(workers.done) == [2, 3]
    assert len(list(job.folder.path.glob("*.part"))) == 4
    assert (tmp_path / "out").read_text().splitlines()[2999:3001] == ["LINE 2999", "ANOTHER LINE"]


def test_only_old_half_written_parts_are_removed(tmp_path: Path) -> None:
    job = run(tmp_path / "out", lines(3), UpperCaseWorkers())
    young, old = job.folder.path / "a.part.tmp-1", job.folder.path / "b.part.tmp-2"
    young.touch()
    old.touch()
    os.utime(old, (time.time() - MIN_LEFTOVER_SECONDS - 400,) * 2)  # 400 seconds more than needed
    job.join()
    assert young.exists()
    assert not old.exists()


def test_unrelated_files_in_the_part_folder_are_not_removed(tmp_path: Path) -> None:
    folder = tmp_path / "out.parts"
    folder.mkdir()
    (folder / "video-1.part").write_text("a download")
    run(tmp_path / "out", lines(3), UpperCaseWorkers()).join()
    assert (folder / "video-1.part").read_text() == "a download"


class WorkersWithConcurrentWriter(UpperCaseWorkers):
    """Workers that write the output file before they compute, as another process could do."""

    def __init__(self, out: Path, text: str) -> None:
        super().__init__()
        self.out, self.text = out, text

    def compute(self, todo: Iterator[Block]) -> Iterator[tuple[Block, Part]]:
        self.out.write_text(self.text)
        yield from super().compute(todo)


@dataclass(frozen=True)
class OptionsWithTestWorkers(BulkOptions):
    """Options that start the workers of a test."""

    test_workers: BulkWorkers = field(default_factory=UpperCaseWorkers)

    def start(self, settings: BulkSettings) -> BulkWorkers:
        return self.test_workers


def test_an_output_that_another_process_has_written_is_not_replaced(tmp_path: Path) -> None:
    text, out = tmp_path / "in", tmp_path / "out"
    text.write_text("one\ntwo\n")
    # An output is accepted if it already has the bytes that the job would write.
    for output, is_refused in (("by hand\n", True), ("ONE\n", True), ("ONE\nTWO\n", False)):
        out.unlink(missing_ok=True)
        workers = WorkersWithConcurrentWriter(out, output)
        options = OptionsWithTestWorkers("translate", workers=1, test_workers=workers)
        with pytest.raises(StorageError, match="--overwrite") if is_refused else nullcontext():
            translate_files(SETTINGS, [(text, out)], options, InputLines, overwrite=False)
        assert out.read_text() == output


def test_only_an_unchanged_output_of_the_same_settings_is_replaced_without_overwrite(tmp_path: Path) -> None:
    out, other_settings = tmp_path / "out", replace(SETTINGS, n_best=2)
    files = [(tmp_path / "in", out)]
    # `check_replaceable` raises an error if the output must not be replaced.
    job = run(out, lines(3), UpperCaseWorkers())
    check_replaceable(files, SETTINGS, overwrite=False)  # there is no output yet
    job.join()
    check_replaceable(files, SETTINGS, overwrite=False)  # the same settings wrote the output
    with pytest.raises(StorageError, match="--overwrite"):
        check_replaceable(files, other_settings, overwrite=False)
    out.write_text("corrected by hand\n")
    with pytest.raises(StorageError, match="--overwrite"):
        check_replaceable(files, SETTINGS, overwrite=False)
    check_replaceable(files, other_settings, overwrite=True)


def test_equal_blocks_are_translated_once(tmp_path: Path) -> None:
    texts, workers = ["same"] * (256 + 3 * 2048), UpperCaseWorkers()
    run(tmp_path / "out", texts, workers).join()
    assert sorted(workers.done) == [0, 1]
    assert (tmp_path / "out").read_text() == "SAME\n" * len(texts)


def test_a_shard_is_given_as_its_number_and_the_number_of_shards() -> None:
    assert parse_shard("3/64") == Shard(2, 64)  # users count shards from 1
    for wrong in ("0/4", "5/4", "3", "a/b", "-1/4", "1/0"):
        with pytest.raises(RecipeError, match="takes I/N"):
            parse_shard(wrong)


def test_there_are_at_most_as_many_actors_as_free_cores() -> None:
    assert count_actors(0, 4, "auto") == 4  # 0: as many as possible
    assert count_actors(3, 4, "auto") == 3
    with pytest.raises(
        UnsupportedError, match=r"--ray auto with --workers 5; free .* that cluster: 4\. Take --workers 4"
    ):
        count_actors(5, 4, "auto")
    with pytest.raises(
        UnsupportedError, match=r"--ray auto without --workers; free .* that cluster: 0\. Wait"
    ):
        count_actors(0, 0, "auto")
