"""Campaigns on a local Ray cluster with fake NPUs: the verdicts of one machine, and a node that is killed.

Starting a cluster takes longer than all other tests of campaigns, so `make test-ray` asks for these by name.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aclnn_cts.workers import shipping, slots
from tests.runs.campaign.test_campaigns import chunks, expect_the_same, fuzz
from tests.runs.campaign.test_kills import committed
from tests.support.ran import Ran, ran

__all__ = ["ran"]

if os.environ.get("ACLNN_CTS_RAY", "") in ("", "0"):
    pytest.skip("a Ray cluster takes half a minute to start; `make test-ray` runs these", allow_module_level=True)

ray = pytest.importorskip("ray")

Run = Callable[..., Ran]
CHUNKS = ("--chunks", "10")


@pytest.fixture(name="away")
def make_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder by which devices are sent away (`away_adapter`); nodes know of it that are started later."""
    folder = tmp_path / "away"
    folder.mkdir()
    monkeypatch.setenv("AWAY", str(folder))
    # The adapter is shipped to the nodes; what it imports of the tests has to be there.
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    monkeypatch.setattr(slots, "FIRST_PAUSE", 0.1)
    return folder


@pytest.fixture(name="cluster")
def local_cluster(away: Path) -> Iterator[Any]:
    from ray.cluster_utils import Cluster  # noqa: PLC0415 - an extra

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_gives_the_verdicts_of_one_machine(ran: Run, cluster: Any) -> None:
    cluster.add_node(num_cpus=0, resources={"NPU": 2})
    cluster.wait_for_nodes()
    here = fuzz(ran, "two", *CHUNKS)
    there = fuzz(ran, "two", *CHUNKS, "--workers", "2", "--cluster", cluster.address, "--resource", "NPU")
    assert there.code == here.code == 1, there.err
    expect_the_same(there, here)
    assert [entry.get("snapshot") for entry in chunks(there)] == [entry.get("snapshot") for entry in chunks(here)]


@pytest.mark.filterwarnings("ignore")
def test_a_node_that_is_killed_costs_one_chunk(ran: Run, cluster: Any) -> None:
    nodes = [cluster.add_node(num_cpus=0, resources={"NPU": 1}) for _ in range(2)]
    cluster.wait_for_nodes()
    here = fuzz(ran, "slow", *CHUNKS)
    path = here.path.with_name("killed")
    killed: list[int] = []

    def kill() -> None:
        while not killed:
            time.sleep(0.2)
            done = len(committed(path))
            if done >= 2:
                killed.append(done)
                cluster.remove_node(nodes[0], allow_graceful=False)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    there = fuzz(ran, "slow", *CHUNKS, "--workers", "2", "--cluster", cluster.address, "--resource", "NPU", out=path)
    killer.join(300.0)
    assert killed
    assert killed[0] < 10
    assert there.code == 1, there.err
    expect_the_same(there, here)
    assert [entry["index"] for entry in chunks(there)] == list(range(10))


AWAY = ("softmax_backward", "--chunk-trials", "64", "--adapter", "away_adapter:Away", "--devices", "0,1")


@pytest.mark.filterwarnings("ignore")
def test_a_device_that_cannot_be_opened_for_a_while_costs_nothing(ran: Run, cluster: Any, away: Path) -> None:
    cluster.add_node(num_cpus=0, resources={"NPU": 2})
    cluster.wait_for_nodes()
    for number in range(2):
        (away / f"worker-{number}").write_text("3")
    run = ran("fuzz", *AWAY, *CHUNKS, "--cluster", cluster.address, "--resource", "NPU")
    assert run.code == 0, run.err
    assert [entry["index"] for entry in chunks(run)] == list(range(10))
    assert run.result["errors"] == 0
    assert "given up" not in run.err
    assert "cannot be opened, and is tried again: device " in run.err
    assert "is open again, after " in run.err


@pytest.mark.filterwarnings("ignore")
def test_where_no_device_can_be_opened_it_ends_at_once(
    ran: Run, cluster: Any, away: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.add_node(num_cpus=0, resources={"NPU": 2})
    cluster.wait_for_nodes()
    ship = shipping.ship

    def ship_and_leave(folder: Path, adapter: str, spec_folders: tuple[Path, ...]) -> None:
        # After the head itself has opened one.
        ship(folder, adapter, spec_folders)
        for number in range(2):
            (away / f"down-{number}").write_text("1000000")

    monkeypatch.setattr("aclnn_cts.workers.ray_dispatch.ship", ship_and_leave)
    run = ran("fuzz", *AWAY, *CHUNKS, "--cluster", cluster.address, "--resource", "NPU")
    assert run.code == 3, run.err
    assert ": it does not answer" in run.err
    assert not chunks(run)
