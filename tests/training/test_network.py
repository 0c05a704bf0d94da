"""Ranks over torch.distributed give the same bits as shared memory; mistakes in the set-up are explained."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from jumok.errors import TrainingError, UnsupportedError
from jumok.storage.model_folder import read_model_with_weights
from jumok.training.parallel import cluster
from jumok.training.parallel.cluster import ClusterAddress
from jumok.training.parallel.run_files import list_files
from jumok.training.run.run_folder import RunFolder
from jumok.training.run.training_run import training_events
from support import child_environment
from support.digits import TINY, digit_corpus

HERE = Path(__file__).parent
SETTINGS: dict[str, Any] = {
    **{name: value for name, value in TINY.items() if name != "training.processes"},
    "training.steps": 12,
    "training.validate_every": 6,
    "training.warmup_steps": 2,
}
TORCHRUN = {"RANK": "1", "WORLD_SIZE": "3", "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500"}


def run_driver(task: str, folder: Path, world_size: int, *, seconds: int = 300) -> Any:
    process = subprocess.run(
        [sys.executable, str(HERE / "network_driver.py"), task, str(folder), str(world_size)],
        capture_output=True,
        text=True,
        timeout=seconds,
        env=child_environment(),
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("network") / "run"
    list(training_events(digit_corpus(300), out=path, **{**SETTINGS, "training.steps": 1}))
    return path


@pytest.mark.parametrize(
    "world_size",
    [
        pytest.param(2, marks=pytest.mark.slow),
        pytest.param(3, marks=pytest.mark.medium),
        pytest.param(4, marks=pytest.mark.slow),
    ],
)
def test_a_network_gives_the_same_bits_as_shared_memory(folder: Path, world_size: int) -> None:
    """With three or more ranks, another order of addition would give other bits.

    With two ranks it cannot: a + b = b + a.
    """
    ranks = run_driver("backends", folder, world_size)
    assert len(ranks) == world_size
    assert "shared" in ranks[0], ranks[0]
    for rank in ranks:
        assert rank["network"]["losses"] == ranks[0]["shared"]["losses"]
        assert rank["network"]["weights"] == ranks[0]["shared"]["weights"]
    assert ranks[0]["network"]["adam"] == ranks[0]["shared"]["adam"]  # rank 0 has the states of all owners


@pytest.mark.slow
def test_a_resumed_run_over_a_network_ends_like_one_in_shared_memory(tmp_path: Path) -> None:
    """The other ranks cannot open the files of rank 0. Each of them gets a copy and removes it at the end."""
    result = run_driver("run_and_resume", tmp_path / "run", 3)
    # Rank 0 abandons the run at the checkpoint of step 6.
    assert [rank.get("abandoned") for rank in result["first"]] == [6, None, None], result["first"]
    assert all("ended with an error" in rank["error"] for rank in result["first"][1:])
    assert len(result["copies"]) == 2  # one per rank other than 0; copies stay after an error
    assert result["second"][0] == {"rank": 0, "copies": 0, "resumed_from": 6}
    assert result["second"][1:] == [{"rank": rank, "copies": 0} for rank in (1, 2)]
    settings = {**SETTINGS, "training.processes": 3}
    list(training_events(digit_corpus(300), out=tmp_path / "shared", **settings))
    (_, network, _), (_, shared, _) = (
        read_model_with_weights(tmp_path / name / "model") for name in ("run", "shared")
    )
    assert all(torch.equal(network[name], shared[name]) for name in shared)


@pytest.mark.slow
def test_the_ranks_of_a_host_wait_for_one_copy_of_the_files_and_remove_the_copy_once(tmp_path: Path) -> None:
    assert run_driver("one_copy", tmp_path / "run", 3) == [{"rank": rank} for rank in range(3)]
    assert list(tmp_path.glob("cache-1/runs/*")) == []


@pytest.mark.slow
def test_a_script_may_train_twice(tmp_path: Path) -> None:
    result = run_driver("two_trainings", tmp_path, 2)
    assert result["ranks"] == [{"rank": 0}, {"rank": 1}]
    assert result["digests"][0] == result["digests"][1]


@pytest.mark.slow
def test_a_second_signal_ends_a_rank_if_rank_0_does_not_respond(tmp_path: Path) -> None:
    result = run_driver("dead_host", tmp_path / "dead", 2, seconds=60)
    assert result["alive"] == "True"  # after the first signal, rank 1 waits for rank 0
    assert result["ranks"] == [{"killed": True}, {"killed": True}]


@pytest.mark.slow
@pytest.mark.parametrize("world_size", [2, 3, 4, 5, 6])
def test_shares_give_the_same_bits_for_any_number_of_processes(folder: Path, world_size: int) -> None:
    result = run_driver("shares", folder, world_size)
    for rank in result["ranks"]:
        assert rank.get("shared") == result["single"], rank
        assert rank["network"] == result["single"]


@pytest.mark.slow
def test_a_run_with_shares_continues_on_fewer_ranks_to_the_same_bits(tmp_path: Path) -> None:
    """Three ranks save the run. Two ranks resume it, and a single process resumes a copy of it."""
    result = run_driver("fewer_ranks", tmp_path / "run", 3)
    assert result["first"][0] == {"abandoned": 6}, result["first"]
    assert result["second"] == [{}, {}]
    assert len(set(result["digests"])) == 1


@pytest.mark.slow
def test_a_run_without_shares_needs_its_number_of_ranks(tmp_path: Path) -> None:
    ranks = run_driver("other_world_size", tmp_path / "run", 2)
    assert "This run has 2 processes. Received: 3 ranks" in ranks[0]["error"], ranks[0]
    assert "training.shares" in ranks[0]["error"]


@pytest.mark.slow
def test_the_run_folder_must_be_where_rank_0_is(folder: Path) -> None:
    ranks = run_driver("other_host", folder, 2)
    assert "rank 1" in ranks[0]["error"], ranks[0]  # which has the folder
    assert "not on the host of rank 0" in ranks[0]["error"]
    assert ranks[1]["error"] == ranks[0]["error"]


@pytest.mark.slow
def test_ranks_with_other_code_are_refused(tmp_path: Path) -> None:
    ranks = run_driver("other_code", tmp_path, 2)
    for rank, other in ((0, 1), (1, 0)):
        assert f"Rank {rank} and rank {other}" in ranks[rank]["error"], ranks[rank]
        assert "edited" in ranks[rank]["error"]
        assert "Install the same versions" in ranks[rank]["error"]


def test_a_process_that_was_started_alone_joins_no_cluster() -> None:
    assert ClusterAddress.from_environment({}) is None
    assert ClusterAddress.from_environment({**TORCHRUN, "WORLD_SIZE": "1"}) is None
    assert ClusterAddress.from_environment({"WORLD_SIZE": "3"}) is None  # another program may have set it


def test_the_address_is_read_from_the_variables_of_torchrun() -> None:
    environment = {**TORCHRUN, "LOCAL_RANK": "1", "GROUP_WORLD_SIZE": "2", "TORCHELASTIC_MAX_RESTARTS": "3"}
    address = ClusterAddress.from_environment(environment)
    expected = ClusterAddress(1, 3, "10.0.0.1", 29500, local_rank=1, hosts=2, max_restarts=3)  # rank 1 of 3
    assert address == expected


def test_an_incomplete_environment_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"MASTER_PORT=\. Start them by torchrun"):
        ClusterAddress.from_environment({"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "host"})


def test_restarts_on_several_hosts_are_refused_while_workers_share_the_store_of_torchrun() -> None:
    address = ClusterAddress(0, 2, "127.0.0.1", 1, hosts=2, agent_store=True, max_restarts=3)
    with pytest.raises(UnsupportedError, match="TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1"):
        cluster._join(address)


def test_a_port_that_is_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        address = ClusterAddress(0, 2, "127.0.0.1", port)
        with pytest.raises(TrainingError, match=rf"port {port} of 127\.0\.0\.1.*choose another port"):
            cluster._listen(address)


def test_rank_0_must_run_on_the_host_that_is_named() -> None:
    with pytest.raises(TrainingError, match="Rank 0 must run on the host of that name"):
        cluster._listen(ClusterAddress(0, 2, "192.0.2.1", 29500))  # an address that no host has (RFC 5737)


def test_rank_0_listens_on_one_address_only() -> None:
    with cluster._listen(ClusterAddress(0, 2, "127.0.0.1", 0)) as listening:
        assert listening.getsockname()[0] == "127.0.0.1"


def test_rank_0_can_listen_on_an_ipv6_address() -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    with cluster._listen(ClusterAddress(0, 2, "::1", 0)) as listening:
        assert listening.getsockname()[0] == "::1"


def test_the_advice_for_another_type_of_processor_is_not_to_install_versions(monkeypatch) -> None:
    store = torch.distributed.HashStore()
    monkeypatch.setattr(cluster.platform, "machine", lambda: "aarch64")
    cluster._compare_versions(store, ClusterAddress(0, 1, "127.0.0.1", 1))  # only stores what rank 0 has
    monkeypatch.setattr(cluster.platform, "machine", lambda: "x86_64")
    with pytest.raises(
        TrainingError, match=r"machine: x86_64 here, aarch64 there\. .*hosts of one type"
    ) as error:
        cluster._compare_versions(store, ClusterAddress(1, 2, "127.0.0.1", 1))
    assert "Install" not in str(error.value)


def test_the_interface_is_the_one_that_leads_to_rank_0() -> None:
    assert cluster._interface_towards(ClusterAddress(1, 2, "127.0.0.1", 29500)) == "lo"


def test_files_that_only_rank_0_reads_are_not_sent(folder: Path) -> None:
    files = list_files(RunFolder(folder))
    assert set(files) == {"pieces.model", "data/store.json"} | {
        f"data/{side}.{kind}" for side in ("source", "target") for kind in ("ids", "offsets")
    }
    # The other files in data/ have only a size, since store.json has their sha256.
    assert "sha256" in files["data/store.json"]
    assert "sha256" in files["pieces.model"]
    assert not any(
        "sha256" in files[name] for name in files if name.startswith("data/") and ".json" not in name
    )
