"""What several checks share: which cases they take, which verdict on several calls decides, and values beside them.

The calls of a law or of a memory trial are supported, so that their outputs must be right. A trial has one verdict:
where both fail, the graver fault decides, and of two that are as grave the values, which say more of what is wrong.
`FAILED_CHECKS` names all that failed.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.faults import severity
from aclnn_cts.core.printable import shown
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import FAILED_CHECKS, UNJUDGED_VALUES, VALUE_CHECK, Result, Skip, Verdict
from aclnn_cts.speclang.evaluate import Evaluation


def demand_valid(trial: Trial, evaluation: Evaluation) -> None:
    """UsageError for a case that breaks a constraint."""
    if evaluation.broken:
        names = ", ".join(item.id for item in evaluation.broken)
        raise UsageError(
            f"a trial of {shown(trial.check)} takes a case that holds all constraints; this one breaks {names}"
        )


def demand_broken(trial: Trial, evaluation: Evaluation) -> None:
    """UsageError for a case that breaks no constraint."""
    if not evaluation.broken:
        raise UsageError(f"a trial of {shown(trial.check)} takes a case that breaks a constraint; this one holds all")


def deciding(verdicts: Sequence[Verdict], results: Sequence[str]) -> int | None:
    """The place of the verdict that decides: the first of the first of these results that one has; None: none has."""
    places = (place for result in results for place, item in enumerate(verdicts) if item.result == result)
    return next(places, None)


def of_call(verdict: Verdict, number: int, calls: int) -> Verdict:
    """The verdict of a trial of so many calls that the one on call `number` decides."""
    if calls == 1 or verdict.result != Result.FAILED:
        return verdict
    return msgspec.structs.replace(verdict, message=f"call {number} of {calls}: {verdict.message}")


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
        found = of_call(values[worst], worst + 1, len(values))
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
