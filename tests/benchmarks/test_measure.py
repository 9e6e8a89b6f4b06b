"""Rates of work: whose processor time counts, and what has no rate."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from aclnn_cts.core.target import Target
from aclnn_cts.sandbox.process import ProcessHost
from benchmarks.measure import Figure, geometric_mean, interleave, processor_seconds, rate, ratio

BURN = "import time\nwhile time.process_time() < {seconds}: pass\n"


def test_children_count_while_they_run_and_after_they_ended() -> None:
    start = processor_seconds()
    child = subprocess.Popen(
        [sys.executable, "-c", BURN.format(seconds=0.3) + "print(flush=True)\ninput()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    child.stdout.readline()
    running = processor_seconds()
    child.communicate(b"\n")
    ended = processor_seconds()
    assert running - start >= 0.3
    assert ended >= running


def test_threads_of_a_child_count_after_they_ended() -> None:
    program = (
        "import threading, time\n"
        "def burn():\n"
        "    while time.thread_time() < 0.3: pass\n"
        "thread = threading.Thread(target=burn); thread.start(); thread.join()\n"
        "print(flush=True); input()\n"
    )
    start = processor_seconds()
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert processor_seconds() - start >= 0.3
        child.communicate(b"\n")


def test_a_runner_that_is_replaced_turns_no_clock_back() -> None:
    with ProcessHost("reference", target=Target(product="atlas-a2"), spare=False) as host:
        before = processor_seconds()
        host.refresh()
        after = processor_seconds()
    assert after >= before


def replacing(host: ProcessHost) -> Callable[[int], int]:
    def work(number: int) -> int:
        host.refresh()
        return number + 1

    return work


def test_rates_are_positive_where_runners_are_replaced() -> None:
    with ProcessHost("reference", target=Target(product="atlas-a2"), spare=False) as host:
        (figure,) = interleave((replacing(host),), 2)
    assert min(figure.values) > 0.0
    assert geometric_mean([figure]).median > 0.0


def test_work_that_does_nothing_has_no_rate() -> None:
    with pytest.raises(ValueError, match=r"turn 3 did nothing in .* s; there is no rate of it"):
        rate(lambda _number: 0, 3)


def test_a_round_is_made_of_turns() -> None:
    asked: list[tuple[str, int]] = []

    def work(name: str, seconds: float) -> Callable[[int], int]:
        def burn(number: int) -> int:
            asked.append((name, number))
            end = time.process_time() + seconds * (1 + number % 2)
            while time.process_time() < end:
                pass
            return 10

        return burn

    left, right = interleave((work("left", 0.01), work("right", 0.02)), 2, turns=2)
    assert asked == [(name, number) for number in range(5) for name in ("left", "right")]
    # 20 things in three times the work's own time: not the mean of two rates, of which one would be twice the other.
    assert len(left.values) == len(right.values) == 2
    assert max(left.values) <= 20 / 0.03
    assert max(right.values) <= 20 / 0.06


def test_one_core_is_shared_with_what_is_started() -> None:
    program = "import os; from benchmarks.measure import stay_on_one_core as stay; before = os.sched_getaffinity(0)\n"
    program += "stay(); stay(); import subprocess, sys\n"
    program += "own = subprocess.check_output([sys.executable, '-c', 'import os; print(os.sched_getaffinity(0))'])\n"
    program += "assert len(os.sched_getaffinity(0)) == 1 and os.sched_getaffinity(0) <= before\n"
    program += "assert eval(own) == os.sched_getaffinity(0)\n"
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[2])


def test_figures_are_combined_round_by_round() -> None:
    left, right = Figure((8.0, 2.0, 4.0)), Figure((2.0, 1.0, 8.0))
    assert ratio(left, right).values == (4.0, 2.0, 0.5)
    assert geometric_mean([left, right]).values == pytest.approx((4.0, 2.0**0.5, 32.0**0.5))
    assert left.median == 4.0
    assert left.text(",.0f") == "4 ±75%"


def test_rates_go_by_processor_time() -> None:
    def work(number: int) -> int:
        time.sleep(0.2)
        return number

    assert rate(work, 1) > 10.0
