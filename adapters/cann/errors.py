"""What a runtime's error code says of the call: nothing, that it took too long, or that the device broke under it.

The numbers are those of the runtime's `acl_base_rt.h` and `rt_error_codes.h`.
"""

from __future__ import annotations

from types import MappingProxyType

from aclnn_cts.core.outcome import Ended

__all__ = ["ALREADY_INITIALISED", "NOT_SET", "OUT_OF_MEMORY", "SUCCESS", "ended_by", "error_name"]

SUCCESS = 0
ALREADY_INITIALISED = 100002
NOT_SET = 107021
"""A process-wide setting that nobody has made."""
OUT_OF_MEMORY = 207001

_TIME_LIMITS = frozenset({107019, 107020, 507046, 507047})
_INFRASTRUCTURE = frozenset({507008, 507010, 507033, 507053, 507054})
"""Faults of the device's own hardware or set-up, which no operator causes."""
_DEVICE_FAULTS = range(507000, 508000)

RUNTIME_ERRORS = _DEVICE_FAULTS
"""What no operator's document promises of a phase: the runtime's own words for a device that is broken."""

_NAMES = MappingProxyType(
    {
        100000: "invalid parameter",
        100001: "not initialised",
        100002: "initialised already",
        107001: "no such device id",
        107002: "no context",
        107003: "the stream is not of this context",
        107019: "wait timed out",
        107020: "task timed out",
        107021: "setting never made",
        207001: "out of device memory",
        207004: "no device",
        207018: "the device is out of memory",
        507008: "the SoC version does not fit",
        507010: "lost heartbeat",
        507014: "AI core timeout",
        507015: "AI core exception",
        507016: "AI core trap",
        507033: "device set-up",
        507034: "vector core timeout",
        507035: "vector core exception",
        507036: "vector core trap",
        507046: "stream synchronisation timed out",
        507047: "event synchronisation timed out",
        507053: "device memory error",
        507054: "uncorrectable memory error",
        507899: "driver error",
    }
)


def ended_by(code: int) -> str:
    """How a call ended on which the runtime returned this error: a value of `Ended`.

    A device fault and an expired time limit are the call's; what the runtime says of its own use, its memory or its
    hardware is nobody's but the harness's and its surroundings'.
    """
    if code in _TIME_LIMITS:
        return Ended.TIME_LIMIT
    if code in _INFRASTRUCTURE:
        return Ended.DEVICE_LOST
    if code in _DEVICE_FAULTS:
        return Ended.DEVICE_FAULT
    return Ended.NOT_RUN


def error_name(code: int) -> str:
    """The code, with a word for it where the list has one."""
    return f"{code} ({_NAMES[code]})" if code in _NAMES else str(code)
