from __future__ import annotations

import signal
import subprocess
import sys

from aclnn_cts.engine.interrupts import interrupts_held_back

WORKER = """\
import os, signal, sys
print("started", flush=True)
sys.stdin.readline()
from aclnn_cts.engine.interrupts import leave_interrupts_to_the_head
leave_interrupts_to_the_head()
os.kill(os.getpid(), signal.SIGINT)
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
