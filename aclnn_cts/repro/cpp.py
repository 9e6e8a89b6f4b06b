"""A program in C++: literals, data and steps of each call, and a main that takes the steps in turn."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Argument, BoolArray, FloatArray, Scalar, TensorList, host_bytes, owner
from aclnn_cts.core.dtypes import COMPONENTS, DTYPES, FLOAT8, components
from aclnn_cts.repro.facts import CallSequence, DescriptorFacts, Reproduction, Step
from aclnn_cts.speclang.model import Parameter
from aclnn_cts.trials.checks.life_cycle import ALLOWED_GROWTH

_OF_HEADERS = re.compile(r'#pragma once|#include "(prelude|device|aclnn/acl_meta)\.h"')


def cpp_program(program: CallSequence) -> str:
    """The program's text. Its first lines say what it shows and how it is built."""
    headers = dict.fromkeys(facts.header for facts in program.calls)
    lines = [*_opening(program), _template("prelude"), *(f'#include "{header}"' for header in headers), ""]
    if program.needs_runtime:
        lines.append(_template("device"))
    if any(step.verb == "refused" for step in program.steps):
        lines.append(_template("many_times"))
    for place, facts in enumerate(program.calls):
        verbs = {step.verb for step in program.steps if step.call == place}
        lines += [f"namespace {_space(place)} {{", "", *data(facts), *functions(facts, verbs), "}", ""]
    if program.equal:
        lines.append(_template("equal_calls"))
    lines += _main(program)
    return "\n".join(lines) + "\n"


@cache
def _template(name: str) -> str:
    """A header of `templates`, without what makes it one: the program is a single file."""
    text = (Path(__file__).parent / "templates" / f"{name}.h").read_text(encoding="utf-8")
    return "".join(line for line in text.splitlines(keepends=True) if not _OF_HEADERS.match(line)).lstrip("\n")


def _opening(program: CallSequence) -> list[str]:
    first = program.calls[0]
    runtime = "-lascendcl " if program.needs_runtime else ""
    return [
        f"// {first.case.operator}: {_one_line(program.title)}",
        f"// Case {first.case_id}, {first.case.product}.",
        *(f"// {_one_line(line)}" for line in program.about),
        "// Build, with the toolkit's environment set:",
        "//   A=$ASCEND_HOME_PATH",
        f"//   g++ -std=c++17 repro.cpp -I$A/include -L$A/lib64 {runtime}-lnnopbase -lopapi -o repro",
        "// Where a release has split libopapi.so, name its parts instead: -lopapi_nn -lopapi_cv -lopapi_math.",
    ]


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("\\", "/")


def _space(place: int) -> str:
    return f"call_{place + 1}"


def _main(program: CallSequence) -> Iterator[str]:
    yield "int main() {"
    if program.needs_runtime:
        yield from ("  CHECK_RUNTIME(aclInit(nullptr));", "  CHECK_RUNTIME(aclrtSetDevice(0));")
    for number in range(program.streams):
        yield f"  aclrtStream stream_{number} = nullptr;"
        yield f"  CHECK_RUNTIME(aclrtCreateStream(&stream_{number}));"
    for step in program.steps:
        match step.verb:
            case "loop":
                yield f"  for (int time = 0; time < {step.times}; ++time) {{"
            case "end":
                yield "  }"
            case _:
                yield f"  TAKE({_taken(step, several=program.number > 1)});"
    if program.equal:
        yield f"  CompareEqual({{{', '.join(map(string, program.equal))}}});"
    if program.beyond:
        yield f'  if (!fault) std::printf("%s\\n", {string(program.beyond)});'
        yield '  else std::printf("FAULT\\n");'
    else:
        yield '  std::printf(fault ? "FAULT\\n" : "conforms\\n");'
    yield from ("  return fault ? 1 : 0;", "}")


_CALLED = {
    "prepare": "Prepare()",
    "phase_one": "PhaseOne({who})",
    "repeatable": "MakeRepeatable()",
    "phase_two": "PhaseTwo({who}, {stream})",
    "judge": "Judge({who})",
    "refill": "Refill()",
    "destroy": "DestroyExecutor()",
    "release": "Release()",
}
_WAYS = {"guarded": "Way::kGuarded", "exact": "Way::kExact", "larger": "Way::kLarger"}


def _taken(step: Step, *, several: bool) -> str:
    """A step as the call of a function."""
    space, stream = _space(step.call), f"stream_{step.stream}"
    match step.verb:
        case "wait":
            return f"Wait({stream})"
        case "workspace":
            return f"{space}::AllocateWorkspace({_WAYS[step.way]})"
        case "refused":
            called = ", ".join(f"{space}::{name}" for name in ("Prepare", "PhaseOne", "Release"))
            return f"ManyTimes({step.times}, {ALLOWED_GROWTH}, {called}, &{space}::status, {space}::Judge)"
    who = "nullptr" if step.number == 0 else f'"call {step.number}: "' if several else '""'
    return f"{space}::{_CALLED[step.verb].format(who=who, stream=stream)}"


