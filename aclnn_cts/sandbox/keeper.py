"""The process between a judge and a runner: whatever the runner has started ends with it.

Started as `python -m aclnn_cts.sandbox.keeper MEMORY CONTROL REPLIES PARENT [PLAN]` by `sandbox.child`. It forks before
anything is imported that a fork could harm; the child becomes the runner, or the program of a
`confinement.ConfinementPlan`. As the runner's subreaper the keeper is the parent of all that the runner leaves behind,
a daemon that forked twice included, and ends it. It then ends as the runner has: by the same signal, or with the same
code. SIGTERM makes it end all at once, and so does the end of PARENT.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

from aclnn_cts.sandbox.interrupts import ENDINGS, die_with, keep_orphans
from aclnn_cts.sandbox.process_tree import children


class _Stopped(BaseException):
    """The judge wants an end."""


def main(arguments: Sequence[str]) -> int:
    """Fork; the runner comes back from here with its exit code, and the keeper never."""
    memory, control, replies, parent, *plan = arguments
    # What the judge ignores is inherited, and without SIGCHLD no status could be waited for.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    keeper = os.getpid()
    runner = 0
    try:
        keep_orphans()
        die_with(int(parent), by=signal.SIGTERM)
        runner = os.fork()
        if runner:
            _keep(runner)
    except _Stopped:
        if os.getpid() == keeper:
            _end(_end_all(runner))
        return os.EX_OK
    # A group of its own: what it sends to that does not reach the keeper.
    os.setpgid(0, 0)
    if plan:
        from aclnn_cts.sandbox.confinement import run_confined  # noqa: PLC0415 - runners do without

        die_with(keeper)
        for number in ENDINGS:
            signal.signal(number, signal.SIG_DFL)
        os.close(int(control))
        run_confined(plan[0], [memory, replies])
    from aclnn_cts.sandbox.runner import main as run  # noqa: PLC0415 - nothing of it may be there before the fork

    return run([memory, control, replies, str(keeper)])


def _stop(_number: int, _frame: FrameType | None) -> NoReturn:
    raise _Stopped


def _keep(runner: int) -> NoReturn:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The judge sees the runner's end where nobody else holds its pipes.
    os.closerange(0, max(map(int, os.listdir("/proc/self/fd"))) + 1)  # noqa: PTH208 - names alone
    while True:
        process, status = os.wait()
        if process == runner:
            _end_all(runner)
            _end(status)


def _end_all(runner: int) -> int:
    """End what is left; the runner's status, where that is only known now."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    found = 0
    while left := children(os.getpid()):
        for process in left:
            os.kill(process, signal.SIGKILL)
        # What these leave behind comes here, and has its turn.
        process, status = os.wait()
        while process:
            found = status if process == runner else found
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
    return found


def _end(status: int) -> NoReturn:
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        os._exit(code)
    # One core file is enough.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if -code not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(-code, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {-code})
    os.kill(os.getpid(), -code)
    os._exit(128 - code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
