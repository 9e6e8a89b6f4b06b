"""The reference, but a process ends while it is opened: `--adapter dying_adapter:Dying,who=runner` or `who=worker`.

With `who=nobody` none does; with `who=working,marks=FOLDER,times=N` N workers end while they make calls. A worker is a
process that the head has started, with a runner of its own; the head opens the implementation first.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from aclnn_cts.adapters.protocol import Call
from aclnn_cts.adapters.reference import ReferenceAdapter, ReferenceSession
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.model import Spec
from tests.support.judge_process import judge_process


class DyingSession(ReferenceSession):
    def __init__(self, target: Target, specs: Mapping[str, Spec], marks: Path, times: int) -> None:
        super().__init__(target, specs)
        self._marks = marks
        self._times = times

    def run(self, calls: Sequence[Call]) -> list[Outcome]:
        number = len(list(self._marks.iterdir()))
        if number < self._times and _is_worker(judge_process()):
            with contextlib.suppress(FileExistsError):
                (self._marks / str(number)).open("x").close()
                os.kill(judge_process(), signal.SIGKILL)
                signal.pause()
        return super().run(calls)


class Dying(ReferenceAdapter):
    def __init__(self, who: str = "runner", marks: str = "", times: str = "0") -> None:
        self._who = who
        self._marks = Path(marks)
        self._times = int(times)

    def open(self, target: Target, specs: Mapping[str, Spec]) -> ReferenceSession:
        if self._who == "runner":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self._who == "working":
            return DyingSession(target, specs, self._marks, self._times)
        elif self._who == "worker" and _is_worker(judge_process()):
            os.kill(judge_process(), signal.SIGKILL)
            signal.pause()
        return ReferenceSession(target, specs)


def _is_worker(process: int) -> bool:
    return b"spawn_main" in Path(f"/proc/{process}/cmdline").read_bytes()
