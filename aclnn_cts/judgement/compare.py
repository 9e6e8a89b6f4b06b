"""Outputs against what conforms: which elements do, which do not, and how near the worst one comes.

Ordinary outputs, finite and within their bounds, are most of them, and small ones are looked at together: a step of
NumPy costs as much for one of them as for all. What is not ordinary goes through the rules of `compare_carefully`
alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
import numpy as np

from aclnn_cts.core.rounding import is_large
from aclnn_cts.core.verdict import Deviation
from aclnn_cts.judgement.bound import (
    margins,
)
from aclnn_cts.judgement.comparison import (
    ComparedOutput,
    OutputComparison,
    Pending,
    compare_carefully,
    comparison_group,
    settle_exact,
    settle_within,
)
from aclnn_cts.judgement.figures import BINS
from aclnn_cts.judgement.model import ComputeModel

_TOGETHER = 1 << 13
"""Elements that are looked at together: what that takes stays in a processor's cache. An output of more is by itself.
"""


def compare_all(items: Sequence[ComparedOutput]) -> list[OutputComparison]:
    """Hold each output against the bound of its compute model.

    A fault is `Fault.SPECIAL` where the worst element is inf or nan and must not be, or must be and is not; else
    `Fault.VALUE`. Where the model is not a document's, and all errors have the size that they have in the coarsest
    arithmetic of the promised formats (`bound.loosest_model`, `bound.likely_margins`), it is `Fault.MODEL`: the model
    was exceeded, which may be the model's mistake.
    """
    with np.errstate(all="ignore"):
        found = [_in_blocks(item) if is_large(item.got.size) else None for item in items]
        opened = [
            Pending(item, margins(item.expected, item.model, operands=item.operands))
            for item, known in zip(items, found, strict=True)
            if known is None
        ]
        single: list[Pending] = []
        others: list[Pending] = []
        for entry in opened:
            item, known = entry.item, entry.margins
            if not item.got.size:
                entry.found = OutputComparison(deviation=Deviation(output=item.output, histogram=(0,) * BINS))
            elif known.below is not None or item.model.through is not None or item.model.output_truncates:
                others.append(entry)
            elif item.expected.open is None:
                single.append(entry)
        for part in _parts(single):
            settle_exact(part)
        for part in _parts(others):
            settle_within(part)
        rest = (entry.found or compare_carefully(entry.item, entry.margins) for entry in opened)
        settled = [known or next(rest) for known in found]
    return [
        msgspec.structs.replace(known, deviation=known.deviation.in_parts()) if item.in_parts else known
        for item, known in zip(items, settled, strict=True)
    ]


def _in_blocks(item: ComparedOutput) -> OutputComparison | None:
    from aclnn_cts.judgement.blockwise import compare_in_blocks  # noqa: PLC0415 - few outputs are so large

    return compare_in_blocks(item)


def _parts(group: Iterable[Pending]) -> Iterator[Sequence[Pending]]:
    """Outputs that are few enough to be looked at together, those of one way side by side."""
    part: list[Pending] = []
    size = 0
    for entry in sorted(group, key=comparison_group):
        if part and size + entry.item.got.size > _TOGETHER:
            yield part
            part, size = [], 0
        part.append(entry)
        size += entry.item.got.size
    if part:
        yield part


def as_stored(outputs: Iterable[ComparedOutput], models: Mapping[str, ComputeModel]) -> list[ComparedOutput]:
    """The outputs of a call that the mode's rounding of operands may change, with the models of unrounded ones."""
    return [
        msgspec.structs.replace(item, model=models[item.output])
        for item in outputs
        if item.model.operand is not None and item.operands is not None and item.operands.matters
    ]


def finer_than_asked(comparisons: Iterable[OutputComparison]) -> bool:
    """Whether every output of `as_stored` is within the bound of operands that are not rounded.

    Right outputs of a call alone may be asked about. Where rounding changes no operand that an output depends on, or
    nothing can be seen of it (no elements, or all of them open), the answer is no: there is nothing to tell the two
    apart by.
    """
    asked = list(comparisons)
    return not any(item.kind for item in asked) and any(item.judged for item in asked)
