"""Whether an implementation computed in more precision than its mode asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from aclnn_cts.judgement.compare import Compared, Comparison
from aclnn_cts.judgement.model import ComputeModel

FINER_FACT = "finer than asked"
"""The key of `Verdict.facts` on a call whose outputs are right for operands that were never rounded."""


def as_stored(outputs: Iterable[Compared], models: Mapping[str, ComputeModel]) -> list[Compared]:
    """The outputs of a call that the mode's rounding of operands may change, with the models of unrounded ones."""
    return [
        msgspec.structs.replace(item, model=models[item.output])
        for item in outputs
        if item.model.operand is not None and item.operands is not None and item.operands.matters
    ]


def finer_than_asked(comparisons: Iterable[Comparison]) -> bool:
    """Whether every output of `as_stored` is within the bound of operands that are not rounded.

    Right outputs of a call alone may be asked about. Where rounding changes no operand that an output depends on, or
    nothing can be seen of it (no elements, or all of them open), the answer is no: there is nothing to tell the two
    apart by.
    """
    asked = list(comparisons)
    return not any(item.kind for item in asked) and any(item.judged for item in asked)
