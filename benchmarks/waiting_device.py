"""The reference, each of whose calls waits for a device that computes elsewhere: what an NPU is to its host."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from aclnn_cts.adapters.protocol import Call
from aclnn_cts.adapters.reference import ReferenceAdapter, ReferenceSession
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.model import Spec

SECONDS = 0.0005
"""Of each call, in which the processor has nothing to do."""


class Waiting(ReferenceAdapter):
    """`--adapter benchmarks.waiting_device:Waiting`."""

    def open(self, target: Target, specs: Mapping[str, Spec]) -> WaitingSession:
        """As the reference."""
        return WaitingSession(target, specs)


class WaitingSession(ReferenceSession):
    """As the reference, but for the time."""

    def run(self, calls: Sequence[Call]) -> list[Outcome]:
        """Wait, and make the calls."""
        time.sleep(SECONDS * len(calls))
        return super().run(calls)
