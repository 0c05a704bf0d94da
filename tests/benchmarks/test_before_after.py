"""The comparison of two source trees. Only the slow test measures jumok; the other tests use fake trees."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from benchmarks import before_after
from benchmarks.before_after import (
    HELP,
    FigureComparison,
    Measurement,
    NotMeasuredError,
    main,
    startup,
    steady_rate,
)
from benchmarks.measure import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.before_after import Bench, Tree

PROGRAM = """
import os, pathlib
with open(os.environ["TURNS"], "a") as file:
    file.write(f"{pathlib.Path(__file__).parts[-4]} {pathlib.Path(os.environ['XDG_CACHE_HOME']).name}\\n")
"""


@pytest.fixture
def trees(tmp_path: Path) -> list[str]:
    """Two source trees. The program of each only writes the name of its tree and of its cache folder."""
    for name in ("before", "after"):
        package = tmp_path / name / "src" / "jumok"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "__main__.py").write_text(PROGRAM, encoding="utf-8")
    return [str(tmp_path / name) for name in ("before", "after")]


def measure_only(monkeypatch: pytest.MonkeyPatch, *measurements: Measurement) -> None:
    monkeypatch.setattr(before_after, "TOPICS", {"startup": list(measurements)})


def fake_measurement(**figures: tuple[float, float]) -> Measurement:
    """Return a measurement with fixed results.

    Each figure has two values. The first is the result in the old tree, the second in the new tree.
    """

    def run(bench: Bench, tree: Tree) -> dict[str, float]:
        return {name: both[tree.name == "new"] for name, both in figures.items()}

    return Measurement(run)


def test_each_round_has_a_ratio_and_the_best_rounds_have_a_ratio() -> None:
    rate = FigureComparison("tokens/s", [100.0, 50.0, 80.0], [90.0, 55.0, 80.0])
    assert rate.ratios == pytest.approx([0.9, 1.1, 1.0])
    assert rate.ratio == pytest.approx(1.0)  # the median
    assert rate.best_ratio == pytest.approx(90 / 100)  # the best new round / the best old round
    seconds = replace(rate, name="import, s")
    assert seconds.best_ratio == pytest.approx(55 / 50)


def test_a_lower_rate_and_a_longer_time_are_slower() -> None:
    assert (
        FigureComparison("tokens/s", [100.0], [94.0]).verdict(5)
        == "slower in the median and in the best rounds"
    )
    assert FigureComparison("tokens/s", [100.0], [94.0]).verdict(7) == ""
    assert FigureComparison("tokens/s", [100.0], [200.0]).verdict(5) == ""
    assert (
        FigureComparison("import, s", [1.00], [1.06]).verdict(5)
        == "slower in the median and in the best rounds"
    )
    assert FigureComparison("import, s", [1.00], [0.50]).verdict(5) == ""
    assert (
        FigureComparison("import, s", [1.0, 1.0, 1.0], [1.0, 1.2, 1.2]).verdict(5) == "slower in the median"
    )
    assert (
        FigureComparison("import, s", [1.0, 0.9, 1.0], [1.0, 1.0, 1.0]).verdict(5)
        == "slower in the best rounds"
    )


def test_help_has_an_absolute_limit() -> None:
    assert FigureComparison(HELP, [0.4], [0.4]).verdict(5) == "over 0.3 s"
    assert FigureComparison(HELP, [0.4], [0.29]).verdict(5) == ""


def test_the_warm_up_of_a_training_is_not_counted() -> None:
    reports = [(10, 1.0, 10.0), (20, 2.0, 10.0), (30, 3.0, 100.0), (40, 6.0, 200.0)]
    records = [
        {"kind": "train", "step": step, "seconds": seconds, "tokens_per_second": rate}
        for step, seconds, rate in reports
    ]
    records.insert(3, {"kind": "validation", "step": 35})
    assert steady_rate(records, 20) == pytest.approx((100 + 3 * 200) / 4)
    with pytest.raises(NotMeasuredError, match="too few reports"):
        steady_rate(records, 40)


def test_the_trees_take_turns_and_have_separate_caches(
    trees: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns_file = tmp_path / "turns"
    monkeypatch.setenv("TURNS", str(turns_file))
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path))  # must be removed, or both trees would use this cache
    monkeypatch.setattr(before_after, "QUICK", replace(before_after.QUICK, starts=1))
    measure_only(monkeypatch, startup("greeting, s", "-m", "jumok"))
    environment = dict(os.environ)
    assert main([*trees, "--quick", "--anyway", "--rounds", "2", "--limit", "100000"]) == 0
    old, new = "before cache-old", "after cache-new"
    assert turns_file.read_text(encoding="utf-8").splitlines() == [old, new, new, old]
    assert dict(os.environ) == environment


def test_the_exit_code_and_the_table_say_that_something_is_slower(
    trees: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measure_only(monkeypatch, fake_measurement(**{"a, s": (1.0, 1.5), "b/s": (3.0, 3.0)}))
    assert main([*trees, "--anyway", "--rounds", "1"]) == 1
    _, slower, same, remark = capsys.readouterr().out.splitlines()
    slower, same = (" ".join(line.split()) for line in (slower, same))
    assert slower == "a, s 1 1.5 1.500 1.500 to 1.500 1.500 slower in the median and in the best rounds"
    assert same == "b/s 3 3 1.000 1.000 to 1.000 1.000"
    assert "busy" in remark
    assert main([*trees, "--anyway", "--rounds", "1", "--limit", "60"]) == 0


def test_a_remark_says_if_the_trees_do_different_work(
    trees: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(bench: Bench, tree: Tree) -> dict[str, float]:
        bench.check_same("translations", float(tree.name == "new"))
        bench.check_same("loss", 1.0)
        return {"b/s": 1.0}

    measure_only(monkeypatch, Measurement(run))
    assert main([*trees, "--anyway", "--json"]) == 0
    assert [remark.split(":")[0] for remark in json.loads(capsys.readouterr().out)["remarks"]] == [
        "translations",
        "the machine may have been busy (--anyway)",
    ]


def test_a_jumok_from_another_folder_is_refused(
    trees: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in (tmp_path / "after" / "src" / "jumok").iterdir():
        file.unlink()
    measure_only(monkeypatch, fake_measurement(**{"b/s": (1.0, 1.0)}))
    assert main([*trees, "--anyway"]) == 2
    assert f"not from {tmp_path / 'after' / 'src'}" in capsys.readouterr().err


@pytest.mark.slow
def test_every_measurement_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(ROOT), str(ROOT), "--quick", "--anyway", "--rounds", "1", "--json"]) != 2
    report = json.loads(capsys.readouterr().out)
    assert len(report["figures"]) == 12  # 2 of training, 4 of decoding, 4 of startup, 2 of the server
    assert all(value > 0 for figure in report["figures"] for value in (*figure["old"], *figure["new"]))
    assert report["remarks"] == ["the machine may have been busy (--anyway)"]
