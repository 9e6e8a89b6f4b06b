from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

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
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    steps = []

    def start() -> None:
        with interrupts_held_back():
            os.kill(os.getpid(), signal.SIGINT)
            steps.append("went on")

    try:
        with pytest.raises(KeyboardInterrupt):
            start()
    finally:
        signal.signal(signal.SIGINT, before)
    assert steps == ["went on"]
