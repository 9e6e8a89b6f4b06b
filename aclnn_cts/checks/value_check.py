"""Values beside another check: the calls of a law or of a memory trial are supported, so their outputs must be right.

A trial has one verdict. Both checks may fail; the graver fault decides, and of two that are as grave the values, which
say more of what is wrong. `FAILED_CHECKS` names all that failed.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from aclnn_cts.core.faults import severity
from aclnn_cts.core.verdict import FAILED_CHECKS, UNJUDGED_VALUES, VALUE_CHECK, Result, Skip, Verdict


def with_values(own: Verdict, values: Sequence[Verdict], *, check: str) -> Verdict:
    """The verdict of a trial.

    - `own`: of its own check, whose name is `check`, once its calls came back in form.
    - `values`: of each call by itself, in their order.

    A dispute of oracles takes the place of a pass. Other values that cannot be judged leave `own` as it is, with the
    fact why.
    """
    if (broken := next((item for item in values if item.result == Result.ERROR), None)) is not None:
        return broken
    wrong = [place for place, item in enumerate(values) if item.result == Result.FAILED]
    failed = own.result == Result.FAILED
    if wrong:
        worst = min(wrong, key=lambda place: (severity(values[place].kind).order, place))
        found = _of_call(values[worst], worst + 1, len(values))
        if not failed:
            return _with_checks(found, VALUE_CHECK)
        values_first = severity(found.kind).order <= severity(own.kind).order
        first, second = (found, own) if values_first else (own, found)
        both = msgspec.structs.replace(first, message=f"{first.message}; also: {second.message}")
        return _with_checks(both, *((VALUE_CHECK, check) if values_first else (check, VALUE_CHECK)))
    if failed:
        return _with_checks(own, check)
    unjudged = [item for item in values if item.result != Result.PASSED]
    if (dispute := next((item for item in unjudged if item.kind == Skip.DISPUTE), None)) is not None:
        return dispute
    if unjudged:
        return msgspec.structs.replace(own, facts={**own.facts, UNJUDGED_VALUES: unjudged[0].kind})
    return own


def _with_checks(verdict: Verdict, *checks: str) -> Verdict:
    return msgspec.structs.replace(verdict, facts={**verdict.facts, FAILED_CHECKS: list(checks)})


def _of_call(verdict: Verdict, number: int, calls: int) -> Verdict:
    if calls == 1:
        return verdict
    return msgspec.structs.replace(verdict, message=f"call {number} of {calls}: {verdict.message}")
