"""NLLLossBackward that takes each ignored label, as it is or reduced to a class (`labels_adapter:Labels,reduced=1`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from aclnn_cts.adapters.protocol import Call, Capabilities
from aclnn_cts.adapters.results import outcome_of, run_each
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.model import Spec


class Labels:
    capabilities = Capabilities(description="labels", operators=frozenset({"aclnnNLLLossBackward"}))

    def __init__(self, reduced: str = "0") -> None:
        self.environment = {"implementation": "labels"}
        self._reduced = reduced == "1"

    def open(self, target: Target, specs: Mapping[str, Spec]) -> Labels:
        return self

    def run(self, calls: Sequence[Call]) -> Sequence[Outcome]:
        return run_each(calls, self.call)

    def call(self, call: Call) -> Outcome:
        assert call.buffers is not None
        grad, target = (call.buffers.inputs[name].view.reshape(-1) for name in ("gradOutput", "target"))
        out: Any = np.zeros_like(call.buffers.outputs["out"].view)
        for row, label in enumerate(target):
            if label != call.case.arguments["ignoreIndex"]:
                out[row, label] = -grad[row]
            elif self._reduced:
                out[row, label % out.shape[1]] = -grad[row]
        return outcome_of(call, {"out": out})

    def close(self) -> None:
        pass