def braces(values: Sequence[int]) -> str:
    """A list of int64_t."""
    return "{" + ", ".join(f"{value}LL" for value in values) + "}"


def wrapped(words: Sequence[str], *, each: int = 6) -> str:
    """Words, so many a line."""
    rows = ["    " + ", ".join(words[start : start + each]) for start in range(0, len(words), each)]
    return "\n" + ",\n".join(rows)


def list_of(c_type: str, words: Sequence[str], *, each: int = 6) -> str:
    """The value of a vector: element by element, or by how often each comes in a row where that is shorter."""
    runs = [f"{{{len(list(equal))}, {word}}}" for word, equal in groupby(words)]
    if 2 * len(runs) > len(words):
        return f"{{{wrapped(words, each=each)}}}"
    return f"Repeated<{c_type}>({{{wrapped(runs, each=each)}}})"


def double(value: float) -> str:
    """The same number; nan and inf by the prelude's names."""
    if math.isnan(value):
        return "kNan"
    if math.isinf(value):
        return "kInf" if value > 0 else "-kInf"
    return value.hex()


def elements(storage: NDArray[Any], dtype: str) -> tuple[str, list[str]]:
    """The element type and the elements: hexadecimal floats, bits for floats of 16 and 8 bits, integers as they are.

    Of a complex dtype re and im one after the other.
    """
    if dtype in COMPONENTS:
        return elements(components(storage).reshape(-1), COMPONENTS[dtype])
    if dtype in ("FLOAT16", "BF16"):
        return "uint16_t", [f"0x{bits:04x}" for bits in storage.view(np.uint16).tolist()]
    if dtype in FLOAT8:
        return "uint8_t", [f"0x{bits:02x}" for bits in storage.view(np.uint8).tolist()]
    match dtype:
        case "FLOAT":
            return "float", [single(value) for value in storage.tolist()]
        case "DOUBLE":
            return "double", [double(value) for value in storage.tolist()]
        case "BOOL":
            return "uint8_t", [str(int(value)) for value in storage.tolist()]
    names = {"INT8": "int8_t", "UINT8": "uint8_t", "INT16": "int16_t", "INT32": "int32_t", "INT64": "int64_t"}
    suffix = "LL" if dtype == "INT64" else ""
    return names.get(dtype, "uint64_t"), [f"{int(value)}{suffix}" for value in storage.tolist()]


def single(value: float) -> str:
    """A number of single precision."""
    if math.isfinite(value):
        return f"{value.hex()}f"
    return f"static_cast<float>({double(value)})"


def string(text: str) -> str:
    """A literal; what is not printable ASCII is written in octal, which takes no further digits."""
    plain = {'"': '\\"', "\\": "\\\\"}
    return (
        '"'
        + "".join(
            plain.get(chr(byte)) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}") for byte in text.encode()
        )
        + '"'
    )


_HANDLES = {
    "scalar": "Scalar",
    "int_array": "IntArray",
    "bool_array": "BoolArray",
    "float_array": "FloatArray",
    "tensor_list": "TensorList",
}
"""By kind of argument, what the functions that make and destroy it are called after.

A list of tensors owns them, and destroys them with itself."""
_ITEMS = {"int_array": "int64_t", "bool_array": "bool", "float_array": "float"}
"""The C type of an array's items."""


def _identifier(name: str) -> str:
    """A name that is no word of C++ and no other name of the program: "the_x", and "the_x_0" of the list x."""
    return f"the_{name}".replace("[", "_").rstrip("]")


def data(facts: Reproduction) -> Iterator[str]:
    """Descriptors, contents, what conforms, and what the steps hand on to one another."""
    for name, tensor in facts.tensors.items():
        own = _identifier(name)
        for what, values in (
            ("shape", tensor.tensor.shape),
            ("strides", tensor.strides),
            ("storage_shape", tensor.storage_shape),
        ):
            yield f"const std::vector<int64_t> {own}_{what} = {braces(values)};"
        if tensor.storage is not None:
            c_type, words = elements(tensor.storage, tensor.tensor.dtype)
            yield f"const std::vector<{c_type}> {own}_data = {list_of(c_type, words)};"
        if tensor.expected is not None:
            limits = tensor.expected
            columns = (limits.lower, limits.upper, limits.judged, limits.finite_alone)
            words = list(map(_range, *(column.tolist() for column in columns)))
            yield f"const std::vector<Range> {own}_expected = {list_of('Range', words, each=2)};"
        if facts.phases == 2:
            yield f"Memory {own}_memory;"
        yield from (f"aclTensor *{own} = nullptr;", "")
    yield from _handles(facts)
    if facts.phases == 2:
        yield "Memory workspace;"
    yield from _BETWEEN_STEPS


