"""C prototypes as ctypes types: of the runtime and the descriptor interface by hand, of operators from their spec.

Every argument type is explicit: ctypes would guess a C int for each number, and cut a pointer or a size in half.

What a runtime's error code says of the call stands here too: nothing, that it took too long, or that the device broke
under it. The numbers are those of the runtime's acl_base_rt.h and rt_error_codes.h.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from aclnn_cts.adapters.cann.library import CFunction, Library, MissingSymbolError, Prototype
from aclnn_cts.core.case import POINTERS
from aclnn_cts.core.outcome import CallEnd
from aclnn_cts.speclang.model import Parameter, Spec

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
    """How a call ended on which the runtime returned this error: a value of `CallEnd`.

    A device fault and an expired time limit are the call's; what the runtime says of its own use, its memory or its
    hardware is nobody's but the harness's and its surroundings'.
    """
    kinds = (
        (_TIME_LIMITS, CallEnd.TIME_LIMIT),
        (_INFRASTRUCTURE, CallEnd.DEVICE_LOST),
        (_DEVICE_FAULTS, CallEnd.DEVICE_FAULT),
    )
    return next((ended for codes, ended in kinds if code in codes), CallEnd.NOT_RUN)


def error_name(code: int) -> str:
    """The code, with a word for it where the list has one."""
    return f"{code} ({_NAMES[code]})" if code in _NAMES else str(code)


_INT = ctypes.c_int32
_U32 = ctypes.c_uint32
_I64 = ctypes.c_int64
_U64 = ctypes.c_uint64
_SIZE = ctypes.c_size_t
_POINTER = ctypes.c_void_p
_TEXT = ctypes.c_char_p
_INT_OUT = ctypes.POINTER(ctypes.c_int32)
_I64_OUT = ctypes.POINTER(ctypes.c_int64)
_POINTER_OUT = ctypes.POINTER(ctypes.c_void_p)


def _returns_status(*arguments: Any) -> Prototype:  # noqa: ANN401 - ctypes types
    return Prototype(_INT, arguments)


RUNTIME: Mapping[str, Prototype] = MappingProxyType(
    {
        "aclInit": _returns_status(_TEXT),
        "aclFinalize": _returns_status(),
        "aclrtSetDevice": _returns_status(_INT),
        "aclrtResetDevice": _returns_status(_INT),
        "aclrtGetDeviceCount": _returns_status(ctypes.POINTER(ctypes.c_uint32)),
        "aclrtGetSocName": Prototype(_TEXT, ()),
        "aclrtGetVersion": _returns_status(_INT_OUT, _INT_OUT, _INT_OUT),
        "aclrtGetDeviceInfo": _returns_status(_U32, _INT, _I64_OUT),
        "aclGetDeviceCapability": _returns_status(_U32, _INT, _I64_OUT),
        "aclrtGetSysParamOpt": _returns_status(_INT, _I64_OUT),
        "aclrtCtxSetSysParamOpt": _returns_status(_INT, _I64),
        "aclrtGetDeviceSatMode": _returns_status(_INT_OUT),
        "aclrtCreateStream": _returns_status(_POINTER_OUT),
        "aclrtDestroyStream": _returns_status(_POINTER),
        "aclrtSynchronizeStream": _returns_status(_POINTER),
        "aclrtSynchronizeStreamWithTimeout": _returns_status(_POINTER, _INT),
        "aclrtMalloc": _returns_status(_POINTER_OUT, _SIZE, _INT),
        "aclrtFree": _returns_status(_POINTER),
        "aclrtMemcpy": _returns_status(_POINTER, _SIZE, _POINTER, _SIZE, _INT),
        "aclrtMemset": _returns_status(_POINTER, _SIZE, _INT, _SIZE),
        "aclGetRecentErrMsg": Prototype(_TEXT, ()),
    }
)
"""The runtime's functions that a session uses, where the release has them."""

