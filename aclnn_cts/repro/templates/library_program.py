#!/usr/bin/env python3
"""@OPERATOR@: @SENTENCE@

Case @CASE@, @PRODUCT@.@ABOUT@
Needs numpy and an operator library: with the toolkit's environment set, or with
    python3 repro.py LIBRARY...
Exit codes: 0 the fault is gone, 1 it is there, 2 the surroundings failed.
"""

import ctypes
import os
import sys
import traceback

from opening import PROGRAM, decoded, np, unable
from related import conforming, equal, numbers

GUARD = 256
FILL = b"\xff"
C_TYPES = {
    "int8_t": ctypes.c_int8,
    "int32_t": ctypes.c_int32,
    "int64_t": ctypes.c_int64,
    "int": ctypes.c_int,
    "uint64_t": ctypes.c_uint64,
    "uint8_t": ctypes.c_uint8,
    "bool": ctypes.c_bool,
    "double": ctypes.c_double,
    "float": ctypes.c_float,
}
LIBRARIES = ["libascendcl.so"] * PROGRAM["runtime"] + ["libnnopbase.so", "libopapi.so"]


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


def decode(data, value):
    dtype = value["dtype"]
    if "numbers" in value:
        return numbers(value["numbers"])[np.frombuffer(data, np.uint8)]
    if dtype == 1:
        return np.frombuffer(data, np.float16).astype(np.float64)
    if dtype == 27:
        return (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return np.frombuffer(data, np.float32 if dtype in (0, 16) else np.float64).astype(np.float64)


class Device:
    """The functions that make and give back descriptors, and the runtime where a call is of both phases."""

    def __init__(self, lib):
        self.lib = lib
        pointer, size, status = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int32
        self.create = lib.find(
            "aclCreateTensor",
            pointer,
            pointer,
            ctypes.c_uint64,
            ctypes.c_int32,
            pointer,
            ctypes.c_int64,
            ctypes.c_int32,
            pointer,
            ctypes.c_uint64,
            pointer,
        )
        self.destroy = lib.find("aclDestroyTensor", status, pointer)
        if not PROGRAM["runtime"]:
            return
        self.malloc = lib.find("aclrtMalloc", status, ctypes.POINTER(pointer), size, ctypes.c_int32)
        self.free = lib.find("aclrtFree", status, pointer)
        self.memcpy = lib.find("aclrtMemcpy", status, pointer, size, pointer, size, ctypes.c_int32)
        self.synchronize = lib.find("aclrtSynchronizeStream", status, pointer)
        check(lib.find("aclInit", status, ctypes.c_char_p)(None), "aclInit")
        check(lib.find("aclrtSetDevice", status, ctypes.c_int32)(0), "aclrtSetDevice")
        self.streams = []
        create_stream = lib.find("aclrtCreateStream", status, ctypes.POINTER(pointer))
        for _ in range(PROGRAM["streams"]):
            stream = pointer()
            check(create_stream(ctypes.byref(stream)), "aclrtCreateStream")
            self.streams.append(stream)


class Memory:
    """A block on the device between guards."""

    def __init__(self, device, contents, guard=GUARD):
        self.device, self.guard, self.size = device, guard, len(contents)
        self.before = b"\xa5" * guard + contents + b"\xa5" * guard
        self.block = ctypes.c_void_p()
        check(device.malloc(ctypes.byref(self.block), len(self.before), 0), "aclrtMalloc")
        self.fill()

    @property
    def address(self):
        return self.block.value + self.guard

    def fill(self):
        check(self.device.memcpy(self.block, len(self.before), self.before, len(self.before), 1), "aclrtMemcpy")

    def read(self):
        after = ctypes.create_string_buffer(len(self.before))
        check(self.device.memcpy(after, len(after), self.block, len(after), 2), "aclrtMemcpy")
        return np.frombuffer(after.raw, np.uint8)

    def release(self):
        check(self.device.free(self.block), "aclrtFree")

    def untouched(self, who, name, after, written):
        """Whether nothing was written but what may be."""
        outside = np.flatnonzero((np.frombuffer(self.before, np.uint8) != after) & ~written)
        if outside.size:
            print(f"{who}{name}: byte {outside[0] - self.guard} must not be written and was changed")
        return not outside.size


class Call:
    """One call; its methods are the steps of its life cycle."""

    def __init__(self, device, facts):
        self.device, self.facts = device, facts
        self.workspace, self.phase_one_status, self.status = None, 0, 0
        self.results = []

    def prepare(self):
        self.memories, self.descriptors, self.arguments, self.types, self.keep = {}, [], [], [], []
        for item in self.facts["parameters"]:
            value, kind = item["value"], item["kind"]
            self.types.append(C_TYPES[item["type"]] if kind in ("int", "bool", "double") else ctypes.c_void_p)
            if value is None or kind in ("int", "bool"):
                self.arguments.append(value)
            elif kind == "double":
                self.arguments.append(float.fromhex(value))
            elif kind == "string":
                self.keep.append(ctypes.create_string_buffer(value.encode()))
                self.arguments.append(ctypes.addressof(self.keep[-1]))
            elif kind == "tensor":
                self.arguments.append(self._tensor(item["name"], value))
                self.descriptors.append((self.device.destroy, self.arguments[-1]))
            else:
                self.arguments.append(self._handle(item["name"], kind, value))

    def _handle(self, name, kind, value):
        """A scalar, an array, or a list, which owns its tensors and destroys them with itself."""
        word = {
            "scalar": "Scalar",
            "int_array": "IntArray",
            "bool_array": "BoolArray",
            "float_array": "FloatArray",
            "tensor_list": "TensorList",
        }[kind]
        pointer, count = ctypes.c_void_p, ctypes.c_uint64
        if kind == "scalar":
            content, last = ctypes.create_string_buffer(decoded(value["bytes"])), value["dtype"]
            count = ctypes.c_int32
        elif kind == "tensor_list":
            tensors = [self._tensor(f"{name}[{place}]", item) for place, item in enumerate(value)]
            content, last = (pointer * max(len(value), 1))(*tensors), len(value)
        else:
            element = {"int_array": ctypes.c_int64, "bool_array": ctypes.c_bool, "float_array": ctypes.c_float}[kind]
            items = [float.fromhex(item) for item in value] if kind == "float_array" else value
            content, last = (element * max(len(value), 1))(*items), len(value)
        self.keep.append(content)
        made = self.device.lib.find(f"aclCreate{word}", pointer, pointer, count)(content, last)
        self.descriptors.append((self.device.lib.find(f"aclDestroy{word}", ctypes.c_int32, pointer), made))
        return made

    def _tensor(self, name, value):
        start = None
        if self.facts["phases"] == 2:
            contents = decoded(value["data"]) if value["data"] is not None else FILL * value["bytes"]
            self.memories[name] = memory = Memory(self.device, contents)
            start = memory.address
        shape, strides, storage = dims(value["shape"]), dims(value["strides"]), dims(value["storage_shape"])
        self.keep.extend((shape, strides, storage))
        return self.device.create(
            shape,
            len(value["shape"]),
            value["dtype"],
            strides,
            value["offset"],
            value["format"],
            storage,
            len(value["storage_shape"]),
            start,
        )

    def phase_one(self, who):
        self.workspace_size, self.executor = ctypes.c_uint64(0), ctypes.c_void_p()
        function = self.device.lib.find(
            self.facts["operator"] + "GetWorkspaceSize", ctypes.c_int32, *self.types, ctypes.c_void_p, ctypes.c_void_p
        )
        tail = [
            None if name in self.facts["null"] else ctypes.byref(value)
            for name, value in (("workspaceSize", self.workspace_size), ("executor", self.executor))
        ]
        self.phase_one_status = self.status = function(*self.arguments, *tail)
        if who is not None:
            print(f"{who}phase one returned {self.status}")
        if self.status == 0 and "executor" not in self.facts["null"] and not self.executor.value:
            print(f"{who or ''}phase one returned success and made no executor\nFAULT")
            sys.exit(1)

    def allocate(self, way):
        size = self.workspace_size.value
        if self.status == 0 and size:
            size = 2 * size + 4096 if way == "larger" else size
            self.workspace = Memory(self.device, FILL * size, 0 if way == "exact" else GUARD)

    def make_repeatable(self):
        if self.status == 0:
            function = self.device.lib.find("aclSetAclOpExecutorRepeatable", ctypes.c_int32, ctypes.c_void_p)
            check(function(self.executor), "aclSetAclOpExecutorRepeatable")

    def phase_two(self, who, stream):
        if self.phase_one_status != 0:
            return
        function = self.device.lib.find(
            self.facts["operator"], ctypes.c_int32, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p
        )
        address = None if self.workspace is None or "workspace" in self.facts["null"] else self.workspace.address
        size = 0 if self.workspace is None else self.workspace.size
        self.status = function(address, size, self.executor, self.device.streams[stream])
        if who is not None:
            print(f"{who}phase two returned {self.status}")

    def judge(self, who):
        """Whether status, outputs and memory conform."""
        facts, code = self.facts, self.status
        conforms = code in facts["statuses"] or (facts["any_error"] and code != 0)
        if not conforms:
            print(f"{who}status {code}, expected one of", facts["statuses"], "or any error" * facts["any_error"])
        if facts["refused_in_phase_one"] and facts["phases"] == 2 and self.phase_one_status == 0 and code != 0:
            print(f"{who}phase two refused what phase one accepted, which checks the arguments")
            conforms = False
        self.results = []
        for item in facts["parameters"]:
            listed = item["kind"] == "tensor_list" and item["value"] is not None
            for place, value in enumerate(item["value"] if listed else [item["value"]]):
                name = f"{item['name']}[{place}]" if listed else item["name"]
                if name in self.memories:
                    conforms = self._compared(who, name, value, item["role"] in ("output", "inout")) and conforms
        if self.workspace is not None:
            after, band = self.workspace.read(), np.zeros(len(self.workspace.before), bool)
            band[self.workspace.guard : self.workspace.guard + self.workspace.size] = True
            conforms = self.workspace.untouched(who, "workspace", after, band) and conforms
        print(f"{who}{'conforms' if conforms else 'does not conform'}")
        return conforms

    def _compared(self, who, name, value, is_output):
        memory = self.memories[name]
        after, written = memory.read(), np.zeros(len(memory.before), bool)
        if not is_output:
            return memory.untouched(who, name, after, written)
        size, shape = value["itemsize"], value["shape"]
        start, steps = GUARD + value["offset"] * size, [stride * size for stride in value["strides"]]
        if not all(shape):
            view = np.zeros((*shape, size), np.uint8)
        else:
            np.lib.stride_tricks.as_strided(written[start:], (*shape, size), (*steps, 1))[...] = True
            view = np.lib.stride_tricks.as_strided(after[start:], (*shape, size), (*steps, 1))
        conforms = memory.untouched(who, name, after, written)
        if value["expected"] is None or self.status != 0:
            return conforms
        elements = np.ascontiguousarray(view).reshape(-1, size)
        got = decode(elements.tobytes(), value)
        self.results.append(got)
        filled = (elements == FILL[0]).all(axis=1)
        unwritten = 0 if value["data"] is not None else int(filled.sum())
        conforms = conforming(who, name, value, got) and conforms
        if unwritten:
            print(f"{who}{name}: {unwritten} of {got.size} elements were never written")
        return conforms and not unwritten

    def refill(self):
        for memory in self.memories.values():
            memory.fill()

    def destroy(self):
        if self.phase_one_status == 0 and self.executor.value:
            self.device.lib.find("aclDestroyAclOpExecutor", ctypes.c_int32, ctypes.c_void_p)(self.executor)

    def release(self):
        for function, descriptor in self.descriptors:
            function(descriptor)
        for memory in (*self.memories.values(), *([self.workspace] if self.workspace is not None else [])):
            memory.release()
        self.workspace = None


def resident_bytes():
    """Memory of this process; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def refused(call, times):
    """Refused calls in a row: one status, and a process that does not grow over the second half of them."""
    before, conforms, first = 0, True, None
    for number in range(times):
        if number == times // 2:
            before = resident_bytes()
        call.prepare()
        call.phase_one("" if number == 0 else None)
        call.release()
        first = call.status if first is None else first
        if call.status != first:
            print(f"call {number} in a row returned {call.status}, the first {first}")
            conforms = False
            break
    grown = max(resident_bytes() - before, 0)
    print(
        f"the process grew by {grown} bytes over the last {times - times // 2} of {times} calls; "
        f"{PROGRAM['growth']} are allowed for"
    )
    return call.judge("") and conforms and grown <= PROGRAM["growth"]


def wait(device, stream):
    code = device.synchronize(device.streams[stream])
    if code != 0:
        print(f"aclrtSynchronizeStream returned {code}\nFAULT")
        sys.exit(1)


def each(steps):
    """The steps in turn, those of a loop as often as it says."""
    for step in steps:
        if step["verb"] == "loop":
            for _ in range(step["times"]):
                yield from step["steps"]
        else:
            yield step


def main():
    device = Device(Library(sys.argv[1:] or LIBRARIES))
    calls = [Call(device, facts) for facts in PROGRAM["calls"]]
    several = PROGRAM["number"] > 1
    conforms, results = True, []
    with np.errstate(all="ignore"):
        for step in each(PROGRAM["steps"]):
            call, verb = calls[step["call"]], step["verb"]
            who = None if step["number"] == 0 else f"call {step['number']}: " if several else ""
            if verb == "judge":
                conforms = call.judge(who) and conforms
                results.extend(call.results)
            elif verb == "refused":
                conforms = refused(call, step["times"]) and conforms
            elif verb == "wait":
                wait(device, step["stream"])
            elif verb == "phase_one":
                call.phase_one(who)
            elif verb == "phase_two":
                call.phase_two(who, step["stream"])
            elif verb == "workspace":
                call.allocate(step["way"])
            else:
                {
                    "prepare": call.prepare,
                    "repeatable": call.make_repeatable,
                    "refill": call.refill,
                    "destroy": call.destroy,
                    "release": call.release,
                }[verb]()
        if PROGRAM["equal"]:
            conforms = equal(results) and conforms
    print("FAULT" if not conforms else PROGRAM["beyond"] or "conforms")
    sys.exit(0 if conforms else 1)


try:
    main()
except Exception:  # an exit code of 1 would say that the fault is there
    traceback.print_exc()
    sys.exit(2)
