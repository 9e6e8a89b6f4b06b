"""Lifetimes on every path of a call: what is made is given back, in an order that the interface allows."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from aclnn_cts.adapters.cann.execution import BOTH_PHASES, FIRST_PHASE, WORKSPACE
from aclnn_cts.adapters.protocol import Call, Inexpressible
from aclnn_cts.adapters.results import perform
from aclnn_cts.core.case import Argument, CallOptions, Case, Data, Tensor
from aclnn_cts.core.outcome import CallEnd, Outcome
from aclnn_cts.generate.buffers import GUARD, prepare
from aclnn_cts.generate.recipes import case_arrays
from tests.adapters.recording_device import SPECS, Kernel, RecordingDevice, open_session

GIVEN_UP = (CallEnd.DEVICE_FAULT, CallEnd.TIME_LIMIT, CallEnd.DEVICE_LOST)


def softmax(size: int = 3, *, phases: int = 2, null: tuple[str, ...] = (), **changes: Argument) -> Case:
    tensor = Tensor((size,), "FLOAT", data=Data(recipe="normal", seed=size))
    out = Tensor((size,), "FLOAT")
    arguments: dict[str, Argument] = {"gradOutput": tensor, "output": tensor, "dim": 0, "out": out}
    return Case("aclnnSoftmaxBackward", arguments | changes, call=CallOptions(phases=phases, null=null))


def upsample() -> Case:
    arguments: dict[str, Argument] = {
        "gradOutput": Tensor((1, 1, 4), "FLOAT", format="NCL", data=Data(recipe="normal")),
        "outputSizeOptional": (4,),
        "inputSize": (1, 1, 2),
        "scalesOptional": 2.0,
        "out": Tensor((1, 1, 2), "FLOAT", format="NCL"),
    }
    return Case("aclnnUpsampleNearestExact1dBackward", arguments)


def call(case: Case, *, group: int | None = None, **words: str | int | bool) -> Call:
    outputs = frozenset(SPECS[case.operator].outputs)
    if case.call.phases == 1:
        return Call(case, None, call_mode=words, group=group)
    arrays = case_arrays(case, [name for name in SPECS[case.operator].inputs if case.arguments[name] is not None])
    return Call(case, prepare(case, outputs=outputs, arrays=arrays), call_mode=words, group=group)


def left(device: RecordingDevice) -> dict[str, int]:
    return {kind: len(handles) for kind, handles in device.alive.items() if handles}


def test_the_order_is_that_of_the_documents_programs() -> None:
    device = RecordingDevice()
    session = open_session(device)
    (outcome,) = session.run([call(upsample())])
    assert (outcome.ended, outcome.phase_one, outcome.phase_two, outcome.synchronised) == (CallEnd.RETURNED, 0, 0, 0)
    assert outcome.workspace_size == 96
    session.close()
    steps = [name for name in device.log if name not in ("aclrtMemcpy", "aclrtMemset")]
    assert steps == [
        *["aclrtMalloc"] * 2,
        "aclCreateTensor",
        *["aclCreateIntArray"] * 2,
        "aclCreateTensor",
        "phase_one",
        "aclrtMalloc",
        "aclrtCreateStream",
        "phase_two",
        "aclrtSynchronizeStreamWithTimeout",
        "aclDestroyTensor",
        *["aclDestroyIntArray"] * 2,
        "aclDestroyTensor",
        *["aclrtFree"] * 3,
        "aclrtDestroyStream",
        "aclrtResetDevice",
        "aclFinalize",
    ]
    assert (device.mistakes, left(device)) == ([], {})


FAILURES = {
    "aclrtMalloc": 3,
    "aclrtMemset": 2,
    "aclrtMemcpy": 8,
    "aclrtCreateStream": 1,
    "aclCreateTensor": 3,
    "phase_one": 1,
    "phase_two": 1,
    "aclrtSynchronizeStreamWithTimeout": 1,
}
"""How often one call needs each: each time it may fail."""

CODES = {"phase_one": (161002, 561103), "phase_two": (361001, 561002), "aclCreateTensor": (0,)}
RUNTIME_CODES = (207001, 107000, 507015, 507046, 507010)


@pytest.mark.parametrize(
    ("name", "number", "code"),
    [
        (name, number, code)
        for name, times in FAILURES.items()
        for number in range(1, times + 1)
        for code in CODES.get(name, RUNTIME_CODES)
    ],
)
def test_whatever_fails_everything_is_given_back(name: str, number: int, code: int) -> None:
    device = RecordingDevice(fails={name: (number, code)})
    session = open_session(device)
    first, second = (perform(session, [call(softmax(size))])[0] for size in (3, 4))
    assert device.counts[name] >= number
    assert device.mistakes == []
    streams = left(device).pop("stream", 0)
    if first.ended in GIVEN_UP:
        # Nothing is given back while the device may still use it; the process is given up.
        assert second.ended == CallEnd.NOT_RUN
        assert first.message.splitlines()[0] in second.message
    else:
        assert {kind: count for kind, count in left(device).items() if kind != "stream"} == {}
        assert second.ended == CallEnd.RETURNED
        assert streams == 1
        session.close()
        assert left(device) == {}


@pytest.mark.parametrize(
    ("name", "number", "code", "ended"),
    [
        # Before phase two nothing of this call has reached the device.
        ("phase_one", 1, 507015, CallEnd.DEVICE_LOST),
        ("phase_two", 1, 507015, CallEnd.DEVICE_FAULT),
        ("aclrtMalloc", 1, 507015, CallEnd.DEVICE_LOST),
        ("aclrtMemcpy", 1, 507035, CallEnd.DEVICE_LOST),
        ("aclrtSynchronizeStreamWithTimeout", 1, 507015, CallEnd.DEVICE_FAULT),
        ("aclrtSynchronizeStreamWithTimeout", 1, 507035, CallEnd.DEVICE_FAULT),
        ("aclrtSynchronizeStreamWithTimeout", 1, 507014, CallEnd.DEVICE_FAULT),
        ("aclrtSynchronizeStreamWithTimeout", 1, 507046, CallEnd.TIME_LIMIT),
        ("aclrtSynchronizeStreamWithTimeout", 1, 107020, CallEnd.TIME_LIMIT),
        ("aclrtSynchronizeStreamWithTimeout", 1, 507010, CallEnd.DEVICE_LOST),
        ("aclrtSynchronizeStreamWithTimeout", 1, 507054, CallEnd.DEVICE_LOST),
        ("aclrtSynchronizeStreamWithTimeout", 1, 107003, CallEnd.DEVICE_LOST),
        ("aclrtMemcpy", 4, 507015, CallEnd.DEVICE_FAULT),
        ("aclrtMalloc", 1, 207001, CallEnd.NOT_RUN),
    ],
)
def test_codes_tell_whose_fault_it_is(name: str, number: int, code: int, ended: str) -> None:
    device = RecordingDevice(fails={name: (number, code)})
    (outcome,) = open_session(device).run([call(softmax())])
    assert outcome.ended == ended
    assert str(code) in outcome.message
    assert outcome.message.endswith("the device's own words")


def test_an_error_of_phase_one_keeps_its_message_and_what_it_left() -> None:
    device = RecordingDevice(fails={"phase_one": (1, 161002)})
    (outcome,) = open_session(device).run([call(softmax())])
    assert (outcome.phase_one, outcome.phase_two, outcome.message) == (161002, None, "the device's own words")
    assert outcome.facts["workspaceSize after the error"] == "untouched"
    assert outcome.facts["executor after the error"] == "untouched"
    assert "phase_two" not in device.log


def test_success_that_writes_neither_pointer_is_a_refusal() -> None:
    device = RecordingDevice(fails={"phase_one": (1, 0)})
    (outcome,) = open_session(device).run([call(softmax())])
    assert (outcome.ended, outcome.message) == (CallEnd.RAISED, "phase one returned success, and executor is untouched")


@pytest.mark.parametrize("release", [True, False])
def test_phase_one_alone_needs_no_memory_and_gives_its_executor_back_where_that_can_be(*, release: bool) -> None:
    lacks = frozenset() if release else frozenset({"aclDestroyAclOpExecutor"})
    device = RecordingDevice(lacks=lacks)
    session = open_session(device)
    (outcome,) = session.run([call(softmax(phases=1))])
    assert (outcome.phase_one, outcome.phase_two) == (0, None)
    assert "aclrtMalloc" not in device.log
    assert "aclrtCreateStream" not in device.log
    assert [arguments[8] for arguments in device.tensors.values()] == [None] * 3
    assert device.log.count("aclDestroyAclOpExecutor") == int(release)
    assert left(device) == ({} if release else {"executor": 1})


def test_null_pointers_reach_the_library() -> None:
    session = open_session(RecordingDevice())
    for name in ("workspaceSize", "executor"):
        (outcome,) = session.run([call(softmax(null=(name,)))])
        assert outcome.phase_one == 161001
    (outcome,) = session.run([call(softmax(null=("workspace",)))])
    assert (outcome.phase_one, outcome.phase_two) == (0, 161001)


def test_a_repeatable_executor_is_run_again_and_destroyed() -> None:
    device = RecordingDevice()
    (outcome,) = open_session(device).run([call(softmax(), repeat=3)])
    assert outcome.ended == CallEnd.RETURNED
    assert device.log.count("phase_two") == device.log.count("aclrtSynchronizeStreamWithTimeout") == 3
    assert (device.mistakes, left(device)) == ([], {"stream": 1})


def test_a_plan_that_cannot_be_repeated_is_inexpressible() -> None:
    device = RecordingDevice(fails={"aclSetAclOpExecutorRepeatable": (1, 561000)})
    session = open_session(device)
    with pytest.raises(Inexpressible, match="returned 561000"):
        session.run([call(softmax(), repeat=3)])
    assert (device.mistakes, left(device)) == ([], {})


def test_interleaved_phases_and_two_streams() -> None:
    device = RecordingDevice()
    session = open_session(device)
    pair = [call(softmax(size), order="interleaved", group=1) for size in (3, 4)]
    outcomes = session.run(pair)
    phases = [name for name in device.log if name.startswith("phase")]
    assert phases == ["phase_one", "phase_one", "phase_two", "phase_two"]
    assert [outcome.ended for outcome in outcomes] == [CallEnd.RETURNED] * 2
    session.run([call(softmax(size), stream=size - 3, group=1) for size in (3, 4)])
    assert left(device) == {"stream": 2}
    session.close()
    assert (device.mistakes, left(device)) == ([], {})


def test_one_of_a_group_that_fails_waits_for_the_other() -> None:
    device = RecordingDevice(fails={"aclrtCreateStream": (2, 107000)})
    outcomes = open_session(device).run([call(softmax(size), stream=size - 3, group=1) for size in (3, 4)])
    assert {outcome.ended for outcome in outcomes} == {CallEnd.NOT_RUN}
    assert (device.mistakes, left(device)) == ([], {"stream": 1})


@pytest.mark.parametrize(("word", "size"), [("exact", 96), ("larger", 2 * 96 + 4096)])
def test_workspaces_of_other_sizes(word: str, size: int) -> None:
    seen: list[int] = []
    device = RecordingDevice(kernel=lambda _device, _arguments, _workspace, given: seen.append(given))
    open_session(device).run([call(softmax(), workspace=word)])
    assert seen == [size]
    # The workspace is the last allocation; an exact one has no room for guards.
    *_, last = device.blocks.values()
    assert len(last) == size + (0 if word == "exact" else 2 * GUARD)


def test_no_workspace_where_none_is_asked_for() -> None:
    device = RecordingDevice(workspace=0)
    (outcome,) = open_session(device).run([call(softmax())])
    assert (outcome.phase_two, outcome.workspace_size) == (0, 0)
    assert device.counts["aclrtMalloc"] == 3


def outcome_of(kernel: Kernel) -> tuple[Outcome, Call]:
    it = call(softmax())
    (outcome,) = open_session(RecordingDevice(kernel=kernel)).run([it])
    return outcome, it


@pytest.mark.parametrize(("offset", "name", "part"), [(-1, "out", "guard_before"), (12, "out", "guard_after")])
def test_a_write_beside_an_output_is_brought_back(offset: int, name: str, part: str) -> None:
    def kernel(device: RecordingDevice, arguments: tuple[Any, ...], *_: int) -> None:
        ctypes.memset(device.address(arguments[3]) + offset, 0, 1)

    _, it = outcome_of(kernel)
    assert it.buffers is not None
    state = it.buffers.inspect()[name]  # type: ignore[attr-defined]  # as `prepare` makes them
    assert getattr(state, part) == 1


def test_a_changed_input_is_brought_back() -> None:
    def kernel(device: RecordingDevice, arguments: tuple[Any, ...], *_: int) -> None:
        ctypes.memset(device.address(arguments[0]) + 4, 0x77, 4)

    _, it = outcome_of(kernel)
    assert it.buffers is not None
    assert it.buffers.inspect()["gradOutput"].changed == 4  # type: ignore[attr-defined]  # as `prepare` makes them


def test_inputs_and_guards_are_looked_at_after_an_error_too() -> None:
    def kernel(device: RecordingDevice, arguments: tuple[Any, ...], *_: int) -> None:
        ctypes.memset(device.address(arguments[0]), 0x77, 4)

    it = call(softmax())
    (outcome,) = open_session(RecordingDevice(kernel=kernel, fails={"phase_two": (1, 361001)})).run([it])
    assert outcome.phase_two == 361001
    assert it.buffers is not None
    assert it.buffers.inspect()["gradOutput"].changed == 4  # type: ignore[attr-defined]  # as `prepare` makes them


@pytest.mark.parametrize(("start", "before", "after"), [(-2, 2, 0), (95, 0, 3)])
def test_a_write_beside_the_workspace_is_told(start: int, before: int, after: int) -> None:
    def kernel(device: RecordingDevice, arguments: tuple[Any, ...], workspace: int, size: int) -> None:
        del device, arguments
        ctypes.memset(workspace + start, 0, 2 if start < 0 else size - start + 3)

    outcome, _ = outcome_of(kernel)
    state = outcome.buffers[WORKSPACE]
    assert (state.guard_before, state.guard_after) == (before, after)


def test_a_workspace_holds_no_zeros() -> None:
    seen: list[bytes] = []
    outcome_of(lambda _device, _arguments, workspace, size: seen.append(ctypes.string_at(workspace, size)))
    assert set(seen[0]) == {0xD7}


@pytest.mark.parametrize("name", [*FIRST_PHASE, *BOTH_PHASES, "repeat"])
def test_call_modes_are_those_that_the_release_has(name: str) -> None:
    old = RecordingDevice(lacks=frozenset({"aclSetAclOpExecutorRepeatable", "aclrtMalloc"}))
    assert name in open_session(RecordingDevice()).capabilities.call_modes
    assert (name in open_session(old).capabilities.call_modes) == (name in FIRST_PHASE)


def test_an_unknown_call_mode_or_operator_is_inexpressible() -> None:
    session = open_session(RecordingDevice(lacks=frozenset({"aclnnRmsNormGrad"})))
    with pytest.raises(Inexpressible, match="speed: not a call mode"):
        session.run([call(softmax(), speed=3)])
    with pytest.raises(Inexpressible, match="no document here speaks of aclnnNothing"):
        session.run([Call(Case("aclnnNothing", {}))])
    tensor = Tensor((2,), "FLOAT")
    names = ("dy", "x", "rstd", "gamma", "dxOut", "dgammaOut")
    with pytest.raises(Inexpressible, match="does not ship aclnnRmsNormGrad"):
        session.run([Call(Case("aclnnRmsNormGrad", dict.fromkeys(names, tensor), call=CallOptions(phases=1)))])


def test_a_call_that_must_be_cold_asks_for_a_fresh_process_where_its_like_was_accepted() -> None:
    session = open_session(RecordingDevice())
    first, second, third, other = (
        session.run([item])[0]
        for item in (
            call(softmax(), cache="cold"),
            call(softmax()),
            call(softmax(gradOutput=Tensor((3,), "FLOAT", strides=(1,), data=Data(recipe="uniform"))), cache="cold"),
            call(softmax(4), cache="cold"),
        )
    )
    assert (first.ended, first.facts["cold"]) == (CallEnd.RETURNED, True)
    assert (second.ended, second.facts["cold"]) == (CallEnd.RETURNED, False)
    assert third.ended == CallEnd.WANTS_FRESH
    assert (other.ended, other.facts["cold"]) == (CallEnd.RETURNED, True)


def test_many_failing_calls_are_counted_and_a_change_of_status_is_told() -> None:
    device = RecordingDevice(fails={"phase_one": (7, 561000)})
    session = open_session(device)
    invalid = softmax(phases=1)
    (outcome,) = session.run([call(invalid, times=10)])
    assert outcome.message == "call 6 in a row returned 561000, the first 0"
    (outcome,) = session.run([call(invalid, times=10)])
    assert outcome.facts["calls in the second half"] == 5
    assert isinstance(outcome.facts["bytes grown"], int)
    assert (device.mistakes, left(device)) == ([], {})
