from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from aclnn_cts.engine.interrupts import ENDINGS, endings_are_interrupts, interrupts_held_back

WORKER = """\
import os, signal, sys
print("started", flush=True)
sys.stdin.readline()
from aclnn_cts.engine.interrupts import ENDINGS, leave_interrupts_to_the_head
leave_interrupts_to_the_head(os.getppid())
for number in (signal.SIGINT, *ENDINGS):
    os.kill(os.getpid(), number)
print("lives on")
"""

CALLER = """\
import os, signal
from aclnn_cts.engine.interrupts import interrupts_held_back
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    with interrupts_held_back():
        os.kill(os.getpid(), signal.SIGINT)
        print("went on", flush=True)
except KeyboardInterrupt:
    print("heard", flush=True)
"""


def test_an_interrupt_ends_no_worker_that_is_still_starting() -> None:
    with interrupts_held_back():
        worker = subprocess.Popen(
            [sys.executable, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    assert worker.stdout is not None
    assert worker.stdout.readline() == b"started\n"
    worker.send_signal(signal.SIGINT)
    output, errors = worker.communicate(b"\n")
    assert (worker.returncode, output, errors) == (0, b"lives on\n", b"")


def test_the_caller_hears_it_afterwards() -> None:
    # In a process of its own, which has one thread: any other thread of a process may hear what one holds back.
    done = subprocess.run([sys.executable, "-c", CALLER], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"went on\nheard\n", b"")


@pytest.fixture
def hears() -> Iterator[None]:
    """This process hears the signals as one that nobody has told to ignore them."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in ENDINGS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("hears")
@pytest.mark.parametrize("number", ENDINGS)
def test_the_end_of_a_batch_job_and_of_a_terminal_is_an_interrupt_once(number: signal.Signals) -> None:
    told = ""
    with endings_are_interrupts():
        try:
            os.kill(os.getpid(), number)
            signal.sigtimedwait([], 5.0)
        except KeyboardInterrupt as error:
            told = str(error)
        # While what was done is saved, another one changes nothing.
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGHUP)
    assert told == f"{number.name} was sent"
    assert signal.getsignal(number) == signal.SIG_DFL


@pytest.mark.usefixtures("hears")
def test_what_nohup_ignores_stays_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with endings_are_interrupts():
        os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
