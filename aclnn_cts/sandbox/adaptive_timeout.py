"""How long to wait for a call: the whole limit, until calls of one cause have hung often enough.

With a limit of 60 s a batch of 64 calls that all hang would take more than an hour. What hangs a fourth time is known
to hang, and what an ordinary call takes is known too. So does what hangs alone in a fresh process, in its whole time:
the same call is not waited for in full again. One cause is an operator, and the rule that its calls break: a library
that hangs on a format does so whatever the dtype.
"""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

from aclnn_cts.adapters.protocol import Call
from aclnn_cts.core.case_json import case_id
from aclnn_cts.core.outcome import CallEnd, Outcome

FULL_HANGS = 3
"""Hangs of one cause that are waited for in full, those of calls made again alone included."""

_FACTOR = 100.0
"""Times the longest ordinary call."""

_Cause: TypeAlias = tuple[str, str]
"""An operator, and the constraint that a call breaks."""


class AdaptiveTimeout:
    """The time limit of each call of a host."""

    def __init__(self, *, seconds: float, least: float) -> None:
        """`seconds` is the whole limit; a shorter one is `least` or more."""
        self._whole = seconds
        self._least = min(least, seconds)
        self._hangs: Counter[_Cause] = Counter()
        self._longest: dict[str, float] = {}
        """Seconds of an ordinary call, by operator."""
        self._largest: dict[str, int] = {}
        """Bytes of its buffers."""
        self._alone: dict[_Cause, set[str]] = {}
        """Ids of cases that have hung as the first of a fresh process, with the whole limit."""
        self._fresh = False
        """Whether the next call is the first of a process that was made for it."""

    def seconds(self, call: Call) -> float:
        """How long to wait: a hundred times the operator's longest ordinary call, once calls like it have hung.

        A call with larger buffers than any ordinary one gets more time in proportion. Calls of a group share a limit,
        and have the whole one.
        """
        if call.group is not None or not (self._hangs or self._alone):
            return self._whole
        if self._hangs[_cause(call)] < FULL_HANGS and not self._hung_alone(call):
            return self._whole
        operator = call.case.operator
        longest = self._longest.get(operator) or max(self._longest.values(), default=0.0)
        larger = max(_bytes(call) / max(self._largest.get(operator, 0), 1), 1.0)
        return min(max(self._least, _FACTOR * longest * larger), self._whole)

    def note_outcome(self, call: Call, outcome: Outcome) -> None:
        """Learn from a call that was made."""
        fresh, self._fresh = self._fresh, False
        if outcome.ended in (CallEnd.RETURNED, CallEnd.RAISED):
            operator = call.case.operator
            self._longest[operator] = max(outcome.seconds, self._longest.get(operator, 0.0))
            self._largest[operator] = max(_bytes(call), self._largest.get(operator, 0))
        elif outcome.ended == CallEnd.TIME_LIMIT and call.group is None:
            cause = _cause(call)
            if fresh and self.seconds(call) >= self._whole:
                self._alone.setdefault(cause, set()).add(case_id(call.case))
            self._hangs[cause] += 1
            if fresh and self._hung_alone(call):
                # It owes nothing to the calls before it, and neither do those like it that are tried next.
                self._hangs[cause] = FULL_HANGS

    def note(self, seconds: float) -> str:
        """What to say beside a limit that was shortened; empty for the whole one."""
        if seconds >= self._whole:
            return ""
        return f", the limit since calls like it took {self._whole:g} s and more"

    def note_fresh_process(self) -> None:
        """Know that the next call is the first of a fresh process."""
        self._fresh = True

    def _hung_alone(self, call: Call) -> bool:
        return _cause(call) in self._alone and case_id(call.case) in self._alone[_cause(call)]


def _cause(call: Call) -> _Cause:
    return call.case.operator, call.case.origin.constraint or ""


def _bytes(call: Call) -> int:
    return 0 if call.buffers is None else call.buffers.memory.nbytes
