"""Whether an implementation computed in more precision than its mode asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from aclnn_cts.judge.compare import Compared, compare_all
from aclnn_cts.judge.model import ComputeModel

__all__ = ["FINER_FACT", "finer_than_asked"]

FINER_FACT = "finer than asked"
"""The key of `Verdict.facts` on a call whose outputs are right for operands that were never rounded."""


def finer_than_asked(outputs: Iterable[Compared], unrounded: Mapping[str, ComputeModel]) -> bool:
    """Whether every output whose model rounds operands is within the bound of operands as they are stored.

    `unrounded` is that bound's model, by output. Right outputs of a call alone may be asked about. Where rounding
    changes no operand that an output depends on, or nothing can be seen of it (no elements, or all of them open), the
    answer is no: there is nothing to tell the two apart by.
    """
    asked = [
        replace(item, model=unrounded[item.output])
        for item in outputs
        if item.model.operand is not None and item.operands is not None and item.operands.matters
    ]
    comparisons = compare_all(asked)
    return not any(item.kind for item in comparisons) and any(item.judged for item in comparisons)
