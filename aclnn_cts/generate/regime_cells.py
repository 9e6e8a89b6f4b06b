"""What a plan covers of sizes: cells of size regime, dtype of the first output that a call computes, and layout.

A call is in one cell for each regime that its sizes are in. The words of a cell stand in one text, as
`aligned FLOAT16 strided`, which a run's summary counts (`store.counts.OperatorSummary.cells`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aclnn_cts.core.case import Case
from aclnn_cts.generate.regimes import Regime, regimes_of
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.model import Spec

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


def reachable(spec: Spec, regimes: Sequence[Regime]) -> tuple[Regime, ...]:
    """Those of the regimes that calls can be in: not `odd` where every last dimension is an even multiple, as `2*H`."""
    shapes = [item.shape for item in spec.parameters if item.holds_tensors and item.shape is not None]
    parameters = {item.name for item in spec.parameters}
    # A shape that is read off another tensor has its last dimension.
    last = [shape.items[-1] for shape in shapes if shape.items and shape.items[-1].node.value not in parameters]
    is_even = bool(last) and all(item.multiple % 2 == 0 for item in last)
    return tuple(regime for regime in regimes if regime is not Regime.ODD or not is_even)


def planned_cells(sampler: Sampler, regimes: Sequence[Regime]) -> Iterator[str]:
    """The cells that a plan with these regimes is to reach."""
    spec = sampler.spec
    always = next((place for place, name in enumerate(spec.outputs) if spec.parameter(name).present is None), None)
    first = spec.outputs if always is None else spec.outputs[: always + 1]
    layouts = (_CONTIGUOUS, _STRIDED) if sampler.strided else (_CONTIGUOUS,)
    for dtype in dict.fromkeys(row[name] for name in first for row in sampler.dtype_rows):
        for layout in layouts:
            yield from (f"{regime.value} {dtype} {layout}" for regime in reachable(spec, regimes))
