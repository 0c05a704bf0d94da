"""`jumok clean` keeps the pairs with the highest scores, and refuses options that it cannot fulfil."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import jumok
from support.digit_lines import TINY, digit_lines, write_tsv

if TYPE_CHECKING:
    from pathlib import Path

    from support.cli_calls import Call


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """One model per direction. The training has enough steps for a model to write its target language."""
    folder = tmp_path_factory.mktemp("directions")
    lines = [line[:2] for line in digit_lines(200)]
    settings = {**TINY, "training.steps": 60, "training.learning_rate": 0.01, "training.batch_tokens": 256}
    folders = []
    for name, order in (("en-de", 1), ("de-en", -1)):
        file = write_tsv(folder / f"pairs.{name}.tsv", [line[::order] for line in lines])
        folders.append(jumok.train(file, out=folder / name, **settings).parent)
    return folders


@pytest.fixture
def noisy_file(tmp_path: Path) -> Path:
    """A file with twenty pairs, five untranslated pairs and a pair without a source."""
    untranslated = [(source, source, "0-0") for source, _, _ in digit_lines(5, seed=4)]
    return write_tsv(tmp_path / "noisy.tsv", [*digit_lines(20, seed=3), *untranslated, ("", "leer", "")])


def options(models: list[Path], out: Path) -> list[str | Path]:
    """Return the options that name the two models and the output."""
    return ["--model", models[0], "--back", models[1], "--out", out]


def test_the_worst_pairs_are_dropped_and_shown(
    call: Call, models: list[Path], noisy_file: Path, tmp_path: Path
) -> None:
    result = call("clean", noisy_file, *options(models, tmp_path / "clean.tsv"), "--keep", "80%")
    assert result.code == 0, result.err
    assert "left out first, as in training: 1 empty, 5 untranslated" in result.out
    assert "kept 16 of 20 pairs (80%), with a score of at least 0." in result.out
    assert "dropped, lowest scores:" in result.out
    assert "kept, lowest scores:" in result.out
    kept = (tmp_path / "clean.tsv").read_text(encoding="utf-8").splitlines()
    dropped = (tmp_path / "clean.dropped.tsv").read_text(encoding="utf-8").splitlines()
    assert kept[0] == "en\tde\talignment"
    assert dropped[0] == "score\tforward\tback\ten\tde"
    assert (len(kept) - 1, len(dropped) - 1) == (16, 4)
    lines = noisy_file.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line in kept] == kept[1:]  # in their order, with alignments
    limit = float(result.out.partition("at least ")[2].split(";")[0])
    assert all(float(line.split("\t")[0]) <= limit + 1e-4 for line in dropped[1:])
    assert call("check", tmp_path / "clean.tsv").code == 0


@pytest.mark.parametrize(("keep", "num_kept"), [("80%", 3), ("100%", 5), ("40%", 2)])
def test_pairs_that_are_too_long_to_score_are_kept_only_if_all_pairs_are_kept(
    call: Call, models: list[Path], tmp_path: Path, keep: str, num_kept: int
) -> None:
    # Few words, but hundreds of tokens: `jumok clean` does not leave such a pair out before it scores pairs.
    too_long = [(f"one {words}", f"eins {words}", "") for words in ("QXZ" * 250, "ZXQ" * 250)]
    pairs = write_tsv(tmp_path / "pairs.tsv", [*digit_lines(3, seed=3), *too_long])
    result = call("clean", pairs, *options(models, tmp_path / "clean.tsv"), "--keep", keep)
    assert f"kept {num_kept} of 5 pairs" in result.out


def test_the_option_keep_may_stand_before_the_pairs(
    call: Call, models: list[Path], noisy_file: Path, tmp_path: Path
) -> None:
    """`--keep` of `jumok clean` has one value, but `--keep` of `jumok train` may have two files."""
    result = call("clean", "--keep", "80%", noisy_file, *options(models, tmp_path / "clean.tsv"))
    assert result.code == 0, result.err
    assert "kept 16 of 20 pairs" in result.out


def test_a_threshold_keeps_pairs_with_at_least_this_score(
    call: Call, models: list[Path], noisy_file: Path, tmp_path: Path
) -> None:
    everything = call("clean", noisy_file, *options(models, tmp_path / "all.tsv"), "--threshold", "0")
    assert "kept 20 of 20 pairs (100%)" in everything.out
    nothing = call("clean", noisy_file, *options(models, tmp_path / "none.tsv"), "--threshold", "1")
    assert "kept 0 of 20 pairs (0%)" in nothing.out


@pytest.mark.parametrize("share", ["0", "-1", "101%", "many", "2"])
def test_an_invalid_share_is_refused(
    share: str, call: Call, models: list[Path], noisy_file: Path, tmp_path: Path
) -> None:
    message = call("clean", noisy_file, *options(models, tmp_path / "x.tsv"), "--keep", share).error_of(
        "clean"
    )
    assert "such as 80% or 0.8" in message


def test_keep_and_threshold_exclude_each_other(
    call: Call, models: list[Path], noisy_file: Path, tmp_path: Path
) -> None:
    both = call(
        "clean", noisy_file, *options(models, tmp_path / "x.tsv"), "--keep", "0.5", "--threshold", "0.5"
    )
    assert "Leave one of them out" in both.error_of("clean")


def test_two_models_of_one_direction_are_refused(
    call: Call, models: list[Path], noisy_file: Path, tmp_path: Path
) -> None:
    message = call("clean", noisy_file, *options([models[0]] * 2, tmp_path / "x.tsv")).error_of("clean")
    assert "Received: en → de and en → de" in message


def test_a_file_that_exists_is_not_replaced(
    call: Call, models: list[Path], noisy_file: Path, tmp_path: Path
) -> None:
    message = call("clean", noisy_file, *options(models, noisy_file)).error_of("clean")
    assert "exists already" in message


@pytest.mark.parametrize("file", ["out", "dropped"])
def test_a_missing_folder_is_reported_before_the_pairs_are_scored(
    file: str,
    call: Call,
    models: list[Path],
    noisy_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    score_calls: list[object] = []
    monkeypatch.setattr("jumok.cli.clean._score", lambda *arguments: score_calls.append(arguments))
    paths = {"out": tmp_path / "x.tsv", "dropped": tmp_path / "y.tsv", file: tmp_path / "missing" / "z.tsv"}
    result = call("clean", noisy_file, *options(models, paths["out"]), "--dropped", paths["dropped"])
    assert "missing is not a folder. Make it" in result.error_of("clean")
    assert score_calls == []


def test_one_file_for_kept_and_dropped_pairs_is_refused(
    call: Call, models: list[Path], noisy_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "x.tsv"
    message = call("clean", noisy_file, *options(models, out), "--dropped", out).error_of("clean")
    assert "two files" in message


def test_a_corpus_without_pairs_to_score_is_refused(call: Call, models: list[Path], tmp_path: Path) -> None:
    same = write_tsv(tmp_path / "same.tsv", [("one two", "one two")] * 3)
    message = call("clean", same, *options(models, tmp_path / "x.tsv")).error_of("clean")
    assert "No pair was left to score" in message
    assert "untranslated" in message
