"""A reproduction as one Python script with numpy and ctypes alone."""

from __future__ import annotations

import base64
import json
from typing import Any

from aclnn_cts.core.case import Argument, Tensor
from aclnn_cts.core.dtypes import itemsize
from aclnn_cts.engine.repro.facts import CallsOfTrial, Reproduction, TensorFacts

__all__ = ["python_program"]

_SCRIPT = '''#!/usr/bin/env python3
"""@OPERATOR@: @SENTENCE@

Case @CASE@, @PRODUCT@.@ABOUT@
Needs numpy and an operator library: with the toolkit's environment set, or with
    python3 repro.py LIBRARY...
Exit codes: 0 the fault is gone, 1 it is there, 2 the surroundings failed.
"""

import base64
import ctypes
import json
import math
import sys
import traceback

try:
    import numpy as np
except ImportError as error:
    print(f"{error}; it needs numpy: pip install numpy", file=sys.stderr)
    sys.exit(2)

PROGRAM = json.loads(r"""
@JSON@
""")
GUARD = 256
C_TYPES = {
    "int8_t": ctypes.c_int8, "int32_t": ctypes.c_int32, "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64,
    "uint8_t": ctypes.c_uint8, "bool": ctypes.c_bool, "double": ctypes.c_double, "float": ctypes.c_float,
}
LIBRARIES = ["libascendcl.so", "libnnopbase.so", "libopapi.so"]


def unable(why):
    """The surroundings failed: nothing is known of the fault."""
    print(why, file=sys.stderr)
    sys.exit(2)


class Library:
    """Every symbol from the first library that has it."""

    def __init__(self, names):
        try:
            self.handles = [ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL) for name in names]
        except OSError as error:
            unable(f"{error}; set the toolkit's environment, or name the libraries: python3 {sys.argv[0]} LIBRARY...")

    def find(self, name, result, *arguments):
        for handle in self.handles:
            function = getattr(handle, name, None)
            if function is not None:
                function.restype, function.argtypes = result, arguments
                return function
        unable(f"no library has {name}")


def check(code, what):
    if code != 0:
        print(f"{what} failed: {code}")
        sys.exit(2)


def dims(values):
    return (ctypes.c_int64 * max(len(values), 1))(*values)


def decode(data, dtype):
    if dtype == 1:
        return np.frombuffer(data, np.float16).astype(np.float64)
    if dtype == 27:
        return (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return np.frombuffer(data, np.float32 if dtype == 0 else np.float64).astype(np.float64)


def numbers(text):
    return np.frombuffer(base64.b64decode(text), np.float64)


def main():
    lib = Library(sys.argv[1:] or LIBRARIES)
    pointer, size, status = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int32
    malloc = lib.find("aclrtMalloc", status, ctypes.POINTER(pointer), size, ctypes.c_int32)
    memcpy = lib.find("aclrtMemcpy", status, pointer, size, pointer, size, ctypes.c_int32)
    create = lib.find("aclCreateTensor", pointer, pointer, ctypes.c_uint64, ctypes.c_int32, pointer, ctypes.c_int64,
                      ctypes.c_int32, pointer, ctypes.c_uint64, pointer)
    create_array = lib.find("aclCreateIntArray", pointer, pointer, ctypes.c_uint64)
    check(lib.find("aclInit", status, ctypes.c_char_p)(None), "aclInit")
    check(lib.find("aclrtSetDevice", status, ctypes.c_int32)(0), "aclrtSetDevice")
    stream = pointer()
    check(lib.find("aclrtCreateStream", status, ctypes.POINTER(pointer))(ctypes.byref(stream)), "aclrtCreateStream")

    def allocate(contents):
        whole = b"\\xa5" * GUARD + contents + b"\\xa5" * GUARD
        address = pointer()
        check(malloc(ctypes.byref(address), len(whole), 0), "aclrtMalloc")
        check(memcpy(address, len(whole), whole, len(whole), 1), "aclrtMemcpy")
        return address, whole

    faults = []
    for number, place in enumerate(PROGRAM["order"], 1):
        if len(PROGRAM["order"]) > 1:
            print("call", number, "of", len(PROGRAM["order"]))
        if not make(lib, PROGRAM["calls"][place], stream, allocate, memcpy, create, create_array):
            faults.append(number)
    if len(PROGRAM["order"]) > 1:
        print(f"call {faults[-1]} is at fault by itself\\nFAULT" if faults else PROGRAM["beyond"])
    sys.exit(1 if faults else 0)


def make(lib, CALL, stream, allocate, memcpy, create, create_array):
    """Make one call and compare; whether it conforms."""
    pointer, status = ctypes.c_void_p, ctypes.c_int32
    keep, memories, arguments, types = [], {}, [], []
    for item in CALL["parameters"]:
        name, value = item["name"], item["value"]
        if item["kind"] == "tensor":
            types.append(pointer)
            if value is None:
                arguments.append(None)
                continue
            start = None
            if CALL["phases"] == 2:
                contents = base64.b64decode(value["data"]) if value["data"] is not None else b"\\xff" * value["bytes"]
                address, whole = allocate(contents)
                memories[name] = (address, whole, value)
                start = address.value + GUARD
            shape, strides, storage = dims(value["shape"]), dims(value["strides"]), dims(value["storage_shape"])
            keep.extend((shape, strides, storage))
            arguments.append(create(shape, len(value["shape"]), value["dtype"], strides, value["offset"],
                                    value["format"], storage, len(value["storage_shape"]), start))
        elif item["kind"] == "int_array":
            types.append(pointer)
            items = dims(value or [])
            keep.append(items)
            arguments.append(None if value is None else create_array(items, len(value)))
        else:
            types.append(C_TYPES[item["type"]])
            arguments.append(float.fromhex(value) if item["kind"] == "double" else value)
    workspace_size, executor = ctypes.c_uint64(0), pointer()
    one = lib.find(CALL["operator"] + "GetWorkspaceSize", status, *types, pointer, pointer)
    tail = [None if name in CALL["null"] else ctypes.byref(value)
            for name, value in (("workspaceSize", workspace_size), ("executor", executor))]
    code = one(*arguments, *tail)
    print("phase one returned", code)
    if code == 0 and CALL["phases"] == 2:
        workspace = None
        if workspace_size.value:
            address, whole = allocate(b"\\xff" * workspace_size.value)
            band = {"data": None, "expected": None}
            memories["workspace"] = (address, whole, band)
            workspace = address.value + GUARD
        two = lib.find(CALL["operator"], status, pointer, ctypes.c_uint64, pointer, pointer)
        code = two(workspace, workspace_size.value, executor, stream)
        print("phase two returned", code)
        synchronised = lib.find("aclrtSynchronizeStream", status, pointer)(stream)
        if synchronised != 0:
            print("aclrtSynchronizeStream returned", synchronised)
            print("FAULT")
            sys.exit(1)
    conforms = code in CALL["statuses"] or (CALL["any_error"] and code != 0)
    if not conforms:
        print("status", code, "expected one of", CALL["statuses"], "or any error" if CALL["any_error"] else "")
    for name, (address, before, value) in memories.items():
        after = ctypes.create_string_buffer(len(before))
        check(memcpy(after, len(before), address, len(before), 2), "aclrtMemcpy")
        # What may be written is the view of an output, and the workspace.
        written = np.zeros(len(before), bool)
        if name == "workspace":
            written[GUARD:-GUARD] = True
        elif value["data"] is None:
            size, steps = value["itemsize"], [s * value["itemsize"] for s in value["strides"]]
            start = GUARD + value["offset"] * size
            if all(value["shape"]):
                view = np.lib.stride_tricks.as_strided(written[start:], [*value["shape"], size], [*steps, 1])
                view[...] = True
        changed = np.frombuffer(before, np.uint8) != np.frombuffer(after.raw, np.uint8)
        outside = np.flatnonzero(changed & ~written)
        if outside.size:
            print(f"{name}: byte {outside[0] - GUARD} must not be written and was changed")
            conforms = False
        if value["expected"] is None or code != 0:
            continue
        flat = decode(after.raw[GUARD:-GUARD], value["dtype"])
        got = np.lib.stride_tricks.as_strided(flat[value["offset"]:], value["shape"], [s * 8 for s in value["strides"]])
        got = got.reshape(-1)
        lower, upper = numbers(value["expected"]["lower"]), numbers(value["expected"]["upper"])
        judged = np.frombuffer(base64.b64decode(value["expected"]["judged"]), bool)
        right = np.where(np.isnan(lower), np.isnan(got), (lower <= got) & (got <= upper))
        wrong = np.flatnonzero(judged & ~right)
        for place in wrong[:8]:
            index = tuple(int(axis) for axis in np.unravel_index(place, value["shape"]))
            print(f"{name}{list(index)} is {got[place]!r}, expected {lower[place]!r} to {upper[place]!r}")
        if wrong.size:
            print(f"{name}: {wrong.size} of {got.size} elements at fault")
        conforms = conforms and not wrong.size
    print("conforms" if conforms else "FAULT")
    return conforms


try:
    main()
except Exception:  # an exit code of 1 would say that the fault is there
    traceback.print_exc()
    sys.exit(2)
'''


