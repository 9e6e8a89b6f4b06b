"""A reproduction as one C++ program in the manner of the operator documents' examples."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Argument
from aclnn_cts.engine.repro.cpp_prelude import PRELUDE
from aclnn_cts.engine.repro.facts import CallsOfTrial, Reproduction, TensorFacts
from aclnn_cts.spec.model import Parameter

__all__ = ["cpp_program"]


def cpp_program(calls: CallsOfTrial) -> str:
    """The program's text. Its first lines say what it shows and how it is built."""
    first = calls.made[0]
    lines = [*_opening(calls), PRELUDE.replace("@HEADER@", first.header)]
    if calls.number == 1:
        lines += [*_data(first), *_main(first)]
    else:
        for place, facts in enumerate(calls.made):
            lines += [f"namespace {_space(place)} {{", "", *_data(facts), *_run(facts), "", "}", ""]
        lines += _main_of_several(calls)
    return "\n".join(lines) + "\n"


def _opening(calls: CallsOfTrial) -> Iterator[str]:
    first = calls.made[0]
    yield f"// {first.operator}: {_one_line(first.sentence)}"
    yield f"// Case {first.case_id}, {first.case.product}."
    for line in calls.about:
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
            ranges = zip(
                tensor.expected.lower.tolist(),
                tensor.expected.upper.tolist(),
                tensor.expected.judged.tolist(),
                strict=True,
            )
            words = [f"{{{_double(low)}, {_double(high)}, {str(judged).lower()}}}" for low, high, judged in ranges]
            yield f"const std::vector<Range> {own}_expected = {{{_wrapped(words)}}};"
        yield ""


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


def _main(facts: Reproduction) -> Iterator[str]:
    yield "int main() {"
    body = [*_DEVICE, *_arguments(facts), *_call(facts), *_verdict(facts)]
    yield from (f"  {line}" if line else "" for line in body)
    yield "}"


def _run(facts: Reproduction) -> Iterator[str]:
    """The same as a function: 0 the call conforms, 1 it does not, 2 the surroundings failed."""
    yield "int Run(aclrtStream stream) {"
    body = [*_arguments(facts), *_call(facts), *_verdict(facts)]
    yield from (f"  {line}" if line else "" for line in body)
    yield "}"


def _main_of_several(calls: CallsOfTrial) -> Iterator[str]:
    yield "int main() {"
    yield from (f"  {line}" for line in _DEVICE)
    yield "  int fault = 0;"
    for number, place in enumerate(calls.order, start=1):
        yield f'  std::printf("call {number} of {calls.number}\\n");'
        yield f"  if (int code = {_space(place)}::Run(stream); code == 2) return 2;"
        yield f"  else if (code != 0) fault = {number};"
    yield "  if (fault) {"
    yield '    std::printf("call %d is at fault by itself\\nFAULT\\n", fault);'
    yield "    return 1;"
    yield "  }"
    yield f'  std::printf("%s\\n", {_string(calls.beyond)});'
    yield "  return 0;"
    yield "}"


def _space(place: int) -> str:
    return f"call_{place + 1}"


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


_DEVICE = (
    "CHECK_RUNTIME(aclInit(nullptr));",
    "CHECK_RUNTIME(aclrtSetDevice(0));",
    "aclrtStream stream = nullptr;",
    "CHECK_RUNTIME(aclrtCreateStream(&stream));",
)


def _arguments(facts: Reproduction) -> Iterator[str]:
    for name, tensor in facts.tensors.items():
        own = _identifier(name)
        address = "nullptr"
        if facts.phases == 2:
            data = f"{own}_data.data()" if tensor.storage is not None else "nullptr"
            yield f"Memory {own}_memory;"
            yield f"if ({own}_memory.Allocate({data}, {tensor.nbytes}, 0xFF) != 0) return 2;"
            address = f"{own}_memory.Address()"
        yield (
            f"aclTensor *{own} = aclCreateTensor({own}_shape.data(), {own}_shape.size(), "
            f"static_cast<aclDataType>({tensor.dtype}), {own}_strides.data(), {tensor.tensor.offset}, "
            f"static_cast<aclFormat>({tensor.format}), {own}_storage_shape.data(), "
            f"{own}_storage_shape.size(), {address});"
        )
    for item in facts.parameters:
        value = facts.arguments[item.name]
        if item.kind == "int_array" and isinstance(value, tuple):
            own = _identifier(item.name)
            yield f"const std::vector<int64_t> {own}_items = {_braces(value)};"
            yield f"aclIntArray *{own} = aclCreateIntArray({own}_items.data(), {own}_items.size());"


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


