"""Which device is asked about a finding, and what is said of what several devices do."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from aclnn_cts.core.faults import Fault
from aclnn_cts.core.finding import Confirmation, Finding, failure_name
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.trial import EarlierCall, Trial
from aclnn_cts.runs.campaign.campaign_state import CampaignState
from aclnn_cts.runs.campaign.jobs import TriageResult
from aclnn_cts.runs.campaign.queues import OTHERS, TRIES, TriageQueue, TriageRequest
from aclnn_cts.speclang.load import Specs
from aclnn_cts.workers.dispatch import Dispatcher
from aclnn_cts.workers.slots import Slot, SlotHealth
from tests.support.build_records import SOFTMAX, make_record

CALLS = (EarlierCall(make_record(99).trial.case),)


class Quiet(TriageQueue):
    """Writes no files."""

    def _write(self, key: Fingerprint, trial: Trial) -> None:
        assert trial.case.operator == key.operator
        self.memory.writer.replace_failure(key, trial)


class House:
    """Findings and slots around `TriageQueue`."""

    def __init__(self, devices: int) -> None:
        self.slots = [Slot(f"worker {number}", f"device {number}", SlotHealth.READY) for number in range(devices)]
        self.findings: dict[str, Finding] = {}
        self.stored: list[Finding] = []
        self.written: list[int] = []
        """For each finding whose files were written: how many had been stored before."""
        writer = SimpleNamespace(replace_failure=lambda _key, _trial: self.written.append(len(self.stored)))
        memory = SimpleNamespace(findings=self.findings, store_finding=self.stored.append, writer=writer)
        self.inquiries = Quiet(
            memory=cast("CampaignState", memory),
            dispatcher=cast("Dispatcher", SimpleNamespace(slots=self.slots)),
            specs=cast("Specs", {}),
            spec_folders=(Path(),),
        )

    def finding(self, *, on: int = 0, kind: str = Fault.VALUE, confirmed: str = "", waiver: str = "") -> Finding:
        key = Fingerprint(operator=SOFTMAX, check="values", fault=kind, answer=str(len(self.findings)))
        found = Finding(
            key=key,
            slot=f"worker {on}",
            device=f"device {on}",
            trial=make_record(len(self.findings)).trial,
            confirmed=confirmed,
            alone=(3, 3) if confirmed else (0, 0),
            waiver=waiver,
        )
        self.findings[failure_name(key)] = found
        return found

    def asked(self, device: int) -> TriageRequest | None:
        question = self.inquiries.next_for(self.slots[device])
        return None if question is None else self.inquiries.take(question)

    def say(self, confirmed: str, *, after: tuple[EarlierCall, ...]) -> TriageRequest:
        question = self.asked(0)
        assert question is not None
        trial = msgspec.structs.replace(question.job.trials[0], after=after)
        said = TriageResult(key=question.job.key, confirmed=confirmed, alone=(0, 6), trial=trial)
        self.inquiries.note_answer(question, said, "device 0")
        return question

    def answer(self, device: int, failures: int, *, shrunk: bool = True) -> None:
        question = self.asked(device)
        assert question is not None
        confirmed = Confirmation.ALWAYS if failures == 3 else Confirmation.FLAKY
        said = TriageResult(
            key=question.job.key, confirmed=confirmed, alone=(failures, 3), trial=question.job.trials[0]
        )
        assert question.job.shrink == shrunk
        self.inquiries.note_answer(question, said, f"device {device}")


def test_a_finding_is_run_again_where_it_was_met() -> None:
    house = House(3)
    house.inquiries.ask(house.finding(on=1))
    assert house.asked(0) is None
    assert house.asked(2) is None
    assert house.asked(1) is not None
    assert not len(house.inquiries)


def test_files_of_a_finding_are_written_before_it_is_stored_as_confirmed() -> None:
    house = House(1)
    found = house.finding()
    house.inquiries.ask(found)
    house.answer(0, 3)
    assert house.written == [0]
    assert house.stored == [found]


def test_another_device_is_asked_where_that_one_is_out() -> None:
    house = House(2)
    found = house.finding(on=1)
    house.inquiries.ask(found)
    house.slots[1].health = SlotHealth.OPENING
    assert house.asked(0) is None, "it may be there in a moment"
    house.slots[1].health = SlotHealth.OUT
    house.answer(0, 0)
    assert found.confirmed == Confirmation.FLAKY
    assert found.note == "run again on device 0, since device 1, which met it, could not be opened"
    assert not len(house.inquiries)


def test_what_failed_on_two_devices_is_of_none() -> None:
    house = House(2)
    found = house.finding(on=1)
    house.inquiries.ask(found)
    house.slots[1].health = SlotHealth.OUT
    house.answer(0, 3)
    assert (found.confirmed, found.elsewhere, found.note) == (Confirmation.ALWAYS, (3, 3), "")
    assert not len(house.inquiries)


def test_other_devices_are_asked_until_it_fails_on_one() -> None:
    house = House(4)
    found = house.finding(on=2)
    house.inquiries.ask(found)
    house.answer(2, 3)
    assert house.asked(2) is None
    house.answer(0, 0, shrunk=False)
    assert (found.confirmed, found.elsewhere) == (Confirmation.DEVICE, (0, 3))
    assert found.note == "it fails on device 2, and not on device 0"
    assert house.asked(0) is None
    house.answer(3, 0, shrunk=False)
    assert found.note == "it fails on device 2, and not on device 0 or device 3"
    house.answer(1, 2, shrunk=False)
    assert (found.confirmed, found.elsewhere) == (Confirmation.ALWAYS, (2, 9))
    assert found.note == "it fails on device 2 and on device 1, and not on device 0 or device 3"
    assert not len(house.inquiries)


def test_one_other_device_is_enough_where_it_fails_there() -> None:
    house = House(4)
    found = house.finding(on=2)
    house.inquiries.ask(found)
    house.answer(2, 3)
    house.answer(0, 3, shrunk=False)
    assert (found.confirmed, found.elsewhere, found.note) == (Confirmation.ALWAYS, (3, 3), "")
    assert not len(house.inquiries)


def test_not_all_of_a_rack_are_asked() -> None:
    house = House(OTHERS + 5)
    house.inquiries.ask(house.finding(on=0))
    house.answer(0, 3)
    for number in range(1, OTHERS + 1):
        house.answer(number, 0, shrunk=False)
    assert not len(house.inquiries)


def test_after_a_resume_other_devices_are_asked_that_were_not() -> None:
    house = House(2)
    always = house.finding(on=1, confirmed=Confirmation.ALWAYS)
    for finding in (
        house.finding(on=1, confirmed=Confirmation.DEVICE),
        house.finding(on=1, confirmed=Confirmation.FLAKY),
        house.finding(on=1, confirmed=Confirmation.ALWAYS, waiver="known"),
        always,
    ):
        house.inquiries.ask(finding)
    assert len(house.inquiries) == 1
    assert house.asked(1) is None
    house.answer(0, 0, shrunk=False)
    assert always.confirmed == Confirmation.DEVICE
    house.inquiries.ask(always)
    assert not len(house.inquiries)


def test_what_no_device_can_be_asked_is_not_waited_for() -> None:
    house = House(2)
    found = house.finding(on=1)
    house.inquiries.ask(found)
    house.answer(1, 3)
    house.slots[0].health = SlotHealth.OUT
    assert len(house.inquiries) == 1
    house.inquiries.drop_hopeless()
    assert not len(house.inquiries)
    assert (found.confirmed, found.elsewhere) == (Confirmation.ALWAYS, (0, 0)), "the next session asks"
    house.inquiries.ask(house.finding(on=0))
    house.inquiries.drop_hopeless()
    assert len(house.inquiries) == 1, "the other device is asked"
    house.slots[1].health = SlotHealth.OUT
    house.inquiries.drop_hopeless()
    assert not len(house.inquiries)


def test_a_lost_worker_is_no_answer() -> None:
    house = House(1)
    found = house.finding()
    house.inquiries.ask(found)
    for _ in range(5):
        question = house.asked(0)
        assert question is not None
        house.inquiries.note_lost(question, "it could not be opened", begun=False)
    for number in range(TRIES):
        question = house.asked(0)
        assert question is not None
        assert found.confirmed == Confirmation.WAITING, number
        house.inquiries.note_lost(question, "it was ended by signal 9", begun=True)
    assert (found.confirmed, found.note) == (Confirmation.UNKNOWN, "it was ended by signal 9")


def test_calls_that_another_finding_needs_are_tried_before_others_are_searched() -> None:
    house = House(1)
    for finding in [house.finding() for _ in range(2)]:
        house.inquiries.ask(finding)
    house.say(Confirmation.ORDER, after=CALLS)
    assert house.say(Confirmation.ORDER, after=()).job.known == (CALLS,)


def test_those_that_take_long_come_last() -> None:
    house = House(1)
    for kind in (Fault.HANG, Fault.VALUE, Fault.HANG, Fault.CRASH):
        house.inquiries.ask(house.finding(kind=kind))
    order = [house.asked(0) for _ in range(4)]
    assert [item.job.key.fault for item in order if item] == [Fault.VALUE, Fault.CRASH, Fault.HANG, Fault.HANG]


@pytest.mark.parametrize("sessions", [1, 2])
def test_what_is_left_is_said_and_asked_in_the_next_session(sessions: int) -> None:
    house = House(1)
    found = house.finding()
    house.finding(confirmed=Confirmation.ALWAYS)
    house.finding(waiver="known")
    for _ in range(sessions):
        house.inquiries.ask(found)
        assert house.inquiries.note_unfinished("its time is over") == 1
        assert found.note == "not run again: its time is over; --resume does that"
        assert house.stored[-1] is found
        assert house.asked(0) is not None


def test_what_there_was_no_time_to_confirm_waits_for_the_next_session() -> None:
    house = House(1)
    found = house.finding()
    house.inquiries.ask(found)
    question = house.asked(0)
    assert question is not None
    said = TriageResult(key=found.key, confirmed="", alone=(0, 0), note="broken off after 15 s")
    house.inquiries.note_answer(question, said, "device 0")
    assert not len(house.inquiries)
    assert house.inquiries.note_unfinished("its time is over") == 1
    assert (found.confirmed, found.note) == (Confirmation.WAITING, "broken off after 15 s")
    house.inquiries.ask(found)
    assert len(house.inquiries) == 1
