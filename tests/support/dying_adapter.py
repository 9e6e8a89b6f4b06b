"""The reference, but a process ends while it is opened: `--adapter dying_adapter:Dying,who=runner` or `who=worker`.

With `who=nobody` none does. A worker is a process that the head has started, with a runner of its own; the head opens
the implementation first.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path

from aclnn_cts.adapters.reference import ReferenceAdapter, ReferenceSession
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.model import Spec
from tests.support.judge_process import judge_process


class Dying(ReferenceAdapter):
    def __init__(self, who: str = "runner") -> None:
        self._who = who

    def open(self, target: Target, specs: Mapping[str, Spec]) -> ReferenceSession:
        if self._who == "runner":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self._who == "worker" and b"spawn_main" in Path(f"/proc/{judge_process()}/cmdline").read_bytes():
            os.kill(judge_process(), signal.SIGKILL)
            signal.pause()
        return ReferenceSession(target, specs)
