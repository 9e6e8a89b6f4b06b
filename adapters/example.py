"""A kernel with a planted mistake, which `make run` judges: what a finding looks like, and how small an adapter is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from aclnn_cts.adapters.protocol import Call, Capabilities
from aclnn_cts.adapters.results import outcome_of, run_each
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.model import Spec

BLOCK = 32
"""Elements of which the kernel's sum has room."""


class OneBlockSoftmax:
    """The gradient of softmax, in FLOAT. Its mistake: of a longer row, only the first block is summed."""

    capabilities = Capabilities(
        description="example with a planted mistake",
        operators=frozenset({"aclnnSoftmaxBackward"}),
    )

    def __init__(self) -> None:
        self.environment: Mapping[str, str] = {"implementation": "example"}

    def open(self, _target: Target, _specs: Mapping[str, Spec]) -> OneBlockSoftmax:
        """Nothing has to be opened."""
        return self

    def run(self, calls: Sequence[Call]) -> list[Outcome]:
        """Answer each call."""
        return run_each(calls, self._call)

    def close(self) -> None:
        """Nothing is held."""

    def _call(self, call: Call) -> Outcome:
        assert call.buffers is not None  # noqa: S101 - the adapter offers no first phase
        axis = call.case.arguments["dim"]
        assert isinstance(axis, int)  # noqa: S101 - as the prototype has it
        gradient, output = (
            np.moveaxis(call.buffers.inputs[name].view.astype(np.float32), axis, -1)
            for name in ("gradOutput", "output")
        )
        total = (gradient * output)[..., :BLOCK].sum(axis=-1, keepdims=True)
        result = np.moveaxis(output * (gradient - total), -1, axis)
        return outcome_of(call, {"out": result.astype(call.buffers.outputs["out"].view.dtype)})
