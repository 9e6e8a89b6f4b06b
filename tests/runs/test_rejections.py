"""Implementations without statuses that reject broken calls with errors of their own (`Capabilities.rejections`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from aclnn_cts.bundle.verify import verify_bundle
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.outcome import SUCCESS, CallEnd
from aclnn_cts.core.trial import trial_to_json
from aclnn_cts.core.verdict import OutOfScope, Record, Result, SkipReason
from aclnn_cts.reports.model.attribution import NO_STATUS, EvidenceCounts
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.trials.plan import Part
from aclnn_cts.trials.verdicts import is_sampled
from tests.support.ran import Ran
from tests.support.rejecting_adapter import Rejecting
from tests.support.trial_runs import bench, specs

SOFTMAX = "aclnnSoftmaxBackward"
SPEC = specs()[SOFTMAX]


@cache
def broken_calls(what: str, says: str = "declared") -> list[Record]:
    """Two trials for each constraint, and one beyond each limit."""
    made = bench(Rejecting(what, says))
    parts = [
        Part(SOFTMAX, check, "invalid", item.id, count=2)
        for item in SPEC.constraints_for("atlas-a2")
        for check in ("status", "boundary")
    ]
    found = [record for _, _, judged in made.run_parts(parts, seed=1) for record in judged.records]
    return [record for record in found if "twin" in record.trial.parameters]


def promised_errors(records: list[Record]) -> Iterator[Record]:
    """Those of calls that can be made and that the document promises an error for."""
    for record in records:
        statuses = evaluate(SPEC, record.trial.case).statuses
        if SUCCESS not in statuses and record.verdict.kind not in (SkipReason.INEXPRESSIBLE, SkipReason.UNSAFE):
            yield record


def test_a_rejection_passes_where_the_document_checks_an_error() -> None:
    records = broken_calls("broken")
    promised = {id(record) for record in promised_errors(records)}
    assert len(promised) > 20
    for record in records:
        passed = record.verdict.result == Result.PASSED
        assert passed == (id(record) in promised), record.verdict
        if passed:
            assert record.verdict.facts == {"accepted": False}
            twin, own = record.attempts[0]
            assert (twin.ended, own.ended, own.rejected) == (CallEnd.RETURNED, CallEnd.RAISED, True)
            assert twin.buffers["out"].sha256, "the valid twin is a whole call where there is no first phase"


@pytest.mark.parametrize(
    ("what", "says", "kind", "message"),
    [
        ("broken", "undeclared", OutOfScope.STATUSES, "rejected by an implementation that returns no status"),
        ("broken", "vague", OutOfScope.STATUSES, "rejected by an implementation that returns no status"),
        ("nothing", "declared", OutOfScope.STATUSES, "accepted by an implementation that returns no status"),
    ],
)
def test_no_other_answer_to_a_broken_call_is_judged(what: str, says: str, kind: str, message: str) -> None:
    records = broken_calls(what, says)
    assert {record.verdict.result for record in records} <= {Result.SKIPPED, Result.OUT_OF_SCOPE}
    promised = list(promised_errors(records))
    assert promised
    for record in promised:
        assert record.verdict.kind == kind
        assert record.verdict.message.startswith(message)


def test_a_rejected_twin_is_a_rejected_valid_call() -> None:
    """A waiver may cover it; what the broken call does is not judged beside it."""
    promised = list(promised_errors(broken_calls("everything", "declared")))
    assert promised
    for record in promised:
        assert (record.verdict.result, record.verdict.kind) == (Result.FAILED, Fault.REJECTED)
        assert record.verdict.message.startswith("the valid twin ended with raised")


def test_an_undeclared_rejection_is_recorded_as_a_raise() -> None:
    ends = [record.attempts[0][-1] for record in broken_calls("broken", "undeclared") if record.attempts[0]]
    assert any(outcome.ended == CallEnd.RAISED for outcome in ends)
    assert not any(outcome.rejected for outcome in ends)


def test_a_rejection_says_nothing_of_a_clause_on_a_status() -> None:
    said = EvidenceCounts()
    passed = [record for record in broken_calls("broken") if record.verdict.result == Result.PASSED]
    for record in passed:
        said.add(record)
    assert (said.passed, said.skipped) == (0, {NO_STATUS: len(passed)})


def test_a_run_is_judged_again_from_its_bundle(ran: Callable[..., Ran], tmp_path: Path) -> None:
    made = bench(Rejecting())
    trials = made.expand(Part(SOFTMAX, "status", "invalid", "dim.range", count=400), seed=1)
    kept = [trial for trial in trials if is_sampled(trial.id)]
    assert kept
    cases = tmp_path / "cases.jsonl"
    cases.write_text("\n".join(json.dumps(trial_to_json(trial)) for trial in kept), encoding="utf-8")
    judged = ran("run", "--cases", str(cases), "--adapter", "rejecting_adapter:Rejecting")
    assert judged.kinds == ["passed"] * len(kept)
    bundle = ran("bundle", str(judged.path), out=tmp_path / "run.zip")
    found = verify_bundle(bundle.path, recompute=len(kept))
    assert (found.problems, found.recomputed) == ((), len(kept))
