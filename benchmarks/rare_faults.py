"""Softmax implementations that are wrong in few cases, for how long it takes to find them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from aclnn_cts.adapters.protocol import Call
from aclnn_cts.adapters.reference import ReferenceAdapter, ReferenceSession
from aclnn_cts.core.case import Tensor
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.model import Spec


def _tensor(call: Call, name: str) -> Tensor:
    value = call.case.arguments[name]
    if not isinstance(value, Tensor):
        raise TypeError(name)
    return value


def _mixed(call: Call) -> bool:
    """Inputs of one dtype and an output of another, both laid out with steps."""
    grad, out = _tensor(call, "gradOutput"), _tensor(call, "out")
    return grad.dtype == "BF16" and out.dtype == "FLOAT16" and grad.strides is not None and len(grad.shape) > 4


def _long_row(call: Call) -> bool:
    """More than 256 elements along dim, in half precision."""
    out = _tensor(call, "out")
    dim = call.case.arguments["dim"]
    return out.dtype == "FLOAT16" and isinstance(dim, int) and out.shape[dim] > 256


def _deep(call: Call) -> bool:
    """Eight dimensions, the reduced one counted from the end and neither first nor last, into another dtype."""
    grad, out, dim = _tensor(call, "gradOutput"), _tensor(call, "out"), call.case.arguments["dim"]
    return len(grad.shape) == 8 and isinstance(dim, int) and -8 < dim < -1 and grad.dtype != out.dtype


def _transposed(call: Call) -> bool:
    """Both inputs transposed, with data that cancel."""
    inputs = [_tensor(call, name) for name in ("gradOutput", "output")]
    data = [tensor.data.recipe for tensor in inputs if tensor.data is not None]
    return all(tensor.strides is not None and len(tensor.shape) > 2 for tensor in inputs) and "cancel" in data


def _subnormal(call: Call) -> bool:
    """Subnormal gradients into single precision."""
    grad, out = _tensor(call, "gradOutput"), _tensor(call, "out")
    data = grad.data
    return out.dtype == "FLOAT" and grad.dtype == "FLOAT16" and data is not None and data.recipe == "subnormal"


FAULTS: Mapping[str, Callable[[Call], bool]] = {
    "mixed": _mixed,
    "long-row": _long_row,
    "deep": _deep,
    "transposed": _transposed,
    "subnormal": _subnormal,
}


class RareFaults(ReferenceAdapter):
    """The reference, with one element wrong where the fault's condition holds."""

    def __init__(self, fault: str) -> None:
        self._fault = FAULTS[fault]

    def open(self, target: Target, specs: Mapping[str, Spec]) -> RareFaultsSession:
        """A session of its own."""
        return RareFaultsSession(target, specs, self._fault)


class RareFaultsSession(ReferenceSession):
    """Calls with one element wrong where the condition holds."""

    def __init__(self, target: Target, specs: Mapping[str, Spec], fault: Callable[[Call], bool]) -> None:
        super().__init__(target, specs)
        self._fault = fault

    def run(self, calls: Sequence[Call]) -> list[Outcome]:
        """As the reference, but for the fault."""
        outcomes = super().run(calls)
        for call, outcome in zip(calls, outcomes, strict=True):
            if call.buffers is not None and call.buffers.outputs and not outcome.status and self._fault(call):
                view: Any = call.buffers.outputs["out"].view
                if view.size:
                    view[(0,) * view.ndim] = np.float32(12345.0)
        return outcomes
