"""What a plan covers of sizes: cells of size regime, dtype of the first output that a call computes, and layout.

A call is in one cell for each regime that its sizes are in. The words of a cell stand in one text, as
`aligned FLOAT16 strided`, which a run's summary counts (`store.counts.OperatorSummary.cells`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from aclnn_cts.core.case import Case
from aclnn_cts.core.regime import Regime
from aclnn_cts.core.target import Target
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.generate.sizes import regimes_of
from aclnn_cts.speclang.expression import UNDEFINED
from aclnn_cts.speclang.model import Draw, Spec

_SMALL = 3
"""A size up to which an even one does not matter (`regimes.regimes_of`), unless it is the last."""
_CONTIGUOUS, _STRIDED = "contiguous", "strided"
"""All tensors of a call, and one at least."""


def case_regimes(case: Case) -> frozenset[Regime]:
    """The size regimes that a call is in.

    UINT8 tensors do not count beside others: a packed mask has a multiple of 128 bits whatever it masks.
    """
    tensors = [tensor for _, tensor in case.tensors()]
    return regimes_of(tensor.shape for tensor in [item for item in tensors if item.dtype != "UINT8"] or tensors)


def cells_of(case: Case, dtype: str) -> Iterator[str]:
    """The cells that a call is in; `dtype` is that of the first output that it computes."""
    tensors = [tensor for _, tensor in case.tensors()]
    layout = _CONTIGUOUS if all(tensor.is_contiguous for tensor in tensors) else _STRIDED
    for regime in case_regimes(case):
        yield f"{regime.value} {dtype} {layout}"


def reachable_regimes(spec: Spec, regimes: Sequence[Regime]) -> tuple[Regime, ...]:
    """Those of the regimes that calls can be in: not `odd` where an even size keeps every call from it."""
    return tuple(
        regime for regime in regimes if regime is not Regime.ODD or not (_ends_even(spec) or _has_even_size(spec))
    )


def _ends_even(spec: Spec) -> bool:
    """Whether every last dimension is an even multiple, as `2*H`."""
    shapes = [item.shape for item in spec.parameters if item.holds_tensors and item.shape is not None]
    parameters = {item.name for item in spec.parameters}
    # A shape that is read off another tensor has its last dimension.
    last = [shape.items[-1] for shape in shapes if shape.items and shape.items[-1].node.value not in parameters]
    return bool(last) and all(item.multiple % 2 == 0 for item in last)


def _has_even_size(spec: Spec) -> bool:
    """Whether every call has a tensor with an even size that never varies: a draw of one value."""
    fixed = {draw.name for draw in spec.draws if draw.kind == "derived" and _constant(draw) > _SMALL}
    always = [item for item in spec.parameters if item.kind == "tensor" and not item.optional and item.present is None]
    names = {item.node.value for parameter in always if parameter.shape is not None for item in parameter.shape.items}
    return bool(fixed & names)


def _constant(draw: Draw) -> int:
    """The even number that a draw always is; 0 for any other."""
    with contextlib.suppress(*UNDEFINED):
        value = draw.given({}, Target())
        return value if isinstance(value, int) and value % 2 == 0 else 0
    return 0


def planned_cells(sampler: Sampler, regimes: Sequence[Regime]) -> Iterator[str]:
    """The cells that a plan with these regimes is to reach."""
    spec = sampler.spec
    always = next((place for place, name in enumerate(spec.outputs) if spec.parameter(name).present is None), None)
    first = spec.outputs if always is None else spec.outputs[: always + 1]
    layouts = (_CONTIGUOUS, _STRIDED) if sampler.strided else (_CONTIGUOUS,)
    for dtype in dict.fromkeys(row[name] for name in first for row in sampler.dtype_rows):
        for layout in layouts:
            yield from (f"{regime.value} {dtype} {layout}" for regime in reachable_regimes(spec, regimes))
