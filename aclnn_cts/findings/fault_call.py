"""Which call of a failed trial shows the fault."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from aclnn_cts.checks.life_cycle import GROWN_BYTES
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.outcome import BufferState, Ended, Outcome

_UNTOUCHED = BufferState()


def call_at_fault(kind: str, output: str, outcomes: Sequence[Outcome]) -> int | None:
    """The number of the call that shows the fault, None where all of them do together."""

    def touched(outcome: Outcome, said: Callable[[BufferState], int]) -> bool:
        return bool(said(outcome.buffers.get(output, _UNTOUCHED)))

    tests: dict[str, Callable[[Outcome], bool]] = {
        Fault.CRASH: lambda item: item.ended not in (Ended.RETURNED, Ended.RAISED, Ended.TIME_LIMIT),
        Fault.HANG: lambda item: item.ended == Ended.TIME_LIMIT,
        Fault.GUARD: lambda item: touched(item, lambda state: state.guard_before + state.guard_after + state.gap),
        Fault.INPUT: lambda item: touched(item, lambda state: state.changed),
        Fault.UNWRITTEN: lambda item: touched(item, lambda state: state.unwritten),
        Fault.REJECTED: lambda item: item.ended == Ended.RAISED or bool(item.status),
        Fault.LEAK: lambda item: GROWN_BYTES in item.facts,
    }
    test = tests.get(kind)
    if test is None:
        # Of a broken call and its valid twin, the broken one is called last.
        return len(outcomes) - 1 if outcomes else None
    return next((number for number, item in enumerate(outcomes) if test(item)), None)
