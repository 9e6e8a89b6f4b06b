"""The reference, wrong like `rare_adapter` and noisy: the call `after` sends its head a signal, as `kill` does."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from aclnn_cts.adapters.protocol import Call
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.model import Spec
from tests.support.judge_process import judge_process
from tests.support.rare_adapter import Rare, RareSession


class Signals(Rare):
    """`--adapter tests.support.signals_adapter:Signals,number=15,after=20`."""

    def __init__(self, number: str, after: str, fault: str = "tail") -> None:
        super().__init__(fault)
        self._fault, self._number, self._after = fault, int(number), int(after)

    def open(self, target: Target, specs: Mapping[str, Spec]) -> SignalsSession:
        return SignalsSession(target, specs, self._fault, self._number, self._after)


class SignalsSession(RareSession):
    def __init__(self, target: Target, specs: Mapping[str, Spec], fault: str, number: int, after: int) -> None:
        super().__init__(target, specs, fault, "0")
        self._number, self._left = number, after

    def run(self, calls: Sequence[Call]) -> list[Outcome]:
        self._left -= len(calls)
        if self._left <= 0:
            self._left = 1 << 30
            os.kill(judge_process(), self._number)
        return super().run(calls)
