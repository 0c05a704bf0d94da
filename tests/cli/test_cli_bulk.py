"""`translate` and `evaluate` with --workers, --shard and --ray write the same bytes as one process."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jumok.inference.bulk.parts import blocks
from support.cli_calls import environment, program, spawn
from support.digit_lines import digit_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.cli_calls import Call

needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="the package ray is missing")


def write_lines(path: Path, count: int) -> Path:
    """Write `count` lines of digits. One of the lines is empty, and one has three sentences."""
    sources = [source for source, *_ in digit_lines(count)]
    sources[5], sources[7] = "", "three. four? five!"
    path.write_text("".join(f"{source}\n" for source in sources), encoding="utf-8")
    return path


def count_blocks(num_lines: int) -> int:
    """Return the number of parts of the translation of `num_lines` lines: one part per block."""
    return sum(1 for _ in blocks([""] * num_lines))


def translate_in_one_process(model: Path, text: Path, *options: str) -> bytes:
    result = spawn("translate", model, text, *options)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.medium
def test_workers_and_shards_write_the_same_bytes_as_one_process(
    model: Path, call: Call, tmp_path: Path
) -> None:
    # Three blocks: 256 lines, 2,048 lines, and the other 96.
    text, out = write_lines(tmp_path / "in.txt", 2400), tmp_path / "out.txt"
    plain = translate_in_one_process(model, text)
    first = call("translate", model, text, "--out", out, "--workers", "2")
    assert first.code == 0, first.err
    assert out.read_bytes() == plain
    assert "3 parts are new, 0 were already there" in first.err
    again = call("translate", model, text, "--out", out, "--shard", "2/2")
    assert "0 parts are new, 1 were already there" in again.err  # shard 2/2 is the second of the three blocks
    assert out.read_bytes() == plain
    other = tmp_path / "other.txt"
    for shard in ("3/3", "1/3"):
        call("translate", model, text, "--out", other, "--shard", shard)
        assert not other.exists()
    assert "1 of 3 parts" in call("translate", model, text, "--out", other, "--shard", "1/3").err
    call("translate", model, text, "--out", other, "--shard", "2/3")
    assert other.read_bytes() == plain


@pytest.mark.medium
def test_json_and_several_files_are_the_same_with_workers(model: Path, call: Call, tmp_path: Path) -> None:
    texts = [write_lines(tmp_path / "a.txt", 300), write_lines(tmp_path / "b.txt", 20)]
    options = ("--json", "--n-best", "2", "--beam", "3")
    result = call("translate", model, *texts, "--out", tmp_path / "out", "--workers", "1", *options)
    assert result.code == 0, result.err
    for text in texts:
        assert (tmp_path / "out" / text.name).read_bytes() == translate_in_one_process(model, text, *options)


@pytest.mark.medium
def test_lines_with_too_few_translations_are_counted_only_in_written_files(
    model: Path, call: Call, tmp_path: Path
) -> None:
    """Of two files, the first shard of two completes only the file with a single block."""
    texts = [write_lines(tmp_path / "a.txt", 10), write_lines(tmp_path / "b.txt", 300)]
    options = ("--json", "--n-best", "2", "--sample", "--top-k", "1")  # with top-k 1, both draws are the same
    result = call("translate", model, *texts, "--out", tmp_path / "out", "--shard", "1/2", *options)
    assert [path.name for path in (tmp_path / "out").glob("*.txt")] == ["a.txt"]
    assert "9 of 10 lines have fewer than 2 translations" in result.err  # an empty line is not counted


@pytest.mark.medium
def test_evaluate_by_workers_gives_the_same_scores(
    model: Path, gold_pairs: Path, call: Call, tmp_path: Path
) -> None:
    plain = call("evaluate", model, gold_pairs, "--json", "--out", tmp_path / "plain.txt")
    bulk = call("evaluate", model, gold_pairs, "--json", "--out", tmp_path / "bulk.txt", "--workers", "1")
    assert bulk.code == plain.code == 0, bulk.err
    assert bulk.out == plain.out
    assert (tmp_path / "bulk.txt").read_bytes() == (tmp_path / "plain.txt").read_bytes()
    (tmp_path / "folder").mkdir()
    failed = call("evaluate", model, gold_pairs, "--out", tmp_path / "folder", "--workers", "1")
    assert "The finished parts are kept." in failed.err
    assert "No other file was written" not in failed.err
    assert list((tmp_path / "folder.parts").glob("*.part"))


def test_wrong_options_of_bulk_translation_are_explained(model: Path, call: Call, tmp_path: Path) -> None:
    text = write_lines(tmp_path / "in.txt", 10)
    assert "Name the input and the output" in call("translate", model, text, "--workers", "2").error_of(
        "translate"
    )
    out = tmp_path / "out.txt"
    wrong = call("translate", model, text, "--out", out, "--shard", "5/4")
    assert "--shard takes I/N" in wrong.error_of("translate")
    out.write_text("mine")
    existing = call("translate", model, text, "--out", out, "--workers", "1")
    assert "exists" in existing.error_of("translate")
    assert out.read_text() == "mine"
    several = call("translate", model, text, text)
    assert "Several files" in several.error_of("translate")
    no_out = call("evaluate", model, text, "--workers", "2")
    assert no_out.code == 2
    if importlib.util.find_spec("ray") is None:
        missing = call("translate", model, text, "--out", tmp_path / "b.txt", "--ray")
        assert "jumok[ray]" in missing.error_of("translate")


@pytest.mark.parametrize("name", ["page.html", "messages.PO"])
def test_a_document_is_not_translated_as_lines_by_workers(
    name: str, model: Path, call: Call, tmp_path: Path
) -> None:
    """The lines of a document have markup, which would be translated as text."""
    document, out = tmp_path / name, tmp_path / f"out.{name}"
    document.write_text("<p>one\n</p>\n", encoding="utf-8")
    refused = call("translate", model, document, "--out", out, "--workers", "1").error_of("translate")
    assert f"{document} is a document" in refused
    assert "Leave --workers out" in refused
    assert not out.exists()


def descendants(pid: int) -> list[int]:
    """Return the ids of the children of a process, of the children's children and so on."""
    main_thread = Path(f"/proc/{pid}/task/{pid}/children")
    threads = Path(f"/proc/{pid}/task").glob("*/children") if main_thread.exists() else []
    children = [int(child) for path in threads for child in path.read_text().split()]
    return [pid for child in children for pid in (child, *descendants(child))]