_BETWEEN_STEPS = (
    "uint64_t workspaceSize = 0;",
    "aclOpExecutor *executor = nullptr;",
    "aclnnStatus phaseOne = 0;",
    "aclnnStatus status = 0;",
    "",
)


def _handles(facts: Reproduction) -> Iterator[str]:
    """What scalars, arrays and lists are made from."""
    for item in facts.parameters:
        value = facts.case.arguments[item.name]
        if value is None or item.kind not in _HANDLES:
            continue
        own = _identifier(item.name)
        match value:
            case Scalar():
                yield f"uint8_t {own}_value[] = {{{', '.join(map(str, host_bytes(value)))}}};"
            case TensorList():
                yield f"std::vector<const aclTensor *> {own}_items;"
            case BoolArray() | FloatArray() | tuple():
                yield f"const {_ITEMS[item.kind]} {own}_items[] = {_array(value)};"
        yield f"acl{_HANDLES[item.kind]} *{own} = nullptr;"


def _array(value: BoolArray | FloatArray | tuple[int, ...]) -> str:
    """The items of an array. C++ has none without items: one that is not counted stands for it."""
    if isinstance(value, tuple):
        return braces(value or (0,))
    words = [str(item).lower() if isinstance(item, bool) else single(item) for item in value.items]
    return f"{{{', '.join(words or ['0'])}}}"


def _range(lower: float, upper: float, judged: bool, finite_alone: bool) -> str:  # noqa: FBT001 - mapped over columns
    return f"{{{double(lower)}, {double(upper)}, {str(judged).lower()}, {str(finite_alone).lower()}}}"


def functions(facts: Reproduction, verbs: set[str]) -> Iterator[str]:
    """The steps of one call, of those that the program takes. Each returns 0, or the code to exit with."""
    many = "refused" in verbs
    for verb, head, body in (
        ("prepare", "int Prepare()", _prepare(facts)),
        ("phase_one", "int PhaseOne(const char *who)", _phase_one(facts)),
        ("workspace", "int AllocateWorkspace(Way way)", _WORKSPACE),
        ("repeatable", "int MakeRepeatable()", _REPEATABLE),
        ("phase_two", "int PhaseTwo(const char *who, aclrtStream stream)", _phase_two(facts)),
        ("judge", "int Judge(const char *who)", _judge(facts)),
        ("refill", "int Refill()", _each_memory(facts, "if ({own}_memory.Fill() != 0) return 2;")),
        ("destroy", "int DestroyExecutor()", _DESTROY),
        ("release", "int Release()", _release(facts)),
    ):
        if verb in verbs or (many and verb in ("prepare", "phase_one", "judge", "release")):
            yield from (f"{head} {{", *(f"  {line}" for line in body), "  return 0;", "}", "")


_WORKSPACE = (
    "if (status != 0 || workspaceSize == 0) return 0;",
    "size_t size = way == Way::kLarger ? 2 * workspaceSize + 4096 : workspaceSize;",
    "if (workspace.Allocate(nullptr, size, way == Way::kExact ? 0 : kGuard) != 0) return 2;",
)
_REPEATABLE = (
    "if (status != 0) return 0;",
    "CHECK_RUNTIME(aclSetAclOpExecutorRepeatable(executor));",
)
_DESTROY = (
    "if (phaseOne == 0 && executor != nullptr) aclDestroyAclOpExecutor(executor);",
    "executor = nullptr;",
)


def _prepare(facts: Reproduction) -> Iterator[str]:
    for name, tensor in facts.tensors.items():
        own = _identifier(name)
        address = "nullptr"
        if facts.phases == 2:
            data = f"{own}_data.data()" if tensor.storage is not None else "nullptr"
            yield f"if ({own}_memory.Allocate({data}, {tensor.nbytes}, kGuard) != 0) return 2;"
            address = f"{own}_memory.Address()"
        yield from (
            f"{own} = aclCreateTensor(",
            (
                f"    {own}_shape.data(), {own}_shape.size(), static_cast<aclDataType>({tensor.dtype}), "
                f"{own}_strides.data(), {tensor.tensor.offset},"
            ),
            (
                f"    static_cast<aclFormat>({tensor.format}), {own}_storage_shape.data(), {own}_storage_shape.size(), "
                f"{address});"
            ),
        )
    for item in facts.parameters:
        value = facts.case.arguments[item.name]
        own = _identifier(item.name)
        match value:
            case Scalar():
                yield f"{own} = aclCreateScalar({own}_value, static_cast<aclDataType>({DTYPES[value.dtype].value}));"
            case TensorList():
                tensors = ", ".join(_identifier(f"{item.name}[{place}]") for place in range(len(value)))
                yield f"{own}_items = {{{tensors}}};"
                yield f"{own} = aclCreateTensorList({own}_items.data(), {len(value)});"
            case BoolArray() | FloatArray() | tuple():
                yield f"{own} = aclCreate{_HANDLES[item.kind]}({own}_items, {len(value)});"


