"""The number of available cores follows the control groups of Linux."""

from __future__ import annotations

from pathlib import Path

import pytest

from jumok.system.processes import available_cores

CORES = available_cores(Path("/nowhere"))  # without any quota
UNLIMITED = 10**6  # an expected number of cores that no machine has: no quota limits the cores

# /proc/self/cgroup of a machine with both versions of control groups.
HYBRID = "9:name=systemd:/\n2:cpuacct:/\n1:cpu:/\n0::/\n"


def write_cgroups(folder: Path, groups: str, files: dict[str, str]) -> Path:
    """Write /proc/self/cgroup, which names the groups of this process, and files below /sys/fs/cgroup."""
    texts_by_path = {
        "proc/self/cgroup": groups,
        **{f"sys/fs/cgroup/{name}": text for name, text in files.items()},
    }
    for path, text in texts_by_path.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return folder


def cgroup_v1(folder: str, quota: int, period: int = 100_000) -> dict[str, str]:
    """Return the files of a group of version 1 that may compute for `quota` µs per `period` µs."""
    return {f"{folder}/cpu.cfs_quota_us": f"{quota}\n", f"{folder}/cpu.cfs_period_us": f"{period}\n"}


@pytest.mark.parametrize(
    ("groups", "files", "expected"),
    [
        pytest.param("0::/\n", {"cpu.max": "100000 100000\n"}, 1, id="a container with one core"),
        pytest.param("0::/\n", {"cpu.max": "1000 100000\n"}, 1, id="at least one"),
        pytest.param("0::/\n", {"cpu.max": "150000 100000\n"}, 2, id="part of a core counts as one"),
        pytest.param("0::/\n", {"cpu.max": "6400000 100000\n"}, 64, id="more than the machine has"),
        pytest.param("0::/\n", {"cpu.max": "max 100000\n"}, UNLIMITED, id="no limit"),
        pytest.param("0::/\n", {"cpu.max": "surprise\n"}, UNLIMITED, id="not understood"),
        pytest.param("0::/\n", {}, UNLIMITED, id="no file"),
        pytest.param("surprise\n", {"cpu.max": "100000 100000\n"}, UNLIMITED, id="groups not understood"),
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
            id="limit of an outer group",
        ),
        pytest.param(
            "0::/docker/0123abc\n",
            {"cpu.max": "100000 100000\n"},
            1,
            id="the path of the host in a container",
        ),
        pytest.param("0::/../other\n", {"cpu.max": "100000 100000\n"}, 1, id="a path that leads outside"),
        pytest.param(HYBRID, cgroup_v1("cpu", 100_000), 1, id="version 1"),
        pytest.param(HYBRID, cgroup_v1("cpu", 75_000, 50_000), 2, id="another period"),
        pytest.param(HYBRID, cgroup_v1("cpu", -1), UNLIMITED, id="no limit in version 1"),
        pytest.param(HYBRID, cgroup_v1("cpu", 10_000, 0), UNLIMITED, id="no period"),
        pytest.param(
            "4:cpuacct,cpu:/docker/0123abc\n",
            cgroup_v1("cpu/docker/0123abc", 20_000),
            1,
            id="version 1, in a group below the root",
        ),
    ],
)
def test_a_quota_limits_the_cores(tmp_path: Path, groups: str, files: dict[str, str], expected: int) -> None:
    assert available_cores(write_cgroups(tmp_path, groups, files)) == min(CORES, expected)


def test_a_quota_of_this_machine_leaves_at_least_one_core() -> None:
    assert 1 <= available_cores() <= CORES
