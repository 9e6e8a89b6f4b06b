"""The reference, wrong on purpose: `--adapter wrong:Wrong,fault=value`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aclnn_cts.adapters.protocol import Call, Inexpressible
from aclnn_cts.adapters.reference import ReferenceAdapter, ReferenceSession
from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.outcome import STATUSES, Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.model import Spec

NULLPTR, INVALID = STATUSES["ACLNN_ERR_PARAM_NULLPTR"], STATUSES["ACLNN_ERR_PARAM_INVALID"]


class Wrong(ReferenceAdapter):
    def __init__(self, fault: str) -> None:
        self._fault = fault

    def open(self, target: Target, specs: Mapping[str, Spec]) -> WrongSession:
        if self._fault == "closed":
            raise HarnessError("the device is not there; plug it in")
        return WrongSession(target, specs, self._fault)


class WrongSession(ReferenceSession):
    def __init__(self, target: Target, specs: Mapping[str, Spec], fault: str) -> None:
        super().__init__(target, specs)
        self._fault = fault

    def run(self, calls: Sequence[Call]) -> list[Outcome]:
        if self._fault == "speechless":
            raise Inexpressible("no words for any call")
        if self._fault == "refusing":
            return [Outcome(phase_one=INVALID) for _ in calls]
        outcomes = super().run(calls)
        if self._fault in ("status", "both"):
            outcomes = [Outcome(phase_one=INVALID) if one.phase_one == NULLPTR else one for one in outcomes]
        if self._fault == "status":
            return outcomes
        for call, outcome in zip(calls, outcomes, strict=True):
            if call.buffers is not None and not outcome.status:
                view = call.buffers.outputs["out"].view
                if self._fault == "everywhere":
                    view[...] += view.dtype.type(64)
                # Right for one, two and three in a row: what is shrunk has four.
                elif view.ndim and view.shape[-1] > 3 and (self._fault != "float" or view.dtype == "float32"):
                    view[..., 3] += view.dtype.type(64)
        return outcomes