def _argument(item: Parameter, value: Argument) -> str:
    match value:
        case None:
            return "nullptr"
        case _ if item.kind == "tensor" or item.kind in _HANDLES:
            return _identifier(item.name)
        case str():
            return f"const_cast<char *>({string(value)})"
        case bool():
            return str(value).lower()
        case float():
            return double(value)
    if value == -(2**63):
        return "INT64_MIN"
    suffix = "ULL" if item.type.startswith("uint") else "LL"
    return f"static_cast<{item.type.strip()}>({value}{suffix})"


def _phase_one(facts: Reproduction) -> list[str]:
    arguments = [_argument(item, facts.case.arguments[item.name]) for item in facts.parameters]
    null = facts.case.call.null
    arguments += ["nullptr" if pointer in null else f"&{pointer}" for pointer in ("workspaceSize", "executor")]
    return [
        "workspaceSize = 0;",
        "executor = nullptr;",
        f"phaseOne = status = {facts.case.operator}GetWorkspaceSize({', '.join(arguments)});",
        'if (who) std::printf("%sphase one returned %d\\n", who, static_cast<int>(status));',
        *(() if "executor" in null else _WITHOUT_EXECUTOR),
    ]


_WITHOUT_EXECUTOR = (
    "if (status == 0 && executor == nullptr) {",
    '  std::printf("%sphase one returned success and made no executor\\nFAULT\\n", who ? who : "");',
    "  return 1;",
    "}",
)


def _phase_two(facts: Reproduction) -> tuple[str, ...]:
    address = "nullptr" if "workspace" in facts.case.call.null else "workspace.Address()"
    return (
        "if (phaseOne != 0) return 0;",
        f"status = {facts.case.operator}({address}, workspace.bytes, executor, stream);",
        'if (who) std::printf("%sphase two returned %d\\n", who, static_cast<int>(status));',
    )


_REFUSED_LATE = (
    "if (phaseOne == 0 && status != 0) {",
    '  std::printf("%sphase two refused what phase one accepted, which checks the arguments\\n", who);',
    "  conforms = false;",
    "}",
)


def _judge(facts: Reproduction) -> Iterator[str]:
    allowed = " || ".join(f"status == {value}" for _, value in facts.statuses)
    if facts.any_error:
        allowed = f"{allowed} || status != 0" if allowed else "status != 0"
    names = ", ".join([name for name, _ in facts.statuses] + (["any error"] if facts.any_error else []))
    yield f"bool conforms = {allowed};"
    yield f'if (!conforms) std::printf("%sstatus %d, expected {names}\\n", who, static_cast<int>(status));'
    if facts.phases == 2:
        if facts.refused_in_phase_one:
            yield from _REFUSED_LATE
        yield from (
            "int result = 0;",
            *(f"result |= {_comparison(facts, tensor)};" for tensor in facts.tensors.values()),
            "result |= workspace.LookAround(who);",
            "if (result & 2) return 2;",
            "conforms = conforms && result == 0;",
        )
    yield 'std::printf("%s%s\\n", who, conforms ? "conforms" : "does not conform");'
    yield "fault = fault || !conforms;"


def _comparison(facts: Reproduction, tensor: DescriptorFacts) -> str:
    own = _identifier(tensor.name)
    if owner(tensor.name) not in facts.written:
        return f'{own}_memory.Unchanged(who, "{tensor.name}")'
    size = tensor.nbytes // max(tensor.tensor.storage_numel, 1)
    expected = f"&{own}_expected" if tensor.expected is not None else "nullptr"
    return (
        f'Compare(who, "{tensor.name}", {own}_memory, {tensor.dtype}, {size}, {own}_shape, {own}_strides, '
        f"{tensor.tensor.offset}, status == 0 ? {expected} : nullptr)"
    )


def _each_memory(facts: Reproduction, line: str) -> Iterator[str]:
    for name in facts.tensors if facts.phases == 2 else ():
        yield line.format(own=_identifier(name))


def _release(facts: Reproduction) -> Iterator[str]:
    for name in facts.tensors:
        if not name.endswith("]"):
            yield f"aclDestroyTensor({_identifier(name)});"
    for item in facts.parameters:
        if item.kind in _HANDLES and facts.case.arguments[item.name] is not None:
            yield f"aclDestroy{_HANDLES[item.kind]}({_identifier(item.name)});"
    yield from _each_memory(facts, "if ({own}_memory.Free() != 0) return 2;")
    if facts.phases == 2:
        yield "if (workspace.Free() != 0) return 2;"
