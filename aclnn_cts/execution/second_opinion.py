"""Who is right? A failure is put to a second oracle before anyone is accused.

The second oracle is another formulation of the same mathematics, one element at a time: in rational arithmetic
(`exact` in the operator's oracle file), or the formula itself in 50 digits.
Where the two oracles differ by more than the bound, the verdict is a dispute.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.expected import Expected, OracleInput
from aclnn_cts.core.faults import Family, Fault
from aclnn_cts.core.verdict import DISPUTE_FACT, SECOND_ORACLE, Deviation, Result, SkipReason, Verdict
from aclnn_cts.formula.expectation import FormulaOracle
from aclnn_cts.judgement.compare import compare_all
from aclnn_cts.judgement.comparison import ComparedOutput
from aclnn_cts.judgement.verdict import OUTPUT_FACT
from aclnn_cts.oracles.registry import SecondOracle

__all__ = ["FORM_FACT", "SecondOracle", "name_matching_form", "review"]

FORM_FACT = "form"
"""Key in a failed verdict's facts: the further form of the formula that the output conforms to."""

_BEYOND = "beyond float64"

_OF_ELEMENTS = Fault.of(Family.VALUES, Family.TOLERANCE) | {Fault.LIMIT_VALUE}


def review(verdict: Verdict, question: OracleInput, expected: Expected, second: SecondOracle | None) -> Verdict:
    """The verdict, with the fact that a second oracle agrees, or a dispute in its place.

    Verdicts that are no failure of values pass through. So do those on inputs with inf or nan, which rational
    arithmetic has no words for; the fact says so.
    """
    if second is None or verdict.result != Result.FAILED or verdict.kind not in _OF_ELEMENTS:
        return verdict
    name = str(verdict.facts.get(OUTPUT_FACT, ""))
    deviation = next((entry for entry in verdict.deviations if entry.output == name), None)
    if deviation is None:
        return verdict
    if not _finite(question.tensors):
        return _with_fact(verdict, "not asked: the inputs hold inf or nan")
    try:
        value = second(question, name, deviation.cell)
    except ZeroDivisionError:
        return _with_fact(verdict, "not asked: the formula divides by 0 there")
    if value is None:
        return _with_fact(verdict, "not asked: the element depends on too many others")
    first = float(np.broadcast_to(expected[name].value, question.shape(name))[deviation.cell])
    if math.isfinite(first) and abs(Fraction(first) - value) <= Fraction(_allowance(deviation, first)):
        return _with_fact(verdict, f"agrees: {_shown(value)}")
    shown = _shown(value)
    message = (
        f"two oracles disagree on {deviation.place}: {first!r} in float64, {shown} in rational "
        f"arithmetic; no one is accused, report this to the maintainers of aclnn-cts"
    )
    told = {"output": name, "index": list(deviation.index), "first": repr(first)}
    return Verdict(
        result=Result.SKIPPED,
        kind=SkipReason.DISPUTE,
        message=message,
        mode=verdict.mode,
        deviations=verdict.deviations,
        facts={DISPUTE_FACT: told | {"second": "" if shown == _BEYOND else shown}},
    )


def name_matching_form(
    verdict: Verdict, question: OracleInput, forms: Sequence[FormulaOracle], outputs: Mapping[str, ComparedOutput]
) -> Verdict:
    """The verdict, with the name of a further form of the formula that conforms to what came back, if there is one.

    It stays a failure: the form that judges decides, and others say how an implementation may have come to it.
    """
    name = str(verdict.facts.get(OUTPUT_FACT, ""))
    if verdict.result != Result.FAILED or verdict.kind not in _OF_ELEMENTS or name not in outputs:
        return verdict
    item = outputs[name]
    for form in forms:
        by_form = msgspec.structs.replace(item, expected=form(question)[name])
        if not compare_all([by_form])[0].kind:
            text = f"{verdict.message}; it is what the formula gives as `{form.name}`"
            return msgspec.structs.replace(verdict, message=text, facts={**verdict.facts, FORM_FACT: form.name})
    return verdict


def _allowance(deviation: Deviation, first: float) -> float:
    """How far apart the oracles may be: the bound, and what float64 itself rounds where the bound is 0."""
    bound = deviation.bound if math.isfinite(deviation.bound) else 0.0
    cancellation = deviation.cancellation if math.isfinite(deviation.cancellation) else 1.0
    return max(bound, abs(first) * 2.0**-50 * max(cancellation, 1.0))


def _finite(tensors: Mapping[str, NDArray[Any]]) -> bool:
    return all(bool(np.isfinite(array).all()) for array in tensors.values() if array.dtype == np.float64)


def _shown(value: Fraction) -> str:
    try:
        return repr(float(value))
    except OverflowError:
        return _BEYOND


def _with_fact(verdict: Verdict, text: str) -> Verdict:
    return msgspec.structs.replace(verdict, facts={**verdict.facts, SECOND_ORACLE: text})
