"""What an oracle leaves open of a call before anybody makes it: elements that conform whatever they hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from aclnn_cts.core.case import Case, Tensor, real_view
from aclnn_cts.core.errors import OracleError
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.execution.executor import PerformedCall
from aclnn_cts.execution.judging import Judge, JudgementBasis
from aclnn_cts.execution.values import is_finite, open_reasons
from aclnn_cts.generate.recipes import case_arrays
from aclnn_cts.judgement.bound import bound, left_open

MOST_BYTES = 1 << 26
"""Of the arguments of a call about which an oracle is asked."""


class OpenElements(NamedTuple):
    """Elements of all outputs of a call."""

    open: int
    elements: int
    why: Mapping[str, int] = MappingProxyType({})
    """Open elements by reason (`core.verdict.OpenReason`)."""

    @property
    def are_all_open(self) -> bool:
        """Whether nothing of its values can be judged."""
        return 0 < self.elements == self.open


def open_elements(judge: Judge, case: Case) -> OpenElements | str:
    """How many elements are open, or why that cannot be said."""
    inputs = list(judge.spec.given_inputs(case))
    given = [tensor for name in inputs if (tensor := case.tensor(name)) is not None]
    if case.call.phases == 1:
        return "the call is of the first phase alone"
    if case.nbytes > MOST_BYTES:
        return f"the arguments have {case.nbytes} bytes, more than {MOST_BYTES}"
    if any(item.data is None and item.numel for item in given):
        return "an input has no contents"
    performed = PerformedCall(case=case, outcome=Outcome(), arrays=case_arrays(case, inputs))
    try:
        with np.errstate(all="ignore"):
            finite = is_finite(judge.question(performed))
            counts = [
                _counts(known, case.tensor(name), finite=finite) for name, known in judge.limits(performed).items()
            ]
    except (ArithmeticError, IndexError, KeyError, TypeError, ValueError, OracleError) as error:
        return f"the mathematics gives no value for such arguments ({type(error).__name__})"
    why: Counter[str] = Counter()
    for item in counts:
        why.update(item.why)
    return OpenElements(sum(item.open for item in counts), sum(item.elements for item in counts), why)


def _counts(known: JudgementBasis, tensor: Tensor | None, *, finite: bool) -> OpenElements:
    if tensor is None:
        raise TypeError("no tensor of a call that asks for it")
    value = np.broadcast_to(known.expected.value, real_view(tensor).shape)
    made = bound(known.expected, known.model, operands=known.operands)
    unsaid, _ = left_open(value, known.expected, known.model, made)
    opened = int(np.count_nonzero(unsaid))
    why = open_reasons(known.expected, value.shape, number=opened, finite=finite)
    return OpenElements(opened, value.size, why)
