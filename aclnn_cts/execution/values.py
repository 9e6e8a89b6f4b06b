"""What is known of the values of a call that came back in form: the oracle's answer, what conforms, what came."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Tensor
from aclnn_cts.core.expected import Expected, ExpectedOutput, OracleInput
from aclnn_cts.core.rounding import widen
from aclnn_cts.core.verdict import OPEN_BECAUSE, Observation, OpenReason, Result, Verdict, with_observation
from aclnn_cts.execution.executor import PerformedCall
from aclnn_cts.judgement.bound import sorted_elements
from aclnn_cts.judgement.compare import compare_all, finer_than_asked
from aclnn_cts.judgement.comparison import ComparedOutput, OutputComparison
from aclnn_cts.judgement.figures import by_magnitude
from aclnn_cts.judgement.model import ComputeModel
from aclnn_cts.judgement.operands import OperandFacts, OperandRule, OperandValues, operand_rule, operand_values


@dataclass(slots=True, kw_only=True)
class Opened:
    """A call whose values are to be looked at, before the oracle is asked."""

    performed: PerformedCall
    outputs: Mapping[str, Tensor]
    question: OracleInput
    models: Mapping[str, ComputeModel]
    got: Mapping[str, NDArray[Any]]
    """The outputs; of a condensed call the rows that it has."""
    rows: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    """Of a condensed call, the rows of each output that it has (`core.expected.Condensed`)."""
    values: OperandValues | None = None
    """What its operands may be used as, where that is known."""


@dataclass(slots=True)
class Answer:
    """One call, before and after its outputs are compared (`look_at`)."""

    opened: Opened
    """Held, so that no other call can have the identity of its `PerformedCall`."""
    expected: Expected
    models: Mapping[str, ComputeModel]
    operands: Mapping[str, OperandFacts]
    outputs: Sequence[ComparedOutput]
    unrounded: Sequence[ComparedOutput]
    """Those that the mode's rounding of operands may change, with the model of operands as they are stored."""
    comparisons: dict[str, OutputComparison] = field(default_factory=dict)
    """By output."""
    wider: Callable[[], Answer] | None = None
    """The answer by all forms that judge, where this one is that of the first alone; what conforms here does there."""
    finer: bool = False
    """Whether all is right, and right for operands that were never rounded too."""

    def widen(self) -> None:
        """Put the answer by all forms in its place."""
        if self.wider is not None:
            wider = self.wider()
            self.expected, self.models, self.operands = wider.expected, wider.models, wider.operands
            self.outputs, self.unrounded, self.wider = wider.outputs, wider.unrounded, None


def is_finite(question: OracleInput) -> bool:
    """Whether no input holds inf or nan."""
    return all(bool(np.isfinite(tensor).all()) for tensor in question.tensors.values())


def open_reasons(expected: ExpectedOutput, shape: tuple[int, ...], *, number: int, finite: bool) -> dict[str, int]:
    """Why so many elements of an output are open; `finite`: no input holds inf or nan."""
    undecided = np.zeros(shape, np.bool_) if expected.open is None else np.broadcast_to(expected.open, shape)
    known = int(np.count_nonzero(undecided))
    valued = int(np.count_nonzero(undecided & np.isfinite(expected.value)))
    counts = Counter({OpenReason.OVERFLOW: number - known})
    counts[OpenReason.UNDECIDED if finite else OpenReason.SPECIAL] += valued
    counts[OpenReason.NO_VALUE if finite else OpenReason.SPECIAL] += known - valued
    return {reason: count for reason, count in counts.items() if count}


def with_open_elements(verdict: Verdict, answer: Answer) -> Verdict:
    """The verdict with why elements are open, and which outputs hold nan in them although no input does."""
    if not any(deviation.open for deviation in verdict.deviations):
        return verdict
    finite = is_finite(answer.opened.question)
    reasons: Counter[str] = Counter()
    nans: list[str] = []
    for item, deviation in zip(answer.outputs, verdict.deviations, strict=True):
        reasons.update(open_reasons(item.expected, item.got.shape, number=deviation.open, finite=finite))
        if finite and item.expected.open is not None and (np.isnan(widen(item.got)) & item.expected.open).any():
            nans.append(item.output)
    facts = {**verdict.facts, OPEN_BECAUSE: dict(reasons)}
    verdict = msgspec.structs.replace(verdict, facts=facts)
    if verdict.result == Result.FAILED:
        return verdict
    return with_observation(verdict, Observation.OPEN_NAN, said=", ".join(nans))


def look_at_operands(opened: Iterable[Opened]) -> None:
    """Find what operands may be used as, of all calls with one rule together."""
    alike: dict[OperandRule, list[Opened]] = {}
    for item in opened:
        rule = operand_rule(item.models.values())
        if rule is not None:
            alike.setdefault(rule, []).append(item)
    for rule, items in alike.items():
        for item, values in zip(items, operand_values([item.question for item in items], rule), strict=True):
            item.values = values


def look_at(answers: Iterable[Answer]) -> None:
    """Compare the outputs of calls, all together: a step of NumPy costs as much for one small output as for many."""
    asked = list(answers)
    _compare_outputs(asked)
    wrong = [answer for answer in asked if answer.wider is not None and _is_wrong(answer)]
    for answer in wrong:
        answer.widen()
    _compare_outputs(wrong)
    right = [answer for answer in asked if answer.unrounded and not _is_wrong(answer)]
    found = iter(compare_all([item for answer in right for item in answer.unrounded]))
    for answer in right:
        answer.finer = finer_than_asked([next(found) for _ in answer.unrounded])


def _compare_outputs(answers: Sequence[Answer]) -> None:
    found = iter(compare_all([item for answer in answers for item in answer.outputs]))
    for answer in answers:
        answer.comparisons.update({item.output: next(found) for item in answer.outputs})


def _is_wrong(answer: Answer) -> bool:
    return any(item.kind for item in answer.comparisons.values())


def in_whole_output(verdict: Verdict, rows: Mapping[str, NDArray[np.int64]]) -> Verdict:
    """The verdict on a condensed call with the indices that its elements have in the whole outputs."""
    deviations = []
    message = verdict.message
    for item in verdict.deviations:
        if item.output in rows and item.index:
            index = (int(rows[item.output][item.index[0]]), *item.index[1:])
            message = message.replace(f"{item.output}{list(item.index)}", f"{item.output}{list(index)}")
            item = msgspec.structs.replace(item, index=index)  # noqa: PLW2901
        deviations.append(item)
    return msgspec.structs.replace(verdict, message=message, deviations=tuple(deviations))


def with_magnitudes(verdict: Verdict, answer: Answer, *, always: bool) -> Verdict:
    """The verdict with the elements of outputs by magnitude and error ratio: of those at fault, or `always` of all."""
    if not verdict.deviations:
        return verdict
    deviations = []
    for item, deviation in zip(answer.outputs, verdict.deviations, strict=True):
        if always or deviation.beyond:
            elements = answer.comparisons[item.output].elements or sorted_elements(
                item.got, item.expected, item.model, operands=item.operands
            )
            deviation = msgspec.structs.replace(deviation, magnitudes=by_magnitude(item.expected, elements))  # noqa: PLW2901
        deviations.append(deviation)
    return msgspec.structs.replace(verdict, deviations=tuple(deviations))
