"""Which call a fault of the device is given to, on a device of a few lines whose faults show late."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclnn_cts.adapters.protocol import Call
from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.outcome import EARLIER_FAULT, CallEnd, Outcome
from aclnn_cts.sandbox.attribution import attribute_faults

PLAIN, OWN, LATE, HALF, OTHER_HALF, DIES = "plain", "own", "late", "half", "other half", "dies"


@dataclass(slots=True)
class Device:
    """Makes calls as a host does; a fault shows in the call after its own, before or during that one's second phase."""

    roles: Sequence[str]
    during: bool = False
    processes: int = 0
    groups: dict[int, int] = field(default_factory=dict)

    @property
    def calls(self) -> list[Call]:
        cases = [Case("aclnnX", {"x": Tensor((place + 1,), "FLOAT")}) for place in range(len(self.roles))]
        return [Call(case, group=self.groups.get(place)) for place, case in enumerate(cases)]

    def run(self, places: Sequence[int]) -> list[Outcome]:
        self.processes += 1
        broken = half = False
        found = []
        for place in places:
            role = self.roles[place]
            outcome = Outcome()
            if broken and self.during:
                outcome = Outcome(ended=CallEnd.DEVICE_FAULT, message="507015 met")
                broken = half = False
            else:
                facts = {EARLIER_FAULT: "507015 met"} if broken else {}
                half = half and not broken
                broken = role == LATE or (role == OTHER_HALF and half)
                half = half or role == HALF
                ends = {OWN: CallEnd.DEVICE_FAULT, DIES: CallEnd.SIGNAL}
                outcome = Outcome(ended=ends.get(role, CallEnd.RETURNED), message=f"{role} {place}", facts=facts)
                if role in ends:
                    broken = half = False
            found.append(outcome)
        return found

    def settled(self, *, look: bool = True) -> list[Outcome]:
        places = range(len(self.roles))
        outcomes = self.run(places)
        return attribute_faults(
            self.calls, outcomes, alone=self.run, company=self.run, trials=len(self.roles) - 1 if look else None
        )


def faults(outcomes: Sequence[Outcome]) -> list[int]:
    return [place for place, outcome in enumerate(outcomes) if outcome.ended == CallEnd.DEVICE_FAULT]


@given(st.lists(st.sampled_from([PLAIN, PLAIN, PLAIN, OWN, LATE, DIES]), min_size=1, max_size=40))
def test_each_fault_is_given_to_its_own_call(roles: list[str]) -> None:
    device = Device([*roles, PLAIN])
    found = device.settled()
    assert faults(found) == [place for place, role in enumerate(roles) if role in (OWN, LATE)]
    assert [place for place, outcome in enumerate(found) if outcome.ended == CallEnd.SIGNAL] == [
        place for place, role in enumerate(roles) if role == DIES
    ]
    assert device.processes <= 1 + 10 * sum(role in (OWN, LATE) for role in roles)


@given(st.integers(0, 30), st.integers(1, 30))
def test_a_call_that_is_told_of_a_fault_in_its_second_phase_is_cleared(before: int, after: int) -> None:
    device = Device([PLAIN] * before + [LATE] + [PLAIN] * after, during=True)
    found = device.settled()
    assert faults(found) == [before]
    assert found[before].message.startswith("507015 met; it shows in a call after this one")
    # What the cleared call came to is what it comes to alone.
    assert found[before + 1] == device.run([before + 1])[0]


@pytest.mark.parametrize("during", [True, False])
def test_fault_after_the_whole_batch_alone_names_the_batch(*, during: bool) -> None:
    roles = [PLAIN, HALF, PLAIN, PLAIN, OTHER_HALF, PLAIN, PLAIN]
    device = Device(roles, during=during)
    found = device.settled()
    assert faults(found) == [5]
    message = found[5].message
    assert message.startswith(
        "507015 met; the call does not fail alone in a fresh process, nor after one earlier call:"
    )
    assert "only after all 5 calls before it in its batch (cases " in message
    assert message.endswith(" and 1 before these)")


def test_what_a_look_at_the_device_shows_is_told_of_the_last_call() -> None:
    found = Device([HALF, PLAIN, OTHER_HALF, PLAIN]).settled()
    assert faults(found) == [2]
    assert "only after all" in found[2].message


def test_a_fault_that_does_not_come_again_is_nobodys_unless_a_second_phase_met_it() -> None:
    for outcome, expected in (
        (Outcome(facts={EARLIER_FAULT: "507015"}), []),
        (Outcome(ended=CallEnd.DEVICE_FAULT), [1]),
    ):
        device = Device([PLAIN, PLAIN])
        found = attribute_faults(device.calls, [Outcome(), outcome], alone=device.run, company=device.run)
        assert faults(found) == expected


def test_a_group_is_tried_together() -> None:
    device = Device([PLAIN, HALF, OTHER_HALF, PLAIN, PLAIN], groups={1: 7, 2: 7})
    assert faults(device.settled()) == [1, 2]


def test_without_a_fault_nothing_is_made_again() -> None:
    device = Device([PLAIN, DIES, PLAIN])
    outcomes = [msgspec.structs.replace(outcome) for outcome in device.run([0, 1, 2])]
    assert attribute_faults(device.calls, outcomes, alone=device.run, company=device.run) == outcomes
    assert device.processes == 1
