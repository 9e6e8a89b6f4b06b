"""How the seconds of workers are shared between chunks and findings, and how long either may take."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclnn_cts.runs.campaign.campaign_state import CampaignState
from aclnn_cts.runs.campaign.head import GRACE, HANG_SECONDS, LEAST_GRACE, StopLimits, StopMonitor
from aclnn_cts.runs.campaign.queues import COSTLY_SECONDS, TriageBudget


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@given(st.integers(1, 9), st.lists(st.tuples(st.booleans(), st.floats(0.1, 500.0), st.floats(0.1, 20.0)), min_size=20))
def test_findings_get_at_most_half_of_the_seconds(workers: int, jobs: list[tuple[bool, float, float]]) -> None:
    clock = Clock()
    turns = TriageBudget(clock=clock)
    until: dict[int, float] = {}
    spent = {True: 0.0, False: 0.0}
    longest = 0.0
    for costly, finding_seconds, chunk_seconds in jobs:
        slot = next((number for number in range(workers) if number not in until), None)
        if slot is None:
            slot = min(until, key=lambda number: until[number])
            clock.now = max(clock.now, until.pop(slot))
            turns.end(slot)
        finding = turns.of_finding(slot, living=workers, costly=costly)
        seconds = finding_seconds if finding else chunk_seconds
        turns.begin(slot, finding=finding)
        until[slot] = clock.now + seconds
        spent[finding] += seconds
        longest = max(longest, finding_seconds)
    # No more than half, but for those that were begun last: nobody knows how long they take.
    assert spent[True] <= spent[False] + max(workers // 2, 1) * longest


def test_a_single_worker_goes_on_with_chunks_whatever_waits() -> None:
    clock = Clock()
    turns = TriageBudget(clock=clock)
    order = []
    for _ in range(2000):
        finding = turns.of_finding(0, living=1, costly=False)
        turns.begin(0, finding=finding)
        clock.now += 400.0 if finding else 1.0
        turns.end(0)
        order.append(finding)
    assert order[:7] == [False] * 5 + [True, False]
    assert 4 <= sum(order) <= 5
    assert not any(one and two for one, two in itertools.pairwise(order))


def test_what_hangs_waits_until_there_are_minutes_for_it() -> None:
    clock = Clock()
    turns = TriageBudget(clock=clock)
    assert not turns.of_finding(0, living=1, costly=True)
    turns.begin(0, finding=False)
    clock.now += COSTLY_SECONDS
    turns.end(0)
    assert turns.of_finding(0, living=1, costly=True)


def test_half_of_the_workers_at_a_time() -> None:
    clock = Clock()
    turns = TriageBudget(clock=clock)
    turns.begin(3, finding=False)
    clock.now += 100.0
    assert [turns.of_finding(slot, living=4, costly=False) for slot in range(2)] == [True, True]
    for slot in range(2):
        turns.begin(slot, finding=True)
    assert not turns.of_finding(2, living=4, costly=False)


def a_session(clock: Clock, stop: StopLimits, chunks: int = 0) -> StopMonitor:
    writer = SimpleNamespace(path=Path("/nowhere"))
    memory = SimpleNamespace(findings={}, chunks=chunks, writer=writer)
    return StopMonitor(stop, cast("CampaignState", memory), clock=clock)


def over(session: StopMonitor) -> tuple[bool, bool]:
    return session.grace_over, session.chunks_over


def reason(session: StopMonitor) -> str:
    return session.reason


def test_a_session_with_a_time_ends_within_bounds() -> None:
    clock = Clock()
    session = a_session(clock, StopLimits(seconds=360.0))
    clock.now += 100.0
    session.decide()
    assert reason(session) == ""
    # Nothing takes so long that nothing else is tried.
    assert session.chunk_seconds() == session.finding_seconds(least=5.0) == 60.0
    clock.now += 250.0
    grace = GRACE * 360.0
    assert session.chunk_seconds() == session.finding_seconds(least=5.0) == 10.0 + grace
    clock.now += 20.0
    session.decide()
    assert reason(session) == "", "nothing could be handed out yet"
    session.working = True
    session.decide()
    assert reason(session) == "its time is over"
    clock.now += grace - 10.0
    assert session.finding_seconds(least=5.0) == pytest.approx(10.0)
    assert over(session) == (False, False)
    clock.now += 11.0
    assert over(session) == (True, False)
    clock.now += HANG_SECONDS
    assert over(session) == (True, True)


def test_findings_leave_time_for_chunks_in_a_short_session() -> None:
    clock = Clock()
    session = a_session(clock, StopLimits(seconds=45.0))
    assert session.finding_seconds(least=5.0) == 15.0
    assert session.finding_seconds(least=120.0) == pytest.approx(45.0 + LEAST_GRACE), (
        "no longer than until the session's end"
    )


def test_a_tenth_of_a_long_session() -> None:
    clock = Clock()
    session = a_session(clock, StopLimits(seconds=36_000.0))
    assert session.chunk_seconds() == session.finding_seconds(least=5.0) == 3600.0


def test_a_number_of_chunks_is_tried_in_whole() -> None:
    clock = Clock()
    session = a_session(clock, StopLimits(chunks=3), chunks=3)
    session.decide()
    assert reason(session) == "all 3 chunks are done"
    clock.now += 1e6
    assert over(session) == (False, False)
    assert session.chunk_seconds() is None
    assert session.finding_seconds(least=5.0) is None


def test_a_number_of_chunks_and_a_time() -> None:
    clock = Clock()
    session = a_session(clock, StopLimits(chunks=3, seconds=600.0), chunks=3)
    session.decide()
    assert session.chunk_seconds() is None
    clock.now += 500.0
    assert over(session) == (False, False)
    assert session.finding_seconds(least=5.0) == pytest.approx(130.0)
    clock.now += 131.0
    assert over(session) == (True, False)


def test_it_is_quiet_only_while_there_is_work() -> None:
    clock = Clock()
    session = a_session(clock, StopLimits(quiet=60.0))
    clock.now += 100.0
    session.decide()
    assert reason(session) == ""
    session.working = True
    session.note_news()
    clock.now += 59.0
    session.decide()
    assert reason(session) == ""
    clock.now += 1.0
    session.decide()
    assert reason(session) == "nothing new came for 60 s"