def wait_for(condition: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not become true"
        time.sleep(0.02)


def start(arguments: list[str | Path]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        program(arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    )


@pytest.mark.slow
def test_a_killed_worker_and_a_killed_program_lose_only_unfinished_parts(model: Path, tmp_path: Path) -> None:
    count = 30_000
    text, out = write_lines(tmp_path / "in.txt", count), tmp_path / "out.txt"
    parts, total = tmp_path / "out.txt.parts", count_blocks(count)
    plain = translate_in_one_process(model, text)
    arguments = ["translate", model, text, "--out", out, "--workers", "2"]

    def num_parts() -> int:
        return len(list(parts.glob("*.part"))) if parts.exists() else 0

    first = start(arguments)
    wait_for(lambda: num_parts() >= 3)
    [victim, *_] = descendants(first.pid)
    os.kill(victim, signal.SIGKILL)
    wait_for(lambda: num_parts() >= 6)
    workers = descendants(first.pid)
    assert victim not in workers
    first.kill()
    first.communicate()
    # The workers end when the program ends.
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers), 20)
    num_done = num_parts()
    assert 6 <= num_done < total
    assert not out.exists()
    second = spawn(*arguments)
    assert second.returncode == 0, second.stderr
    assert f"{total - num_done} parts are new, {num_done} were already there" in second.stderr.decode()
    assert out.read_bytes() == plain


@needs_ray
@pytest.mark.slow
def test_ray_survives_a_killed_actor_and_a_killed_driver(model: Path, tmp_path: Path) -> None:
    count = int(os.environ.get("JUMOK_BULK_LINES", "20000"))
    text, out = write_lines(tmp_path / "in.txt", count), tmp_path / "out.txt"
    parts, total = tmp_path / "out.txt.parts", count_blocks(count)
    plain = translate_in_one_process(model, text)
    arguments = ["translate", model, text, "--out", out, "--ray", "--workers", "2"]

    def num_parts() -> int:
        return len(list(parts.glob("*.part"))) if parts.exists() else 0

    def actors(pid: int) -> list[int]:
        pids = []
        for child in descendants(pid):
            try:
                command = Path(f"/proc/{child}/cmdline").read_bytes()
            except OSError:
                continue
            pids += [child] if command.startswith(b"ray::RayActor") else []
        return pids

    first = start(arguments)
    wait_for(lambda: num_parts() >= 2)
    victim = actors(first.pid)[0]
    os.kill(victim, signal.SIGKILL)
    wait_for(lambda: num_parts() >= total // 2)
    assert victim not in actors(first.pid)
    first.kill()
    first.communicate()
    num_done = num_parts()
    assert num_done < total, "the driver was killed too late: take more lines"
    second = spawn(*arguments)
    assert second.returncode == 0, second.stderr
    assert f"{total - num_done} parts are new, {num_done} were already there" in second.stderr.decode()
    assert out.read_bytes() == plain


@pytest.mark.slow
def test_shards_in_any_order_and_one_of_them_twice_write_the_same_bytes_as_one_process(
    model: Path, tmp_path: Path
) -> None:
    text = write_lines(tmp_path / "in.txt", int(os.environ.get("JUMOK_BULK_LINES", "20000")))
    out, plain, new_parts = tmp_path / "out.txt", translate_in_one_process(model, text), []
    for shard in ("3/4", "1/4", "4/4", "1/4", "2/4"):
        assert not out.exists()
        result = spawn("translate", model, text, "--out", out, "--shard", shard)
        assert result.returncode == 0, result.stderr
        new_parts.append(int(result.stderr.split(b" parts are new")[0].split()[-1]))
    assert new_parts[3] == 0  # shard 1/4 for the second time
    assert sum(new_parts) == len(list((tmp_path / "out.txt.parts").glob("*.part")))
    assert out.read_bytes() == plain
