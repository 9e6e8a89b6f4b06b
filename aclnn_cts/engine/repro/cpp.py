"""A program in C++: each unlike call as functions named for its steps, and a main that takes the steps in turn."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Argument
from aclnn_cts.engine.life_cycle import ALLOWED_GROWTH
from aclnn_cts.engine.repro.cpp_prelude import MANY_TIMES, PRELUDE, RELATIONS
from aclnn_cts.engine.repro.facts import OutputFacts, Program, Reproduction, TensorFacts
from aclnn_cts.engine.repro.relations import Side, Slot
from aclnn_cts.engine.repro.steps import Step
from aclnn_cts.spec.model import Parameter

__all__ = ["cpp_program"]


def cpp_program(program: Program) -> str:
    """The program's text. Its first lines say what it shows and how it is built."""
    lines = [*_opening(program), PRELUDE.replace("@HEADER@", program.calls[0].header)]
    if any(step.verb == "refused" for step in program.steps):
        lines.append(MANY_TIMES.replace("@GROWTH@", str(ALLOWED_GROWTH)))
    for place, facts in enumerate(program.calls):
        verbs = {step.verb for step in program.steps if step.call == place}
        lines += [f"namespace {_space(place)} {{", "", *_data(facts), *_functions(facts, verbs), "}", ""]
    if program.relations:
        lines += [RELATIONS, *_relations(program)]
    lines += _main(program)
    return "\n".join(lines) + "\n"


def _opening(program: Program) -> Iterator[str]:
    first = program.calls[0]
    yield f"// {first.operator}: {_one_line(first.sentence)}"
    yield f"// Case {first.case_id}, {first.case.product}."
    for line in program.about:
        yield f"// {_one_line(line)}"
    yield "// Build, with the toolkit's environment set:"
    yield "//   A=$ASCEND_HOME_PATH"
    yield "//   g++ -std=c++17 repro.cpp -I$A/include -L$A/lib64 -lascendcl -lnnopbase -lopapi -o repro"
    yield "// Where a release has split libopapi.so, name its parts instead: -lopapi_nn -lopapi_cv -lopapi_math."


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("\\", "/")


def _identifier(name: str) -> str:
    """A name that is no word of C++ and no other name of the program."""
    return f"the_{name}"


def _space(place: int) -> str:
    return f"call_{place + 1}"


def _data(facts: Reproduction) -> Iterator[str]:
    for name, tensor in facts.tensors.items():
        own = _identifier(name)
        yield f"const std::vector<int64_t> {own}_shape = {_braces(tensor.tensor.shape)};"
        yield f"const std::vector<int64_t> {own}_strides = {_braces(tensor.strides)};"
        yield f"const std::vector<int64_t> {own}_storage_shape = {_braces(tensor.storage_shape)};"
        if tensor.storage is not None:
            c_type, words = _elements(tensor.storage, tensor.tensor.dtype)
            yield f"const std::vector<{c_type}> {own}_data = {{{_wrapped(words)}}};"
        if tensor.expected is not None:
            words = list(map(_range, *_columns(tensor.expected)))
            yield f"const std::vector<Range> {own}_expected = {{{_wrapped(words)}}};"
        if facts.phases == 2:
            yield f"Memory {own}_memory;"
        yield f"aclTensor *{own} = nullptr;"
        yield ""
    for item in facts.parameters:
        value = facts.arguments[item.name]
        if item.kind == "int_array" and isinstance(value, tuple):
            own = _identifier(item.name)
            yield f"const std::vector<int64_t> {own}_items = {_braces(value)};"
            yield f"aclIntArray *{own} = nullptr;"
    yield "Memory workspace;"
    yield "uint64_t workspaceSize = 0;"
    yield "aclOpExecutor *executor = nullptr;"
    yield "aclnnStatus phaseOne = 0;"
    yield "aclnnStatus status = 0;"
    yield ""


def _columns(expected: OutputFacts) -> tuple[list[Any], ...]:
    return tuple(array.tolist() for array in (expected.lower, expected.upper, expected.judged, expected.finite_alone))


def _range(lower: float, upper: float, judged: bool, finite_alone: bool) -> str:  # noqa: FBT001 - mapped over columns
    return f"{{{_double(lower)}, {_double(upper)}, {str(judged).lower()}, {str(finite_alone).lower()}}}"


def _braces(values: Sequence[int]) -> str:
    return "{" + ", ".join(f"{value}LL" for value in values) + "}"