def python_program(calls: CallsOfTrial) -> str:
    """The script's text."""
    first = calls.made[0]
    program = {"calls": [_call(facts) for facts in calls.made], "order": calls.order, "beyond": calls.beyond}
    fields = {
        "@OPERATOR@": first.operator,
        "@SENTENCE@": _plain(first.sentence),
        "@CASE@": first.case_id,
        "@PRODUCT@": first.case.product,
        "@ABOUT@": "".join(f"\n{_plain(line)}" for line in calls.about),
        "@JSON@": json.dumps(program, indent=1),
    }
    text = _SCRIPT
    for mark, value in fields.items():
        text = text.replace(mark, value)
    return text


def _plain(text: str) -> str:
    """On one line, with nothing that ends a docstring."""
    return " ".join(text.split()).replace("\\", "/").replace('"', "'")


def _call(facts: Reproduction) -> dict[str, Any]:
    return {
        "operator": facts.operator,
        "phases": facts.phases,
        "null": list(facts.case.call.null),
        "statuses": [value for _, value in facts.statuses],
        "any_error": facts.any_error,
        "parameters": [
            {"name": item.name, "kind": item.kind, "type": item.type.strip(), "value": _value(facts, item.name)}
            for item in facts.parameters
        ],
    }


def _value(facts: Reproduction, name: str) -> Any:  # noqa: ANN401 - a JSON value
    value: Argument = facts.arguments[name]
    if isinstance(value, Tensor):
        return _tensor(facts.tensors[name])
    if isinstance(value, tuple):
        return list(value)
    return value.hex() if isinstance(value, float) else value


def _tensor(tensor: TensorFacts) -> dict[str, Any]:
    expected = None
    if tensor.expected is not None:
        expected = {
            "lower": _encoded(tensor.expected.lower.astype("<f8").tobytes()),
            "upper": _encoded(tensor.expected.upper.astype("<f8").tobytes()),
            "judged": _encoded(tensor.expected.judged.tobytes()),
        }
    return {
        "shape": list(tensor.tensor.shape),
        "dtype": tensor.dtype,
        "format": tensor.format,
        "strides": list(tensor.strides),
        "offset": tensor.tensor.offset,
        "storage_shape": list(tensor.storage_shape),
        "bytes": tensor.nbytes,
        "itemsize": itemsize(tensor.tensor.dtype),
        "data": _encoded(tensor.storage.tobytes()) if tensor.storage is not None else None,
        "expected": expected,
    }


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()