def _call(facts: Reproduction) -> Iterator[str]:
    arguments = [_argument(item, facts.arguments[item.name]) for item in facts.parameters]
    null = facts.case.call.null
    arguments += ["nullptr" if pointer in null else f"&{pointer}" for pointer in ("workspaceSize", "executor")]
    yield ""
    yield "uint64_t workspaceSize = 0;"
    yield "aclOpExecutor *executor = nullptr;"
    yield f"aclnnStatus status = {facts.operator}GetWorkspaceSize({', '.join(arguments)});"
    yield 'std::printf("phase one returned %d\\n", static_cast<int>(status));'
    if facts.phases == 2:
        yield "Memory workspace;"
        yield "if (status == 0) {"
        yield "  if (workspaceSize > 0 && workspace.Allocate(nullptr, workspaceSize, 0xFF) != 0) return 2;"
        yield "  void *address = workspaceSize > 0 ? workspace.Address() : nullptr;"
        yield f"  status = {facts.operator}(address, workspaceSize, executor, stream);"
        yield '  std::printf("phase two returned %d\\n", static_cast<int>(status));'
        yield "  int synchronised = static_cast<int>(aclrtSynchronizeStream(stream));"
        yield "  if (synchronised != 0) {"
        yield '    std::printf("aclrtSynchronizeStream returned %d\\nFAULT\\n", synchronised);'
        yield "    return 1;"
        yield "  }"
        yield "}"


def _verdict(facts: Reproduction) -> Iterator[str]:
    allowed = " || ".join(f"status == {value}" for _, value in facts.statuses)
    if facts.any_error:
        allowed = f"{allowed} || status != 0" if allowed else "status != 0"
    names = ", ".join([name for name, _ in facts.statuses] + (["any error"] if facts.any_error else []))
    yield ""
    yield f"bool conforms = {allowed};"
    yield f'if (!conforms) std::printf("status %d, expected {names}\\n", static_cast<int>(status));'
    for name, tensor in facts.tensors.items():
        if tensor.expected is None:
            continue
        own = _identifier(name)
        size = tensor.nbytes // max(tensor.tensor.storage_numel, 1)
        yield "if (status == 0) {"
        yield (
            f'  int result = Compare("{name}", {own}_memory, {tensor.dtype}, {size}, {own}_shape, {own}_strides, '
            f"{tensor.tensor.offset}, {own}_expected);"
        )
        yield "  if (result == 2) return 2;"
        yield "  conforms = conforms && result == 0;"
        yield "}"
    yield from _inputs_unchanged(facts.tensors.values() if facts.phases == 2 else ())
    if facts.phases == 2:
        yield "if (workspace.base != nullptr) {"
        yield "  std::vector<uint8_t> after;"
        yield "  if (workspace.Read(&after) != 0) return 2;"
        yield "  size_t behind = kGuard + workspace.bytes;"
        yield '  conforms = Untouched("workspace", workspace.before, after, 0, kGuard) && conforms;'
        yield '  conforms = Untouched("workspace", workspace.before, after, behind, after.size()) && conforms;'
        yield "}"
    yield 'std::printf(conforms ? "conforms\\n" : "FAULT\\n");'
    yield "return conforms ? 0 : 1;"


def _inputs_unchanged(tensors: Any) -> Iterator[str]:  # noqa: ANN401 - an iterable of TensorFacts
    for tensor in tensors:
        if not isinstance(tensor, TensorFacts) or tensor.storage is None:
            continue
        own = _identifier(tensor.name)
        yield "{"
        yield "  std::vector<uint8_t> after;"
        yield f"  if ({own}_memory.Read(&after) != 0) return 2;"
        yield f'  conforms = Untouched("{tensor.name}", {own}_memory.before, after, 0, after.size()) && conforms;'
        yield "}"
