"""What an implementation did in one call, before anyone judges it, and the names of aclnnStatus values."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, TypeAlias

import msgspec

_Status: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)]
"""An aclnnStatus or aclError: an int32 of the C interface."""
_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
_Seconds: TypeAlias = Annotated[float, msgspec.Meta(ge=0.0, lt=1e9)]
"""Finite: comparisons with either bound are false for nan."""


class CallEnd:
    """The ways in which a call can end (values of `Outcome.ended`)."""

    RETURNED = "returned"
    RAISED = "raised"
    """The adapter raised: the implementation refused the arguments in its own way, or broke."""
    SIGNAL = "signal"
    """The process died by a signal."""
    EXIT = "exit"
    """The process ended by itself."""
    TIME_LIMIT = "time limit"
    MEMORY_LIMIT = "memory limit"
    DEVICE_FAULT = "device fault"
    INEXPRESSIBLE = "inexpressible"
    """The adapter cannot put this call to its implementation; `message` says why."""
    DEVICE_LOST = "device lost"
    """The device failed under the harness and not under the operator: before the second phase was called, or by itself
    (heartbeat, memory errors). Hosts answer that with a fresh process; nobody after them sees it."""
    WANTS_FRESH = "wants a fresh process"
    """The adapter did not make the call, since its process has a past that the call must not meet. Hosts answer that;
    nobody after them sees it."""
    NOT_RUN = "not run"
    """The harness could not run it (out of its own memory, a lost device)."""


EARLIER_FAULT = "device fault of a call before"
"""Key of `Outcome.facts`: what the runtime said when the call met a device that was broken before it. Hosts make such a
call again in a fresh process, and the fact stays with what came of it there."""

ENDS: frozenset[str] = frozenset(value for name, value in vars(CallEnd).items() if name.isupper())
"""All of them."""

PROCESS_ENDS = frozenset({CallEnd.DEVICE_FAULT, CallEnd.TIME_LIMIT, CallEnd.DEVICE_LOST, CallEnd.WANTS_FRESH})
"""Ends that an adapter may tell of, after which nothing more is asked of its process."""


GROWN_BYTES = "bytes grown"
"""The fact of an outcome that says by how much the process grew over the second half of calls made in a row."""

ADDRESSES = "addresses"
"""Key of `Outcome.facts`: where storages lay on a device, as `out=0x12c0,self=0x3480`. Only stray writes keep it."""


READ_OUTSIDE = "read outside"
"""Key of `Outcome.facts`, set by the harness: the input outside of which a call read, and died."""


class StrayWrite(msgspec.Struct, frozen=True, omit_defaults=True):
    """The first bytes that a call changed and must leave alone."""

    offset: int
    """From the start of the tensor's storage; negative before it."""
    before: str
    """What lay there, in hexadecimal; of a run of changed bytes the first 16."""
    after: str
    address: str = ""
    """Where that was for the implementation, in hexadecimal; empty where it does not say."""


class BufferState(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of one tensor's memory in a call: counts of elements or bytes, found by the harness."""

    unwritten: _Count = 0
    """Elements of an output's view that still hold the fill pattern of both fills."""
    guard_before: _Count = 0
    """Bytes changed in the guard band before the storage."""
    guard_after: _Count = 0
    gap: _Count = 0
    """Bytes changed inside the storage but outside the view of an output."""
    changed: _Count = 0
    """Bytes changed in an input's storage."""
    stray: StrayWrite | None = None
    """Where guards, gap or input were changed first; None where nothing was."""
    sha256: str = ""
    """Of the bytes of an output's view in row-major order."""
    late: bool = False
    """Whether an output's view changed between the call's return and the end of its batch."""


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """One call's end, statuses, message and memory. The outputs' values stay in their buffers (`generate.buffers`)."""

    ended: str = CallEnd.RETURNED
    phase_one: _Status | None = None
    """The aclnnStatus of the first phase; None where the implementation has none."""
    phase_two: _Status | None = None
    synchronised: _Status | None = None
    """The aclError of the synchronisation after the second phase."""
    message: str = ""
    rejected: bool = False
    """It raised a clear error of the implementation, which declared that it does so (`Capabilities.rejections`)."""
    signal: _Count | None = None
    workspace_size: int | None = None
    seconds: _Seconds = 0.0
    buffers: Mapping[str, BufferState] = {}
    facts: Mapping[str, str | int | float | bool] = {}
    """What is recorded and never judged: what outputs held after an error, finer precision, and so on."""

    @property
    def status(self) -> int | None:
        """The status that decides: the first that is not success, else the last that was returned."""
        return self.phase_one or self.phase_two or self.synchronised or self.phase_one


SUCCESS = "ACLNN_SUCCESS"
ANY_ERROR = "ACLNN_ERR_*"
"""Stands for every status but success where a document promises an error without naming its code."""

STATUSES: MappingProxyType[str, int] = MappingProxyType(
    {
        SUCCESS: 0,
        "ACLNN_ERR_PARAM_NULLPTR": 161001,
        "ACLNN_ERR_PARAM_INVALID": 161002,
        "ACLNN_ERR_RUNTIME_ERROR": 361001,
        "ACLNN_ERR_INNER": 561000,
        "ACLNN_ERR_INNER_INFERSHAPE_ERROR": 561001,
        "ACLNN_ERR_INNER_TILING_ERROR": 561002,
        "ACLNN_ERR_INNER_FIND_KERNEL_ERROR": 561003,
        "ACLNN_ERR_INNER_CREATE_EXECUTOR": 561101,
        "ACLNN_ERR_INNER_NOT_TRANS_EXECUTOR": 561102,
        "ACLNN_ERR_INNER_NULLPTR": 561103,
        "ACLNN_ERR_INNER_WRONG_ATTR_INFO_SIZE": 561104,
        "ACLNN_ERR_INNER_KEY_CONFILICT": 561105,
        "ACLNN_ERR_INNER_INVALID_IMPL_MODE": 561106,
        "ACLNN_ERR_INNER_OPP_PATH_NOT_FOUND": 561107,
        "ACLNN_ERR_INNER_LOAD_JSON_FAILED": 561108,
        "ACLNN_ERR_INNER_JSON_VALUE_NOT_FOUND": 561109,
        "ACLNN_ERR_INNER_JSON_FORMAT_INVALID": 561110,
        "ACLNN_ERR_INNER_JSON_DTYPE_INVALID": 561111,
        "ACLNN_ERR_INNER_OPP_KERNEL_PKG_NOT_FOUND": 561112,
        "ACLNN_ERR_INNER_OP_FILE_INVALID": 561113,
        "ACLNN_ERR_INNER_ATTR_NUM_OUT_OF_BOUND": 561114,
        "ACLNN_ERR_INNER_ATTR_LEN_NOT_ENOUGH": 561115,
    }
)

_NAMES = {value: name for name, value in STATUSES.items()}


def status_name(value: int) -> str:
    """The header's name of a status, `ACLNN_ERR_<value>` for one that the list does not hold."""
    return _NAMES.get(value, f"ACLNN_ERR_{value}")


def is_promised_status(status: str, allowed: tuple[str, ...]) -> bool:
    """Whether a returned status is among the promised ones; `ACLNN_ERR_*` admits every error."""
    return status in allowed or (ANY_ERROR in allowed and status != SUCCESS)
