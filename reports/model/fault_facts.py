"""What a failure is in figures, for forms that make a sentence of it in another language than its recorded message."""

from __future__ import annotations

from dataclasses import replace

from aclnn_cts.adapters.results import dtype_fact, shape_fact
from aclnn_cts.checks.life_cycle import GROWN_BYTES
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.outcome import BufferState
from aclnn_cts.core.statuses import ANY_ERROR, SUCCESS, status_name
from aclnn_cts.core.verdict import Record
from aclnn_cts.findings.fault_call import call_at_fault
from aclnn_cts.reports.model.acceptance_findings import FaultFacts
from aclnn_cts.speclang.model import Spec

__all__ = ["fault_facts"]

_UNTOUCHED = BufferState()


def fault_facts(record: Record, spec: Spec) -> FaultFacts:
    """The figures of the call at fault, of the record's first attempt."""
    outcomes = record.attempts[0] if record.attempts else ()
    kind, output = record.verdict.kind, record.signature.output
    found = FaultFacts(basis=record.verdict.basis, calls=len(outcomes))
    number = call_at_fault(kind, output, outcomes)
    if number is None:
        return found
    outcome = outcomes[number]
    state = outcome.buffers.get(output, _UNTOUCHED)
    grown = outcome.facts.get(GROWN_BYTES)
    return replace(
        found,
        call=number + 1,
        ended=outcome.ended,
        signal=outcome.signal,
        seconds=outcome.seconds,
        returned=status_name(outcome.status) if outcome.status is not None else "",
        promised=_promised(record, spec),
        unwritten=state.unwritten,
        guard_before=state.guard_before,
        guard_after=state.guard_after,
        gap=state.gap,
        changed=state.changed,
        grown=grown if isinstance(grown, int) else 0,
        form=str(outcome.facts.get((shape_fact if kind == Fault.SHAPE else dtype_fact)(output), "")),
    )


def _promised(record: Record, spec: Spec) -> tuple[str, ...]:
    constraint = record.signature.constraint
    if record.verdict.kind != Fault.STATUS or not constraint:
        return (SUCCESS,)
    known = {item.id: item for item in spec.constraints}
    return (known[constraint].statuses if constraint in known else ()) or (ANY_ERROR,)
