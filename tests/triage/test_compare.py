from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from aclnn_cts.core.faults import Fault
from aclnn_cts.core.verdict import Record, Result, SkipReason
from aclnn_cts.store.events import TrialsPlanned
from aclnn_cts.store.manifest import Fact, Manifest
from aclnn_cts.store.run_writer import create_run
from aclnn_cts.triage.compare import EXAMPLES, compare_runs, comparison_to_json, manifest_differences
from aclnn_cts.triage.comparison import FindingChange, FindingState, RunComparison
from tests.support.build_records import EMBEDDING, make_manifest, make_record

FAILED: dict[str, Any] = {"result": Result.FAILED, "kind": Fault.VALUE, "output": "out"}

Compare = Callable[..., RunComparison]


def store(path: Path, records: Iterable[Record], **manifest: Any) -> Path:
    specs = manifest.pop("spec_files", {"softmax_backward.yaml": b"a"})
    with create_run(path, manifest=make_manifest(**manifest), specs=specs) as writer:
        held = list(records)
        for record in held:
            case = record.trial.case
            writer(TrialsPlanned(operator=case.operator, kind=case.origin.kind, number=1))
        writer.append(held)
        writer.finish()
    return path


@pytest.fixture(name="compare")
def compare_stored(tmp_path: Path) -> Compare:
    def compare(
        before: Iterable[Record],
        after: Iterable[Record],
        *,
        first: dict[str, Any] | None = None,
        second: dict[str, Any] | None = None,
    ) -> RunComparison:
        return compare_runs(
            store(tmp_path / "before", before, **(first or {})), store(tmp_path / "after", after, **(second or {}))
        )

    return compare


def only(findings: Iterable[FindingChange]) -> FindingChange:
    [finding] = findings
    return finding


def test_the_same_records_have_not_changed(compare: Compare) -> None:
    records = [make_record(0), make_record(1, **FAILED), make_record(2, result=Result.SKIPPED, kind=SkipReason.OPEN)]
    found = compare(records, reversed(records))
    assert not found.changed
    assert found.totals() == {
        "common": 3,
        "new_failures": 0,
        "fixed": 0,
        "still_failing": 1,
        "other_ends": 0,
        "added_cases": 0,
        "removed_cases": 0,
        "moved_shares": 0,
    }
    finding = only(found.findings)
    assert (finding.state, finding.still) == (FindingState.STILL, 1)


def test_every_change_of_a_trial_is_told_once(compare: Compare) -> None:
    other: dict[str, Any] = {"result": Result.FAILED, "kind": Fault.GUARD, "output": "out"}
    skipped: dict[str, Any] = {"result": Result.SKIPPED, "kind": SkipReason.OPEN}
    before = [
        make_record(0),
        make_record(1, **FAILED),
        make_record(2, **FAILED),
        make_record(3, **FAILED),
        make_record(4, **FAILED),
        make_record(5, **FAILED),
        make_record(6),
        make_record(7, operator=EMBEDDING),
        make_record(9, **skipped),
    ]
    after = [
        make_record(0, **FAILED),
        make_record(1),
        make_record(2, **FAILED),
        make_record(3, **other),
        make_record(4, **skipped),
        make_record(6, **skipped),
        make_record(8, **FAILED),
        make_record(9, **FAILED),
    ]
    found = compare(before, after)
    assert found.changed
    totals = found.totals()
    assert (found.common, totals["new_failures"], totals["fixed"], totals["still_failing"]) == (7, 3, 1, 2)
    assert found.otherwise == 1
    by_kind = {item.fingerprint.fault: item for item in found.findings}
    value, stray = by_kind[Fault.VALUE], by_kind[Fault.GUARD]
    assert value.state == FindingState.STILL
    assert (value.before, value.after, value.still, value.new, value.fixed) == (5, 4, 1, 2, 1)
    assert (value.otherwise, value.unjudged, value.added, value.removed) == (1, 1, 1, 1)
    assert (stray.state, stray.before, stray.after, stray.otherwise) == (FindingState.NEW, 0, 1, 1)
    assert {(item.before, item.after, item.number) for item in found.ends} == {
        ("passed", "skipped: open", 1),
        ("failed", "skipped: open", 1),
    }
    assert [(item.number, item.failed) for item in found.added] == [(1, 1)]
    assert sorted((item.operator, item.number, item.failed) for item in found.removed) == [
        (EMBEDDING, 1, 0),
        (make_record().trial.case.operator, 1, 1),
    ]


@pytest.mark.parametrize(
    ("after", "state"),
    [
        ([make_record(1)], FindingState.FIXED),
        ([make_record(2)], FindingState.GONE),
        ([make_record(1, result=Result.ERROR)], FindingState.GONE),
    ],
)
def test_what_no_trial_shows_to_be_mended_is_not_called_fixed(
    compare: Compare, after: list[Record], state: str
) -> None:
    assert only(compare([make_record(1, **FAILED)], after).findings).state == state


def test_shares_of_the_bound_that_moved(compare: Compare) -> None:
    before = [
        make_record(0, error_ratio=0.25),
        make_record(1, error_ratio=0.5),
        make_record(2, error_ratio=0.1, dtype="BF16"),
    ]
    after = [
        make_record(0, error_ratio=0.75),
        make_record(1, error_ratio=0.4),
        make_record(2, error_ratio=0.1, dtype="BF16"),
    ]
    [moved] = compare(before, after).error_ratio_changes
    assert (moved.dtype, moved.trials, moved.rose, moved.fell) == ("FLOAT", 2, 1, 1)
    assert (moved.before.error_ratio, moved.before.trial) == (0.5, before[1].trial_id)
    assert (moved.after.error_ratio, moved.after.trial, moved.after.output) == (0.75, after[0].trial_id, "out")


def test_a_waiver_that_came_is_a_change(compare: Compare) -> None:
    found = compare([make_record(1, **FAILED)], [make_record(1, waiver="known", **FAILED)])
    finding = only(found.findings)
    assert found.changed
    assert (finding.state, finding.waivers_before, finding.waivers_after) == (FindingState.STILL, (), ("known",))
    assert (finding.unwaived_before, finding.unwaived_after) == (1, 0)


def test_trials_that_are_named_are_few(compare: Compare) -> None:
    number = EXAMPLES + 5
    finding = only(compare(map(make_record, range(number)), [make_record(n, **FAILED) for n in range(number)]).findings)
    assert finding.new == number
    assert len(finding.trials) == EXAMPLES


def test_differences_of_manifests() -> None:
    first = make_manifest(environment={"machine.cpu": Fact("x"), "adapter.version": Fact("1")}, arguments=("a",))
    second: Manifest = msgspec.structs.replace(
        first, seed=8, started="later", arguments=("b",), environment={"adapter.version": Fact("2")}
    )
    assert [(item.name, item.before, item.after) for item in manifest_differences(first, second)] == [
        ("seed", 7, 8),
        ("environment.machine.cpu", "x", None),
        ("environment.adapter.version", "1", "2"),
    ]


def test_the_json_is_plain(compare: Compare) -> None:
    found = compare([make_record(1)], [make_record(1, **FAILED)])
    document = json.loads(json.dumps(comparison_to_json(found), allow_nan=False))
    assert document["format"] == "aclnn-cts/comparison/3"
    assert document["changed"] is True
    assert document["totals"]["new_failures"] == 1
    assert document["findings"][0]["fingerprint"]["fault"] == Fault.VALUE