def _wrapped(words: Sequence[str]) -> str:
    rows = ["    " + ", ".join(words[start : start + 6]) for start in range(0, len(words), 6)]
    return "\n" + ",\n".join(rows)


def _double(value: float) -> str:
    if math.isnan(value):
        return "kNan"
    if math.isinf(value):
        return "kInf" if value > 0 else "-kInf"
    return value.hex()


def _elements(storage: NDArray[Any], dtype: str) -> tuple[str, list[str]]:
    """The element type and the elements: hexadecimal floats, bits for 16-bit floats, integers as they are."""
    if dtype in ("FLOAT16", "BF16"):
        return "uint16_t", [f"0x{bits:04x}" for bits in storage.view(np.uint16).tolist()]
    if dtype == "FLOAT":
        return "float", [_single(value) for value in storage.tolist()]
    if dtype == "DOUBLE":
        return "double", [_double(value) for value in storage.tolist()]
    if dtype == "BOOL":
        return "uint8_t", [str(int(value)) for value in storage.tolist()]
    names = {"INT8": "int8_t", "UINT8": "uint8_t", "INT16": "int16_t", "INT32": "int32_t", "INT64": "int64_t"}
    suffix = "LL" if dtype == "INT64" else ""
    return names.get(dtype, "uint64_t"), [f"{int(value)}{suffix}" for value in storage.tolist()]


def _single(value: float) -> str:
    if math.isfinite(value):
        return f"{value.hex()}f"
    return f"static_cast<float>({_double(value)})"


def _functions(facts: Reproduction, verbs: set[str]) -> Iterator[str]:
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
            yield f"{head} {{"
            yield from (f"  {line}" for line in body)
            yield "  return 0;"
            yield "}"
            yield ""


