"""Gradients of softmax that are wrong always, for one of ten inputs, or never return: what a run of each costs.

It shares nothing with `adapters.example`, which older commits that are measured beside this one do not have.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping, Sequence

import numpy as np

from aclnn_cts.adapters.protocol import Call, Capabilities
from aclnn_cts.adapters.results import outcome_of, run_each
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.model import Spec


class _Softmax:
    """Without a mistake; statuses and phases are not offered."""

    capabilities = Capabilities(
        description="gradients of softmax with mistakes", operators=frozenset({"aclnnSoftmaxBackward"})
    )
    environment: Mapping[str, str] = {"implementation": "benchmark"}

    def open(self, _target: Target, _specs: Mapping[str, Spec]) -> _Softmax:
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
        gradient, output = (call.buffers.inputs[name].view.astype(np.float64) for name in ("gradOutput", "output"))
        total = (gradient * output).sum(axis=axis, keepdims=True)
        result = output * (gradient - total) * self.factor(gradient.tobytes())
        return outcome_of(call, {"out": result.astype(call.buffers.outputs["out"].view.dtype)})

    def factor(self, _contents: bytes) -> float:
        """What the result of this call is multiplied by."""
        return 1.0


class AlwaysWrong(_Softmax):
    """Twice the gradient."""

    def factor(self, _contents: bytes) -> float:
        """Two."""
        return 2.0


class SeldomWrong(_Softmax):
    """Twice the gradient for one of ten inputs."""

    def factor(self, contents: bytes) -> float:
        """Two for some contents, the same in every call."""
        return 1.0 + (zlib.crc32(contents) % 10 == 0)


class Exits(_Softmax):
    """Ends its process in each call."""

    def factor(self, _contents: bytes) -> float:
        """No number: the process ends."""
        os._exit(0)
