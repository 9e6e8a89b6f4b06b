"""When what cannot be opened is tried again, and when that is the end."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.workers.slots import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    OUT_SECONDS,
    PATIENCE_SECONDS,
    Slot,
    SlotHealth,
    WorkerBackoff,
    WorkerRecovered,
    WorkerUnavailable,
)


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(name="clock")
def make_clock() -> Clock:
    return Clock()


def two(clock: Clock) -> WorkerBackoff:
    openings = WorkerBackoff([Slot("worker 0", "device 0"), Slot("worker 1", "device 1")], clock=clock)
    assert openings.due_slots() == [0, 1]
    assert openings.due_slots() == []
    return openings


def open_both(openings: WorkerBackoff) -> None:
    for number, slot in enumerate(openings.slots):
        assert openings.note_opened(number) == []
        slot.health = SlotHealth.READY


def test_a_device_is_tried_again_all_night(clock: Clock) -> None:
    openings = two(clock)
    open_both(openings)
    openings.note_lost(1)
    assert openings.slots[1].health == SlotHealth.OPENING
    assert openings.due_slots() == [1], "what was open is opened again at once"
    pauses: list[float] = []
    for number in range(100):
        said = [WorkerUnavailable(1, "it does not answer")] if number == 0 else []
        assert openings.note_failed(1, "it does not answer") == said, "it is said once"
        assert openings.due_slots() == []
        pause = openings.until_due(1e9)
        clock.now += pause
        openings.check_slots()
        assert openings.due_slots() == [1]
        away = sum(pauses) + pause
        assert openings.slots[1].health == (SlotHealth.OUT if away > OUT_SECONDS else SlotHealth.OPENING)
        pauses.append(pause)
    assert pauses[0] == FIRST_PAUSE
    assert pauses == sorted(pauses)
    assert pauses[-1] == LONGEST_PAUSE
    (back,) = openings.note_opened(1)
    assert isinstance(back, WorkerRecovered)
    assert back.seconds == pytest.approx(sum(pauses))
    openings.note_lost(1)
    assert openings.slots[1].health == SlotHealth.OPENING
    assert openings.due_slots() == [1]
    openings.note_failed(1, "again")
    assert openings.until_due(1e9) == FIRST_PAUSE


def test_where_the_first_opening_of_every_slot_fails_it_is_the_end(clock: Clock) -> None:
    openings = two(clock)
    openings.note_failed(0, "no driver")
    with pytest.raises(HarnessError, match="no driver on 1"):
        openings.note_failed(1, "no driver on 1")


def test_one_that_never_opened_does_not_end_the_others(clock: Clock) -> None:
    openings = two(clock)
    openings.note_failed(0, "no driver")
    openings.note_opened(1)
    openings.slots[1].health = SlotHealth.READY
    for _ in range(10):
        clock.now += PATIENCE_SECONDS
        openings.check_slots()
        assert openings.due_slots() == [0]
        openings.note_failed(0, "no driver")


def test_what_was_at_work_until_now_is_not_out_at_once(clock: Clock) -> None:
    openings = two(clock)
    open_both(openings)
    clock.now += 10 * OUT_SECONDS
    openings.slots[1].health = SlotHealth.BUSY
    openings.note_failed(1, "a fresh process could not be opened")
    openings.check_slots()
    assert openings.slots[1].health == SlotHealth.OPENING


def test_a_slot_is_out_that_nobody_hears_of(clock: Clock) -> None:
    openings = two(clock)
    openings.note_opened(0)
    openings.slots[0].health = SlotHealth.READY
    clock.now += OUT_SECONDS + 1.0
    openings.check_slots()
    assert [slot.health for slot in openings.slots] == [SlotHealth.READY, SlotHealth.OUT]


def test_words_are_wrong_only_where_they_were_never_right(clock: Clock) -> None:
    openings = two(clock)
    openings.note_opened(0)
    openings.note_lost(0)
    openings.note_failed(0, "there is no device 0 any more", usage=True)
    with pytest.raises(UsageError, match="there is no device 9"):
        openings.note_failed(1, "there is no device 9", usage=True)


def test_without_any_device_for_long_it_is_the_end(clock: Clock) -> None:
    openings = two(clock)
    open_both(openings)
    clock.now += 10 * PATIENCE_SECONDS
    openings.check_slots()
    for number in range(2):
        openings.note_lost(number)
        openings.note_failed(number, f"it does not answer on {number}")
    clock.now += PATIENCE_SECONDS
    openings.check_slots()
    clock.now += 1.0
    with pytest.raises(HarnessError) as raised:
        openings.check_slots()
    assert str(raised.value).splitlines() == [
        "no worker could be opened for 10 minutes; mend that and go on with --resume",
        "  worker 0 (device 0): it does not answer on 0",
        "  worker 1 (device 1): it does not answer on 1",
    ]
