from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from syrupy.assertion import SnapshotAssertion

from aclnn_cts.core.faults import Fault
from aclnn_cts.core.verdict import Result
from aclnn_cts.store.events import TrialsPlanned
from aclnn_cts.store.manifest import Fact
from aclnn_cts.store.run_writer import create_run
from tests.cli.conftest import Called
from tests.support.build_records import make_manifest, make_record

FAILED: dict[str, Any] = {"result": Result.FAILED, "kind": Fault.VALUE, "output": "out"}


def store(name: str, *failing: int, version: str = "1", number: int = 4) -> None:
    manifest = make_manifest(environment={"adapter.version": Fact(version)})
    with create_run(Path(name), manifest=manifest, specs={}) as writer:
        writer(TrialsPlanned(operator=make_record().trial.case.operator, kind="valid", number=number))
        writer.append(
            [
                make_record(n, error_ratio=0.5 / float(version), **(FAILED if n in failing else {}))
                for n in range(number)
            ]
        )
        writer.finish()


def test_what_changed_is_told(call: Callable[..., Called], snapshot: SnapshotAssertion) -> None:
    store("a", 0, 1)
    store("b", 1, 2, 4, version="2", number=5)
    called = call("compare", "a", "b")
    assert called.code == 1
    assert called == snapshot


def test_nothing_changed(call: Callable[..., Called]) -> None:
    store("a", 1)
    called = call("compare", "a", "a")
    assert (called.code, called.err) == (0, "")
    assert called.out.endswith("no trial was added, removed, ended otherwise, or moved within its bound\n")


def test_campaigns_keep_few_records(call: Callable[..., Called]) -> None:
    with create_run(Path("c"), manifest=make_manifest(command="fuzz"), specs={}) as writer:
        writer.finish()
    store("a")
    assert "a campaign keeps the records of few of its trials" in call("compare", "a", "c").out
    assert "a campaign" not in call("compare", "a", "a").out


def test_runs_of_two_seeds_have_other_plans(call: Callable[..., Called]) -> None:
    store("a", 1)
    manifest = make_manifest(seed=8)
    with create_run(Path("b"), manifest=manifest, specs={}) as writer:
        writer.append([make_record(n, **FAILED) for n in range(10, 14)])
        writer.finish()
    shown = " ".join(call("compare", "a", "b").out.split())
    assert "the plans differ (seed 7 in A, 8 in B)" in shown
    assert shown.index("the plans differ") < shown.index("0 trials in both")
    assert "the plans differ" not in call("compare", "a", "a").out


def test_json_stands_alone(call: Callable[..., Called]) -> None:
    store("a", 1)
    store("b")
    called = call("compare", "a", "b", "--json")
    [document] = called.lines
    assert (called.code, document["changed"], document["totals"]["fixed"]) == (1, True, 1)


def test_a_folder_that_is_no_run(call: Callable[..., Called]) -> None:
    store("a")
    called = call("compare", "a", "nowhere")
    assert (called.code, called.out) == (2, "")
    assert called.err == "error: nowhere: holds no manifest.json; expected the directory that a run wrote\n"
