"""How many cores there are to use, by the files in which Linux tells of quotas."""

from __future__ import annotations

from pathlib import Path

import pytest

from jumok.processes import available_cores

CORES = available_cores(Path("/nowhere"))  # without any quota

HYBRID = "9:name=systemd:/\n2:cpuacct:/\n1:cpu:/\n0::/\n"


def machine(folder: Path, groups: str, files: dict[str, str]) -> Path:
    """A tree as Linux shows it: the groups of this process, and files below /sys/fs/cgroup."""
    named = {"proc/self/cgroup": groups, **{f"sys/fs/cgroup/{name}": text for name, text in files.items()}}
    for name, text in named.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def first_version(folder: str, quota: int, period: int = 100_000) -> dict[str, str]:
    return {f"{folder}/cpu.cfs_quota_us": f"{quota}\n", f"{folder}/cpu.cfs_period_us": f"{period}\n"}


@pytest.mark.parametrize(
    ("groups", "files", "expected"),
    [
        pytest.param("0::/\n", {"cpu.max": "100000 100000\n"}, 1, id="a container with one core"),
        pytest.param("0::/\n", {"cpu.max": "1000 100000\n"}, 1, id="never none"),
        pytest.param("0::/\n", {"cpu.max": "150000 100000\n"}, 2, id="a part of a core is one"),
        pytest.param("0::/\n", {"cpu.max": "6400000 100000\n"}, 64, id="more than there are"),
        pytest.param("0::/\n", {"cpu.max": "max 100000\n"}, 99, id="no limit"),
        pytest.param("0::/\n", {"cpu.max": "surprise\n"}, 99, id="not understood"),
        pytest.param("0::/\n", {}, 99, id="not told"),
        pytest.param("surprise\n", {"cpu.max": "100000 100000\n"}, 99, id="groups not understood"),
        pytest.param(
            "0::/system.slice/jumok.service\n",
            {"system.slice/jumok.service/cpu.max": "80000 100000\n", "system.slice/cpu.max": "max 100000\n"},
            1,
            id="CPUQuota= of a service",
        ),
        pytest.param(
            "0::/a.slice/b.service\n",
            {"a.slice/b.service/cpu.max": "max 100000\n", "a.slice/cpu.max": "50000 100000\n"},
            1,
            id="that of a group around it",
        ),
        pytest.param(
            "0::/docker/0123abc\n",
            {"cpu.max": "100000 100000\n"},
            1,
            id="the path of the host in a container",
        ),
        pytest.param("0::/../other\n", {"cpu.max": "100000 100000\n"}, 1, id="a path that leads outside"),
        pytest.param(HYBRID, first_version("cpu", 100_000), 1, id="version 1"),
        pytest.param(HYBRID, first_version("cpu", 75_000, 50_000), 2, id="another period"),
        pytest.param(HYBRID, first_version("cpu", -1), 99, id="no limit in version 1"),
        pytest.param(HYBRID, first_version("cpu", 10_000, 0), 99, id="no period"),
        pytest.param(
            "4:cpuacct,cpu:/docker/0123abc\n",
            first_version("cpu/docker/0123abc", 20_000),
            1,
            id="its own group",
        ),
    ],
)
def test_a_quota_limits_the_cores(tmp_path: Path, groups: str, files: dict[str, str], expected: int) -> None:
    assert available_cores(machine(tmp_path, groups, files)) == min(CORES, expected)


def test_this_machine_has_a_core() -> None:
    assert 1 <= available_cores() <= CORES
