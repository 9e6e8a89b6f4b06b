"""Whether an implementation computed in more precision than its mode asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from aclnn_cts.core.expected import Expected
from aclnn_cts.judge.compare import compare
from aclnn_cts.judge.model import ComputeModel
from aclnn_cts.judge.operands import OperandFacts

__all__ = ["FINER_FACT", "finer_than_asked"]

FINER_FACT = "finer than asked"
"""The key of `Verdict.facts` on a call whose outputs are right for operands that were never rounded."""


def finer_than_asked(
    got: Mapping[str, NDArray[Any]],
    expected: Expected,
    *,
    models: Mapping[str, ComputeModel],
    unrounded: Mapping[str, ComputeModel],
    operands: Mapping[str, OperandFacts],
) -> bool:
    """Whether every output whose model rounds operands is within the bound of operands as they are stored.

    Right outputs of a call alone may be asked about. Where rounding changes no operand that an output depends on, or
    nothing can be seen of it (no elements, or all of them open), the answer is no: there is nothing to tell the two
    apart by.
    """
    judged = 0
    for name, model in models.items():
        if model.operand is None or not operands[name].matters:
            continue
        comparison = compare(name, got[name], expected[name], unrounded[name], operands=operands[name])
        if comparison.kind:
            return False
        judged += comparison.judged
    return judged > 0
