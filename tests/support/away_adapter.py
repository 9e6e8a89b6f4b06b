"""The reference on devices that go away (`--adapter away_adapter:Away,device=1`), as files in the folder $AWAY say.

- `down-D` holds how many more openings of device D are refused.
- `worker-D`: the next call ends the process that runs the implementation's own; `runner-D`: that of the implementation.
  The file's number is written to `down-D` then.
- `wrong-D`: its results are wrong.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from aclnn_cts.adapters.protocol import Call
from aclnn_cts.adapters.reference import ReferenceAdapter, ReferenceSession
from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.model import Spec
from tests.support.judge_process import judge_process


def _file(word: str, device: str) -> Path:
    return Path(os.environ["AWAY"]) / f"{word}-{device}"


class Away(ReferenceAdapter):
    def __init__(self, device: str = "0") -> None:
        self._device = device

    def open(self, target: Target, specs: Mapping[str, Spec]) -> AwaySession:
        down = _file("down", self._device)
        left = int(down.read_text()) if down.exists() else 0
        if left:
            down.write_text(str(left - 1))
            raise HarnessError(f"device {self._device}: it does not answer")
        return AwaySession(target, specs, self._device)


class AwaySession(ReferenceSession):
    def __init__(self, target: Target, specs: Mapping[str, Spec], device: str) -> None:
        super().__init__(target, specs)
        self._device = device

    def run(self, calls: Sequence[Call]) -> list[Outcome]:
        for word, process in (("worker", judge_process()), ("runner", os.getpid())):
            file = _file(word, self._device)
            if file.exists():
                file.replace(_file("down", self._device))
                os.kill(process, signal.SIGKILL)
        outcomes = super().run(calls)
        if _file("wrong", self._device).exists():
            for call in calls:
                for buffer in call.buffers.outputs.values() if call.buffers is not None else ():
                    buffer.view[...] = 3
        return outcomes
