"""Laws: from what conforms of each call's outputs to a verdict on what they have to do with one another."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.dtypes import COMPONENTS, components
from aclnn_cts.core.expected import ExpectedOutput, Float64
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.law import Law, LawCall, LawCheck, LawInput, LawOutput
from aclnn_cts.core.outside import spelled
from aclnn_cts.core.printable import number_text
from aclnn_cts.core.rounding import widen
from aclnn_cts.core.verdict import Deviation, Result, Skip, Verdict
from aclnn_cts.judgement.bound import Bound, bound, likely_margins, loosest
from aclnn_cts.judgement.figures import histogram, index_of
from aclnn_cts.judgement.model import ORACLE_ROUNDOFF, ComputeModel, gamma, weakest
from aclnn_cts.judgement.operands import OperandFacts
from aclnn_cts.judgement.verdict import OUTPUT_FACT, unfaulted

RELATION_FACT = "relation"
"""The key of `Verdict.facts` under which a broken law's relation stands."""


def law_output(
    got: NDArray[Any],
    expected: ExpectedOutput,
    model: ComputeModel,
    *,
    operands: OperandFacts | None,
    deterministic: bool,
    coarse: bool = False,
) -> LawOutput:
    """One output of a call as laws see it: what it holds, and how far from the exact result it may be.

    - `coarse`: in the coarsest arithmetic of the promised formats (`bound.loosest`, `bound.likely_margins`).
    """
    values = widen(components(got))
    shape = values.shape
    with np.errstate(all="ignore"):
        model = loosest(model) if coarse else model
        known = likely_margins(expected, model, operands=operands) if coarse else None
        limits = bound(expected, model, operands=operands, known=known)
        value = np.broadcast_to(expected.value, shape)
        lower, upper = (np.broadcast_to(end, shape) for end in (limits.ends.lower, limits.ends.upper))
        distance = np.maximum(np.maximum(upper - value, value - lower), 0.0) + _oracle_error(expected, limits)
        judged = np.isfinite(value) & np.isfinite(lower) & np.isfinite(upper) & ~np.asarray(limits.overflow)
    unsaid = np.zeros(shape, np.bool_)
    if expected.open is not None:
        unsaid |= expected.open
    return LawOutput(
        got=values,
        distance=distance,
        single=np.asarray(lower == upper),
        judged=np.asarray(judged & ~unsaid),
        open=unsaid,
        roundoff=model.roundoff,
        output_roundoff=model.output.unit_roundoff * (2.0 if model.output_truncates else 1.0),
        repeatable=model.repeatable == "always" or (model.repeatable == "deterministic" and deterministic),
    )


def _oracle_error(expected: ExpectedOutput, limits: Bound) -> Float64:
    """How far the oracle's float64 value may be from the exact one: its roundings are those of the compute terms.

    The error before the last rounding holds it already, but where that rounding swallows the error it does not show
    in the ends, and relations among exact values need it. Nothing is rounded where that error is 0.
    """
    error = np.zeros(expected.value.shape)
    for term in expected.terms:
        if term.kind == "compute":
            error = error + gamma(term.count, ORACLE_ROUNDOFF) * term.magnitude
    if expected.error is not None and expected.arithmetic is not None:
        error = error + expected.error * (ORACLE_ROUNDOFF / expected.arithmetic.roundoff)
    return np.where(np.asarray(limits.error) == 0.0, 0.0, error)


def judge_law(
    law: Law,
    base: LawInput,
    calls: Sequence[LawCall],
    *,
    models: Mapping[str, ComputeModel],
    coarse: Callable[[], Sequence[LawCall]],
    mode: str = "",
) -> Verdict:
    """Judge the calls of one trial, all of which came back in form.

    - `models`: the compute models by output.
    - `coarse`: the same calls with the bounds of the coarsest arithmetic in the promised formats.
      Where that keeps the law, and no document states the model, the fault is `Fault.MODEL`.
    """
    checks = list(law.check(base, calls))
    facts = {key: value for check in checks for key, value in check.facts.items()}
    deviations = tuple(_deviation(check, base) for check in checks)
    basis = weakest(model.basis for model in models.values())
    broken = [place for place, deviation in enumerate(deviations) if deviation.beyond]
    if broken:
        worst = max(broken, key=lambda place: deviations[place].share)
        check, deviation = checks[worst], deviations[worst]
        kind = Fault.SPECIAL if _special(check) else Fault.LAW
        explained = ""
        if models[check.output].basis != "document" and not any(
            _deviation(again, base).beyond for again in law.check(base, coarse())
        ):
            kind = Fault.MODEL
            explained = "; coarser arithmetic in the promised formats would explain it, the compute model does not"
        message = f"{law.en}: {_told(check, deviation)}{explained}"
        facts |= {OUTPUT_FACT: check.output, RELATION_FACT: check.relation}
        return Verdict(
            result=Result.FAILED,
            kind=kind,
            message=message,
            basis=models[check.output].basis,
            mode=mode,
            deviations=deviations,
            facts=facts,
        )
    if not any(deviation.elements for deviation in deviations):
        message = "the calls have no elements that the law relates; nothing was compared"
        return Verdict(result=Result.SKIPPED, kind=Skip.OPEN, message=message, mode=mode, facts=facts)
    return unfaulted(
        deviations, basis=basis, mode=mode, left="not required to be finite and within a bound", facts=facts
    )


def _deviation(check: LawCheck, base: LawInput) -> Deviation:
    """The worst element: `got` is the left side of the relation and `expected` the right one."""
    found = _worst(check)
    tensor = base.tensor(check.output)
    return found.in_parts() if tensor.dtype in COMPONENTS and not check.place else found


def _worst(check: LawCheck) -> Deviation:
    if not check.left.size:
        return Deviation(output=check.output, histogram=histogram(np.zeros(0), 0))
    error = check.error
    bound_ = np.broadcast_to(np.where(np.isnan(check.bound), np.inf, check.bound), error.shape)
    ignored = np.isinf(bound_)
    with np.errstate(all="ignore"):
        share = np.where(error == 0.0, 0.0, np.where(bound_ == 0.0, np.inf, error / bound_))
    share[ignored] = 0.0
    faulty = (error > bound_) & ~ignored
    share[faulty] = np.maximum(share[faulty], math.nextafter(1.0, 2.0))
    worst = int(share.argmax())
    unjudged = int(np.count_nonzero(ignored))
    return Deviation(
        output=check.output,
        index=index_of(worst, error.shape),
        got=spelled(check.left.item(worst)),
        expected=spelled(check.right.item(worst)),
        bound=0.0 if math.isinf(bound_.item(worst)) else bound_.item(worst),
        share=share.item(worst),
        beyond=int(np.count_nonzero(faulty)),
        elements=error.size,
        histogram=histogram(share, unjudged),
        open=unjudged,
    )


def _special(check: LawCheck) -> bool:
    """Whether inf or nan stands where both sides must be finite."""
    finite = np.isfinite(check.left) & np.isfinite(check.right)
    return bool((~finite & ~np.isinf(check.bound) & (check.error > 0.0)).any())


def _told(check: LawCheck, deviation: Deviation) -> str:
    place = deviation.place
    if check.place:
        place += f" ({check.place})"
    allowed = "must be equal" if deviation.bound == 0.0 else f"may be {deviation.bound:.3g} apart"
    left, right = number_text(deviation.got, 9), number_text(deviation.expected, 9)
    return (
        f"{check.relation}: {place} is {left} and {right}, which {allowed}; "
        f"{deviation.beyond} of {deviation.elements} beyond"
    )