_WORKSPACE = (
    "if (status != 0 || workspaceSize == 0) return 0;",
    "size_t size = way == Way::kLarger ? 2 * workspaceSize + 4096 : workspaceSize;",
    "return workspace.Allocate(nullptr, size, way == Way::kExact ? 0 : kGuard);",
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
        yield (
            f"{own} = aclCreateTensor({own}_shape.data(), {own}_shape.size(), "
            f"static_cast<aclDataType>({tensor.dtype}), {own}_strides.data(), {tensor.tensor.offset}, "
            f"static_cast<aclFormat>({tensor.format}), {own}_storage_shape.data(), "
            f"{own}_storage_shape.size(), {address});"
        )
    for own in _arrays(facts):
        yield f"{own} = aclCreateIntArray({own}_items.data(), {own}_items.size());"


def _arrays(facts: Reproduction) -> Iterator[str]:
    for item in facts.parameters:
        if item.kind == "int_array" and isinstance(facts.arguments[item.name], tuple):
            yield _identifier(item.name)


def _argument(item: Parameter, value: Argument) -> str:
    if value is None:
        return "nullptr"
    if item.kind in ("tensor", "int_array"):
        return _identifier(item.name)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return _double(value)
    suffix = "ULL" if item.type.startswith("uint") else "LL"
    if value == -(2**63):
        return "INT64_MIN"
    return f"static_cast<{item.type.strip()}>({value}{suffix})"


def _phase_one(facts: Reproduction) -> Iterator[str]:
    arguments = [_argument(item, facts.arguments[item.name]) for item in facts.parameters]
    null = facts.case.call.null
    arguments += ["nullptr" if pointer in null else f"&{pointer}" for pointer in ("workspaceSize", "executor")]
    yield "workspaceSize = 0;"
    yield "executor = nullptr;"
    yield f"phaseOne = status = {facts.operator}GetWorkspaceSize({', '.join(arguments)});"
    yield 'if (who) std::printf("%sphase one returned %d\\n", who, static_cast<int>(status));'
    if "executor" not in null:
        yield "if (status == 0 && executor == nullptr) {"
        yield '  std::printf("%sphase one returned success and made no executor\\nFAULT\\n", who ? who : "");'
        yield "  return 1;"
        yield "}"


def _phase_two(facts: Reproduction) -> Iterator[str]:
    address = "nullptr" if "workspace" in facts.case.call.null else "workspace.Address()"
    yield "if (phaseOne != 0) return 0;"
    yield f"status = {facts.operator}({address}, workspace.bytes, executor, stream);"
    yield 'std::printf("%sphase two returned %d\\n", who, static_cast<int>(status));'


def _judge(facts: Reproduction) -> Iterator[str]:
    allowed = " || ".join(f"status == {value}" for _, value in facts.statuses)
    if facts.any_error:
        allowed = f"{allowed} || status != 0" if allowed else "status != 0"
    names = ", ".join([name for name, _ in facts.statuses] + (["any error"] if facts.any_error else []))
    yield f"bool conforms = {allowed};"
    yield f'if (!conforms) std::printf("%sstatus %d, expected {names}\\n", who, static_cast<int>(status));'
    if facts.refused_in_phase_one and facts.phases == 2:
        yield "if (phaseOne == 0 && status != 0) {"
        yield '  std::printf("%sphase two refused what phase one accepted, which checks the arguments\\n", who);'
        yield "  conforms = false;"
        yield "}"
    if facts.phases == 2:
        yield "int result = 0;"
        for tensor in facts.tensors.values():
            yield f"result |= {_comparison(tensor)};"
        yield "result |= workspace.LookAround(who);"
        yield "if (result & 2) return 2;"
        yield "conforms = conforms && result == 0;"
    yield 'std::printf("%s%s\\n", who, conforms ? "conforms" : "does not conform");'
    yield "fault = fault || !conforms;"


def _comparison(tensor: TensorFacts) -> str:
    own = _identifier(tensor.name)
    if tensor.storage is not None:
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
        yield f"aclDestroyTensor({_identifier(name)});"
    for own in _arrays(facts):
        yield f"aclDestroyIntArray({own});"
    yield from _each_memory(facts, "if ({own}_memory.Free() != 0) return 2;")
    yield "if (workspace.Free() != 0) return 2;"


def _relations(program: Program) -> Iterator[str]:
    slots = {slot: place for place, slot in enumerate(program.kept)}
    yield "const std::vector<Relation> kRelations = {"
    for relation in program.relations:
        yield f"    {{{_string(relation.output)}, {_string(relation.said)}, {_string(relation.place)},"
        yield f"     {_braces(relation.shape)},"
        yield "     {"
        for run in relation.runs:
            yield f"         {{{run.rows}, {_side(run.left, slots)}, {_side(run.right, slots)}}},"
        yield "     },"
        yield f"     {{{_wrapped([_double(value) for value in relation.bounds.tolist()])}}}}},"
    yield "};"
    yield ""


def _side(side: Side, slots: dict[Slot, int]) -> str:
    terms = [f"{{{slots[term.slot]}, {term.first}, {term.step}, {_double(term.factor)}}}" for term in side.terms]
    return f"{{{_double(side.constant)}, {{{', '.join(terms)}}}}}"


def _main(program: Program) -> Iterator[str]:
    yield "int main() {"
    yield "  CHECK_RUNTIME(aclInit(nullptr));"
    yield "  CHECK_RUNTIME(aclrtSetDevice(0));"
    for number in range(program.streams):
        yield f"  aclrtStream stream_{number} = nullptr;"
        yield f"  CHECK_RUNTIME(aclrtCreateStream(&stream_{number}));"
    for step in program.steps:
        yield f"  TAKE({_taken(step, several=program.number > 1)});"
    if program.relations:
        yield f"  Relate(kRelations, {len(program.kept)});"
    if program.beyond:
        yield f'  if (!fault) std::printf("%s\\n", {_string(program.beyond)});'
        yield '  else std::printf("FAULT\\n");'
    else:
        yield '  std::printf(fault ? "FAULT\\n" : "conforms\\n");'
    yield "  return fault ? 1 : 0;"
    yield "}"


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
    if step.verb == "wait":
        return f"Wait({stream})"
    if step.verb == "workspace":
        return f"{space}::AllocateWorkspace({_WAYS[step.way]})"
    if step.verb == "refused":
        functions = ", ".join(f"{space}::{name}" for name in ("Prepare", "PhaseOne", "Release"))
        return f"ManyTimes({step.times}, {functions}, &{space}::status, {space}::Judge)"
    who = f'"call {step.number}: "' if several else '""'
    return f"{space}::{_CALLED[step.verb].format(who=who, stream=stream)}"


def _string(text: str) -> str:
    """A literal; what is not printable ASCII is written in octal, which takes no further digits."""
    plain = {'"': '\\"', "\\": "\\\\"}
    return (
        '"'
        + "".join(
            plain.get(chr(byte)) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}") for byte in text.encode()
        )
        + '"'
    )
