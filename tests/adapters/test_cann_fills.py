"""Outputs are filled before a call; what still holds the fill is called again with another one before it is judged."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
import pytest

from aclnn_cts.core.case import Argument, Case, Data, Tensor
from aclnn_cts.execution.executor import CallPerformer, CallRequest, PerformedCall
from aclnn_cts.sandbox.host import InProcessHost
from tests.adapters.recording_device import SPECS, Kernel, RecordingDevice, open_session

SIZE = 4
MARKED = 1


def performed(kernel: Kernel, *, dtype: str = "FLOAT") -> tuple[PerformedCall, RecordingDevice]:
    device = RecordingDevice(kernel=kernel)
    tensor = Tensor((SIZE,), dtype, data=Data(recipe="normal"))
    arguments: dict[str, Argument] = {"gradOutput": tensor, "output": tensor, "dim": 0, "out": Tensor((SIZE,), dtype)}
    host = InProcessHost(open_session(device))
    (result,) = CallPerformer(host=host, specs=SPECS).perform([CallRequest(Case("aclnnSoftmaxBackward", arguments))])
    return result, device


def zeros_but(itemsize: int, element: Callable[[int], object]) -> Kernel:
    """A kernel that writes zeros, and does with one element as it is told."""

    def kernel(device: RecordingDevice, arguments: tuple[object, ...], *_: int) -> None:
        address = device.address(arguments[3])  # type: ignore[arg-type]  # a pointer
        for place in range(SIZE):
            if place == MARKED:
                element(address + place * itemsize)
            else:
                ctypes.memset(address + place * itemsize, 0, itemsize)

    return kernel


DTYPES = pytest.mark.parametrize(("dtype", "itemsize"), [("FLOAT", 4), ("FLOAT16", 2), ("BF16", 2), ("DOUBLE", 8)])


@DTYPES
def test_an_element_that_is_never_written_holds_both_fills(dtype: str, itemsize: int) -> None:
    result, device = performed(zeros_but(itemsize, lambda _: None), dtype=dtype)
    assert result.outcome.buffers["out"].unwritten == 1
    assert device.counts["phase_two"] == 2
    # Neither zero nor any result that a computation could have had.
    assert not np.isfinite(result.got["out"][MARKED]) or abs(float(result.got["out"][MARKED])) > 1e3


@DTYPES
def test_a_result_that_happens_to_equal_the_fill_is_written(dtype: str, itemsize: int) -> None:
    kept: list[bytes] = []

    def same_again(address: int) -> None:
        if not kept:
            kept.append(ctypes.string_at(address, itemsize))
        ctypes.memmove(address, kept[0], itemsize)

    result, device = performed(zeros_but(itemsize, same_again), dtype=dtype)
    assert device.counts["phase_two"] == 2
    assert result.outcome.buffers["out"].unwritten == 0


def test_a_call_that_writes_everything_is_made_once() -> None:
    result, device = performed(zeros_but(4, lambda address: ctypes.memset(address, 0, 4)))
    assert (result.outcome.buffers["out"].unwritten, device.counts["phase_two"]) == (0, 1)