META: Mapping[str, Prototype] = MappingProxyType(
    {
        "aclCreateTensor": Prototype(_POINTER, (_POINTER, _U64, _INT, _POINTER, _I64, _INT, _POINTER, _U64, _POINTER)),
        "aclDestroyTensor": _returns_status(_POINTER),
        "aclCreateIntArray": Prototype(_POINTER, (_POINTER, _U64)),
        "aclDestroyIntArray": _returns_status(_POINTER),
        "aclCreateBoolArray": Prototype(_POINTER, (_POINTER, _U64)),
        "aclDestroyBoolArray": _returns_status(_POINTER),
        "aclCreateFloatArray": Prototype(_POINTER, (_POINTER, _U64)),
        "aclDestroyFloatArray": _returns_status(_POINTER),
        "aclCreateScalar": Prototype(_POINTER, (_POINTER, _INT)),
        "aclDestroyScalar": _returns_status(_POINTER),
        "aclCreateTensorList": Prototype(_POINTER, (_POINTER, _U64)),
        "aclDestroyTensorList": _returns_status(_POINTER),
        "aclDestroyAclOpExecutor": _returns_status(_POINTER),
        "aclSetAclOpExecutorRepeatable": _returns_status(_POINTER),
    }
)

C_TYPES: Mapping[str, Any] = MappingProxyType(
    {
        "int8_t": ctypes.c_int8,
        "uint8_t": ctypes.c_uint8,
        "int16_t": ctypes.c_int16,
        "uint16_t": ctypes.c_uint16,
        "int32_t": ctypes.c_int32,
        "int": ctypes.c_int,
        "uint32_t": ctypes.c_uint32,
        "int64_t": ctypes.c_int64,
        "uint64_t": ctypes.c_uint64,
        "size_t": ctypes.c_size_t,
        "bool": ctypes.c_bool,
        "float": ctypes.c_float,
        "double": ctypes.c_double,
    }
)
"""Scalars by the name of their C type; whatever else a prototype names is a pointer."""

_PHASE_TWO = _returns_status(_POINTER, _U64, _POINTER, _POINTER)


class Functions:
    """Named C functions of a library, each looked up when first used."""

    def __init__(self, library: Library, prototypes: Mapping[str, Prototype]) -> None:
        self._library = library
        self._prototypes = prototypes
        self._bound: dict[str, CFunction] = {}

    def __getitem__(self, name: str) -> CFunction:
        """The function; raises Missing where no library has it."""
        if name not in self._bound:
            self._bound[name] = self._library.bind(name, self._prototypes[name])
        return self._bound[name]

    def __contains__(self, name: object) -> bool:
        try:
            return isinstance(name, str) and self[name] is not None
        except MissingSymbolError:
            return False


@dataclass(frozen=True, slots=True)
class OperatorFunctions:
    """The two functions of an operator."""

    phase_one: CFunction
    phase_two: CFunction


def phase_one_prototype(spec: Spec) -> Prototype:
    """`aclnnXGetWorkspaceSize`: the operator's own parameters, then pointers to workspaceSize and executor."""
    own = tuple(_c_type(parameter) for parameter in spec.parameters)
    return _returns_status(*own, _POINTER, _POINTER)


def bind_operator(library: Library, spec: Spec) -> OperatorFunctions:
    """Both functions of an operator. Raises Missing where this installation does not ship it."""
    return OperatorFunctions(
        library.bind(f"{spec.operator}GetWorkspaceSize", phase_one_prototype(spec)),
        library.bind(spec.operator, _PHASE_TWO),
    )


def ships_operator(library: Library, operator: str) -> bool:
    """Whether this installation has both functions of an operator. Its spec, which takes time to read, is not asked."""
    try:
        # Every look-up makes an object of its own: the types that these get count for nobody else.
        library.bind(f"{operator}GetWorkspaceSize", _PHASE_TWO)
        library.bind(operator, _PHASE_TWO)
    except MissingSymbolError:
        return False
    return True


def _c_type(parameter: Parameter) -> Any:  # noqa: ANN401 - a ctypes type
    if parameter.kind in POINTERS:
        return _TEXT if parameter.kind == "string" else _POINTER
    return C_TYPES[parameter.c_type]
