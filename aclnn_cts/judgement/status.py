"""The verdict on a call that breaks a documented constraint: what came back, and what the document promises of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from aclnn_cts.core.faults import Family, Fault
from aclnn_cts.core.observations import Observation, of_another_class
from aclnn_cts.core.outcome import Ended, Outcome
from aclnn_cts.core.statuses import STATUSES, SUCCESS, conforms, status_name
from aclnn_cts.core.verdict import ALSO_STATUS, Judged, OutOfScope, Result, Skip, Verdict
from aclnn_cts.judgement.verdict import OUTPUT_FACT, ended_badly, memory_fault, status_text

ACCEPTED_FACT = "accepted"
"""The key of `Verdict.facts` on a broken call that came back without a status: whether it was accepted."""

_OF_OUTPUTS = Fault.of(Family.VALUES, Family.OUTPUT)


def judge_status(
    *,
    outcome: Outcome,
    allowed: tuple[str, ...],
    strength: str,
    constraint: str,
    values: Callable[[], Verdict] | None = None,
    has_statuses: bool = True,
) -> Verdict:
    """Judge one call that breaks the constraint of that id.

    - `allowed`: the statuses that conform (`core.statuses.conforms`).
    - `strength`: `listed`, `limit`, `open` or `accuracy`. Whatever it is, a crash, a hang, a stray write and a changed
      input are faults. What is listed is to be refused by phase one, where both phases were called. An open one is
      never a fault of status: it is skipped, and what came back is a fact. Where accuracy alone is withdrawn, success
      passes whatever the values.
    - `values`: judges the outputs of a success beyond a limit; None where no oracle can.
    - `has_statuses`: whether the adapter returns aclnn statuses. Without them a clear rejection (`Outcome.rejected`)
      passes where the document promises an error. Any other call is out of scope; whether it was accepted is a fact.
    """
    if (verdict := ended_badly(outcome)) is not None:
        return verdict
    if (of_memory := memory_fault(outcome)) is not None:
        verdict = _of_status(outcome, allowed, strength, constraint, values=None, has_statuses=has_statuses)
        if verdict.kind != Fault.STATUS:
            return of_memory
        return msgspec.structs.replace(of_memory, facts={**of_memory.facts, ALSO_STATUS: verdict.facts["status"]})
    return _of_status(outcome, allowed, strength, constraint, values=values, has_statuses=has_statuses)


def _of_status(
    outcome: Outcome,
    allowed: tuple[str, ...],
    strength: str,
    constraint: str,
    *,
    values: Callable[[], Verdict] | None,
    has_statuses: bool,
) -> Verdict:
    """On a call that came back and left memory alone; arguments as of `judge_status`."""
    raised = outcome.ended == Ended.RAISED
    if not has_statuses:
        accepted = not raised and not outcome.status
        word = "accepted" if accepted else "rejected"
        message = f"{word} by an implementation that returns no status: {constraint}"
        facts: dict[str, Any] = {ACCEPTED_FACT: accepted}
        if outcome.rejected:
            if SUCCESS not in allowed:
                return Verdict(result=Result.PASSED, message=message, judged=Judged.STATUS, facts=facts)
            message = f"{message}; the document promises no error"
        return Verdict(result=Result.OUT_OF_SCOPE, kind=OutOfScope.STATUSES, message=message, facts=facts)
    status = None if raised or outcome.status is None else status_name(outcome.status)
    what = f"the call raised and {status_text(outcome)}" if raised else status_text(outcome)
    if strength == "open":
        message = f"{what}; the document leaves {constraint} open"
        return Verdict(result=Result.SKIPPED, kind=Skip.OPEN, message=message, facts={"status": status or "none"})
    if status is None or not conforms(status, allowed):
        message = f"{what}, expected {' or '.join(allowed)} as {constraint} is broken"
        return Verdict(result=Result.FAILED, kind=Fault.STATUS, message=message, facts={"status": status or "none"})
    if strength == "listed" and outcome.phase_one == STATUSES[SUCCESS] and status != SUCCESS:
        # specs/interface.yaml, phases.6: the checks of the arguments belong to phase one, which returns their status.
        message = (
            f"phase one returned {SUCCESS}, and {what}; phase one checks the arguments, and {constraint} is broken"
        )
        return Verdict(result=Result.FAILED, kind=Fault.STATUS, message=message, facts={"status": status})
    if status == SUCCESS and strength == "limit":
        return _beyond_limit(constraint, values)
    returned: dict[str, Any] = {"status": status}
    if not of_another_class(status, allowed):
        return Verdict(result=Result.PASSED, judged=Judged.STATUS, facts=returned)
    returned[Observation.STATUS_CLASS.value] = True
    message = f"{what}, where {constraint} is broken and an argument error (161xxx) is suggested"
    return Verdict(result=Result.PASSED, judged=Judged.STATUS, message=message, facts=returned)


def _beyond_limit(constraint: str, values: Callable[[], Verdict] | None) -> Verdict:
    facts: dict[str, Any] = {"status": SUCCESS, Observation.LIMIT.value: True}
    message = f"the limit of {constraint} is not enforced"
    if values is None:
        return _nothing_known(f"{message}; values were not judged", facts)
    verdict = values()
    if verdict.result == Result.PASSED:
        return msgspec.structs.replace(verdict, message=f"{message}; the values are right", facts=facts)
    if verdict.result == Result.SKIPPED:
        return _nothing_known(f"{message}; values were not judged: {verdict.message}", facts)
    if verdict.result == Result.FAILED and verdict.kind in _OF_OUTPUTS:
        if OUTPUT_FACT in verdict.facts:
            facts[OUTPUT_FACT] = verdict.facts[OUTPUT_FACT]
        message = f"{constraint} is broken, the call succeeded, and {verdict.message}"
        return msgspec.structs.replace(verdict, kind=Fault.LIMIT_VALUE, message=message, facts=facts)
    return verdict


def _nothing_known(message: str, facts: Mapping[str, Any]) -> Verdict:
    """Beyond a limit any status conforms, so that one without values says nothing."""
    return Verdict(result=Result.SKIPPED, kind=Skip.OPEN, message=message, facts=facts)
