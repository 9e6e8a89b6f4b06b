"""The reference without statuses: it rejects with errors (`--adapter rejecting_adapter:Rejecting,what=broken`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from aclnn_cts.adapters.protocol import Call, Capabilities, Rejected
from aclnn_cts.adapters.reference import ReferenceAdapter, ReferenceSession
from aclnn_cts.adapters.results import run_each
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.model import Spec


class Rejecting(ReferenceAdapter):
    """`what` it rejects: `broken` calls, `everything` or `nothing`; whether rejections are `declared`, or `vague`."""

    def __init__(self, what: str = "broken", says: str = "declared") -> None:
        self._what = what
        self._says = says

    def open(self, target: Target, specs: Mapping[str, Spec]) -> RejectingSession:
        return RejectingSession(target, specs, self._what, self._says)


class RejectingSession(ReferenceSession):
    def __init__(self, target: Target, specs: Mapping[str, Spec], what: str, says: str) -> None:
        super().__init__(target, specs)
        self._what = what
        self._error = ValueError if says == "vague" else Rejected
        self.capabilities = Capabilities(in_place=True, rejections=says != "undeclared")

    def run(self, calls: Sequence[Call]) -> list[Outcome]:
        return run_each(calls, self._answer)

    def _answer(self, call: Call) -> Outcome:
        outcome = self._call(call)
        if self._what == "everything" or (outcome.status and self._what == "broken"):
            raise self._error("no")
        return msgspec.structs.replace(outcome, phase_one=None, phase_two=None, workspace_size=None)
