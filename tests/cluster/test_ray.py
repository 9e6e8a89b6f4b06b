"""Campaigns on a local Ray cluster with fake NPUs: the verdicts of one machine, and a node that is killed.

Starting a cluster takes longer than all other tests of campaigns, so `make test-ray` asks for these by name.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from aclnn_cts.engine.run_directory import RunDirectory
from tests.engine.campaign.test_campaigns import chunks, findings, fuzz, verdicts
from tests.engine.conftest import Ran, ran

__all__ = ["ran"]

if os.environ.get("ACLNN_CTS_RAY", "") in ("", "0"):
    pytest.skip("a Ray cluster takes half a minute to start; `make test-ray` runs these", allow_module_level=True)

ray = pytest.importorskip("ray")

Run = Callable[..., Ran]
CHUNKS = ("--chunks", "10")


@pytest.fixture(name="cluster")
def local_cluster() -> Iterator[Any]:
    from ray.cluster_utils import Cluster  # noqa: PLC0415 - an extra

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_gives_the_verdicts_of_one_machine(ran: Run, cluster: Any) -> None:
    cluster.add_node(num_cpus=0, resources={"NPU": 2})
    cluster.wait_for_nodes()
    here = fuzz(ran, "tail", *CHUNKS)
    there = fuzz(ran, "tail", *CHUNKS, "--workers", "2", "--cluster", cluster.address, "--resource", "NPU")
    assert there.code == here.code == 1, there.err
    assert verdicts(there) == verdicts(here)
    assert {**there.result, "run": ""} == {**here.result, "run": ""}
    assert [entry.get("snapshot") for entry in chunks(there)] == [entry.get("snapshot") for entry in chunks(here)]
    assert {item.signature for item in findings(there)} == {item.signature for item in findings(here)}


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
            if not (path / "results.sqlite").exists():
                continue
            with RunDirectory(path).results() as results:
                done = sum(1 for _ in results.states("chunk/"))
            if done >= 2:
                cluster.remove_node(nodes[0], allow_graceful=False)
                killed.append(done)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    there = fuzz(ran, "slow", *CHUNKS, "--workers", "2", "--cluster", cluster.address, "--resource", "NPU", out=path)
    assert killed
    assert there.code == 1, there.err
    assert verdicts(there) == verdicts(here)
    assert [entry["index"] for entry in chunks(there)] == list(range(10))
    assert {**there.result, "run": ""} == {**here.result, "run": ""}
