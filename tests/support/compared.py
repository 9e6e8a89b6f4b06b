"""One output held against its bound."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from aclnn_cts.core.expected import ExpectedOutput
from aclnn_cts.judgement.compare import compare_all
from aclnn_cts.judgement.comparison import ComparedOutput, OutputComparison
from aclnn_cts.judgement.model import ComputeModel
from aclnn_cts.judgement.operands import OperandFacts


def compare(
    output: str,
    got: NDArray[Any],
    expected: ExpectedOutput,
    model: ComputeModel,
    *,
    operands: OperandFacts | None = None,
) -> OutputComparison:
    """What `compare_all` says of it alone."""
    return compare_all([ComparedOutput(output=output, got=got, expected=expected, model=model, operands=operands)])[0]
