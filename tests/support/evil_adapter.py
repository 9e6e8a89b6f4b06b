"""The reference, which says in every place what a terminal must not show: `--adapter evil_adapter:Evil,how=raise`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import msgspec

from aclnn_cts.adapters.protocol import Call
from aclnn_cts.adapters.reference import ReferenceAdapter, ReferenceSession
from aclnn_cts.core.case import Tensor
from aclnn_cts.core.outcome import CallEnd, Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.model import Spec

EVIL = "a\x1b]0;x\x07\x1b[2J\u202eb\u2066c\x00d\x9be\x7f\u200f"


class Evil(ReferenceAdapter):
    """`how`: `say` in declarations and outcomes, or `raise` when it is opened."""

    def __init__(self, how: str = "say") -> None:
        self._how = how

    def open(self, target: Target, specs: Mapping[str, Spec]) -> ReferenceSession:
        if self._how == "raise":
            raise RuntimeError(EVIL)
        return _Session(target, specs)


class _Session(ReferenceSession):
    def __init__(self, target: Target, specs: Mapping[str, Spec]) -> None:
        super().__init__(target, specs)
        self.capabilities = dataclasses.replace(self.capabilities, description=EVIL)
        self.environment = {"description": EVIL, "device": EVIL, "version": EVIL, EVIL: EVIL}

    def run(self, calls: Sequence[Call]) -> list[Outcome]:
        return [
            msgspec.structs.replace(outcome, ended=CallEnd.RAISED, message=EVIL) if _is_small(call) else outcome
            for call, outcome in zip(calls, super().run(calls), strict=True)
        ]


def _is_small(call: Call) -> bool:
    out = call.case.arguments.get("out")
    return isinstance(out, Tensor) and len(out.shape) == 2 and out.numel < 10
