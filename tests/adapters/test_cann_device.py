"""What an initialised runtime says of itself, and what an old one leaves unsaid."""

from __future__ import annotations

import pytest

from aclnn_cts.adapters.cann.bindings import RUNTIME, Functions
from aclnn_cts.adapters.cann.device import Device, open_device, recent_message
from aclnn_cts.adapters.results import MESSAGE_LIMIT
from aclnn_cts.core.errors import HarnessError
from tests.adapters.recording_device import RecordingDevice, open_session


def runtime(device: RecordingDevice) -> Functions:
    return open_session(device).api.runtime


def test_an_old_release_leaves_much_unsaid() -> None:
    kept = {"aclInit", "aclFinalize", "aclrtSetDevice", "aclrtResetDevice", "aclrtGetSocName"}
    device = Device(runtime(RecordingDevice(lacks=frozenset(RUNTIME) - kept)), 0, finalise=True)
    said = (device.core_count(), device.deterministic(), device.overflow_mode(), device.runtime_version())
    assert said == (None, None, None, "unknown")
    assert recent_message(device.runtime) == ""
    with pytest.raises(HarnessError, match=r"determinism cannot be set .* this release has no such call"):
        device.set_determinism(on=True)


@pytest.mark.parametrize(("code", "found"), [(0, False), (107021, False), (100000, None)])
def test_determinism_that_was_never_set_is_off_and_an_error_is_unknown(code: int, *, found: bool | None) -> None:
    fails = {"aclrtGetSysParamOpt": (1, code)}
    assert Device(runtime(RecordingDevice(fails=fails)), 0, finalise=True).deterministic() is found


def test_determinism_that_the_release_refuses_is_told() -> None:
    device = Device(runtime(RecordingDevice(fails={"aclrtCtxSetSysParamOpt": (1, 107002)})), 0, finalise=True)
    with pytest.raises(HarnessError, match=r"107002 \(no context\)"):
        device.set_determinism(on=True)


def test_a_device_without_a_name_is_told() -> None:
    with pytest.raises(HarnessError, match=r"gives no name for device 3: the device's own words; .*npu-smi info"):
        Device(runtime(RecordingDevice(fails={"aclrtGetSocName": (1, 0)})), 3, finalise=True).soc()


@pytest.mark.parametrize(
    ("fails", "steps"),
    [
        ({}, ["aclInit", "aclrtSetDevice", "aclrtResetDevice", "aclFinalize"]),
        # Who was first to initialise is the one to finalise.
        ({"aclInit": (1, 100002)}, ["aclInit", "aclrtSetDevice", "aclrtResetDevice"]),
    ],
)
def test_what_was_begun_here_is_ended_here(fails: dict[str, tuple[int, int]], steps: list[str]) -> None:
    device = RecordingDevice(fails=fails)
    open_device(runtime(device), 0).close()
    assert device.log == steps


@pytest.mark.parametrize(
    ("name", "code", "finalised"),
    [("aclInit", 507008, 0), ("aclrtSetDevice", 107001, 1), ("aclrtSetDevice", 507033, 1)],
)
def test_a_device_that_cannot_be_set_is_told_and_nothing_stays(name: str, code: int, finalised: int) -> None:
    device = RecordingDevice(fails={name: (1, code)})
    with pytest.raises(HarnessError, match=rf"{name}.* returned {code} \(.*\): the device's own words; .*npu-smi"):
        open_device(runtime(device), 0)
    assert device.log.count("aclFinalize") == finalised


def test_messages_are_cut_and_need_not_be_text() -> None:
    device = RecordingDevice(message=b"\xff caf\xc3\xa9 " + b"x" * 10_000)
    text = recent_message(runtime(device))
    assert text.startswith("\ufffd caf\u00e9 xxx")
    assert len(text) == MESSAGE_LIMIT
    assert recent_message(runtime(device)) == "", "it is given once"
