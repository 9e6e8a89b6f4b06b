"""Which call broke the device: a fault may show only in a later call than the one that caused it.

A device runs asynchronously, so that the call which is told of a fault need not be to blame. It is only where it meets
the fault alone in a fresh process too. Else the calls before it are tried: the fault is that of the one after which it
comes again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

import msgspec

from aclnn_cts.adapters.protocol import Call
from aclnn_cts.core.case_json import case_id
from aclnn_cts.core.delta_debugging import shortest_end
from aclnn_cts.core.outcome import EARLIER_FAULT, CallEnd, Outcome
from aclnn_cts.sandbox.batch import groups, has_device_fault

Again = Callable[[Sequence[int]], Sequence[Outcome]]

_PROCESS_WENT_ON = frozenset({CallEnd.RETURNED, CallEnd.RAISED, CallEnd.INEXPRESSIBLE, CallEnd.NOT_RUN})
_NAMED = 4
"""Calls of a batch that a message names."""


def attribute_faults(
    calls: Sequence[Call], outcomes: Sequence[Outcome], *, alone: Again, company: Again, trials: int | None = None
) -> list[Outcome]:
    """The outcomes of a batch, with each fault of the device given to the call that causes it.

    - `alone`: makes the calls of these places again, in a fresh process and their own buffers.
    - `company`: makes them in a fresh process and in memory of their own, so that nothing else changes.
    - `trials`: so many calls are the batch's own; those after them only look whether the device is well.

    A call that a fault is reported for, and that nothing shows to cause it, keeps it, with the calls before it.
    """
    found = list(outcomes)
    own = len(calls) if trials is None else trials
    first = 0
    for members in groups(calls):
        told = [found[member] for member in members]
        went_on = all(item.ended in _PROCESS_WENT_ON for item in told)
        if has_device_fault(told):
            before = range(min(first, own), min(members.start, own))
            _settle(calls, found, before, members, alone=alone, company=company, own=own)
            if went_on:
                first = members.start
        if not went_on:
            first = members.stop
    return found


def _settle(
    calls: Sequence[Call],
    found: list[Outcome],
    before: range,
    members: range,
    *,
    alone: Again,
    company: Again,
    own: int,
) -> None:
    told = next(item for item in (found[member] for member in members) if has_device_fault([item]))
    earlier = EARLIER_FAULT in told.facts
    message = (str(told.facts[EARLIER_FAULT]) if earlier else told.message).partition("\n")[0]
    conforming: Sequence[Outcome] = ()
    if not earlier and before:
        conforming = alone(members)
        if has_device_fault(conforming):
            return
    culprit = _culprit(calls, before, members, company)
    if culprit:
        if conforming:
            for member, outcome in zip(members, conforming, strict=True):
                found[member] = outcome
        for member in culprit:
            said = f"{message}; it shows in a call after this one, and does so again where this one alone is before it"
            found[member] = _fault(found[member], said)
        return
    if not before or (earlier and culprit is None):
        # Nothing of this batch was before it, so that it has met the fault as good as alone; or the fault of a call
        # before it does not come again, and nothing can be said of whose it was.
        return
    names = ", ".join(case_id(calls[member].case)[:12] for member in before[-_NAMED:])
    more = f" and {len(before) - _NAMED} before these" if len(before) > _NAMED else ""
    said = (
        f"{message}; the call does not fail alone in a fresh process, nor after one earlier call: only after all "
        f"{len(before)} calls before it in its batch (cases {names}{more})"
    )
    # A look at the device is no trial: what it shows is told of the last call.
    where = members[0] if members[0] < own else before[-1]
    found[where] = _fault(found[where], said)


def _culprit(calls: Sequence[Call], before: range, members: range, company: Again) -> Sequence[int] | None:
    """The places of the call, or of the group, after which alone the fault comes again.

    Empty where it comes again after all of them together, and None where it does not.
    """
    if not before or not has_device_fault(company([*before, *members])):
        return None
    earlier = list(groups(calls, before.start, before.stop))
    end = shortest_end(earlier, lambda last: has_device_fault(company([*chain.from_iterable(last), *members])))
    if len(end) == 1 or has_device_fault(company([*end[0], *members])):
        return end[0]
    return ()


def _fault(outcome: Outcome, message: str) -> Outcome:
    facts = {name: value for name, value in outcome.facts.items() if name != EARLIER_FAULT}
    return msgspec.structs.replace(outcome, ended=CallEnd.DEVICE_FAULT, message=message, facts=facts)
