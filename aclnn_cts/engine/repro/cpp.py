"""A reproduction as one C++ program in the manner of the operator documents' examples."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Argument
from aclnn_cts.engine.repro.facts import Reproduction, TensorFacts
from aclnn_cts.spec.model import Parameter

__all__ = ["cpp_program"]

_PRELUDE = r"""#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <vector>

#include "acl/acl.h"
#include "@HEADER@"

// Exit codes: 0 the fault is gone, 1 it is there, 2 the surroundings failed.
#define CHECK_RUNTIME(call)                                        \
  do {                                                             \
    auto code = (call);                                            \
    if (code != 0) {                                               \
      std::printf("%s failed: %d\n", #call, static_cast<int>(code)); \
      return 2;                                                    \
    }                                                              \
  } while (0)

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr size_t kGuard = 256;

double HalfToDouble(uint16_t bits) {
  int exponent = (bits >> 10) & 31;
  int fraction = bits & 1023;
  double value = exponent == 31 ? (fraction ? kNan : kInf)
                 : exponent == 0 ? std::ldexp(fraction, -24)
                                 : std::ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -value : value;
}

double Bf16ToDouble(uint16_t bits) {
  uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

double ReadElement(const uint8_t *address, int dtype) {
  uint16_t half;
  float single;
  double wide;
  switch (dtype) {
    case 0: std::memcpy(&single, address, sizeof single); return single;
    case 1: std::memcpy(&half, address, sizeof half); return HalfToDouble(half);
    case 27: std::memcpy(&half, address, sizeof half); return Bf16ToDouble(half);
    default: std::memcpy(&wide, address, sizeof wide); return wide;
  }
}

struct Memory {
  void *base = nullptr;  // of the allocation: guard, storage, guard
  size_t bytes = 0;
  std::vector<uint8_t> before;

  void *Address() const { return static_cast<uint8_t *>(base) + kGuard; }

  int Allocate(const void *data, size_t size, uint8_t fill) {
    bytes = size;
    before.assign(size + 2 * kGuard, 0xA5);
    if (data != nullptr) std::memcpy(before.data() + kGuard, data, size);
    else std::memset(before.data() + kGuard, fill, size);
    CHECK_RUNTIME(aclrtMalloc(&base, before.size(), ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_RUNTIME(aclrtMemcpy(base, before.size(), before.data(), before.size(), ACL_MEMCPY_HOST_TO_DEVICE));
    return 0;
  }

  int Read(std::vector<uint8_t> *after) const {
    after->resize(before.size());
    CHECK_RUNTIME(aclrtMemcpy(after->data(), after->size(), base, before.size(), ACL_MEMCPY_DEVICE_TO_HOST));
    return 0;
  }
};

bool Untouched(const char *name, const std::vector<uint8_t> &before, const std::vector<uint8_t> &after, size_t first,
               size_t last) {
  for (size_t i = first; i < last; ++i) {
    if (before[i] != after[i]) {
      ptrdiff_t place = static_cast<ptrdiff_t>(i) - static_cast<ptrdiff_t>(kGuard);
      std::printf("%s: byte %zd must not be written and was changed\n", name, place);
      return false;
    }
  }
  return true;
}

struct Range {
  double lower, upper;
  bool judged;
};

int Compare(const char *name, const Memory &memory, int dtype, size_t size, const std::vector<int64_t> &shape,
            const std::vector<int64_t> &strides, int64_t offset, const std::vector<Range> &expected) {
  std::vector<uint8_t> after;
  if (memory.Read(&after) != 0) return 2;
  std::vector<uint8_t> outside(memory.before);  // what it must be where no element of the view lies
  std::vector<int64_t> index(shape.size(), 0);
  size_t wrong = 0;
  for (size_t element = 0; element < expected.size(); ++element) {
    int64_t place = offset;
    for (size_t axis = 0; axis < shape.size(); ++axis) place += index[axis] * strides[axis];
    size_t start = kGuard + static_cast<size_t>(place) * size;
    std::memcpy(outside.data() + start, after.data() + start, size);
    double got = ReadElement(after.data() + start, dtype);
    const Range &range = expected[element];
    bool right = std::isnan(range.lower) ? std::isnan(got) : range.lower <= got && got <= range.upper;
    if (range.judged && !right) {
      if (++wrong <= 8) {
        std::printf("%s[", name);
        for (size_t axis = 0; axis < shape.size(); ++axis) {
          std::printf("%s%lld", axis ? ", " : "", static_cast<long long>(index[axis]));
        }
        std::printf("] is %.17g, expected %.17g to %.17g\n", got, range.lower, range.upper);
      }
    }
    for (size_t axis = shape.size(); axis-- > 0;) {
      if (++index[axis] < shape[axis]) break;
      index[axis] = 0;
    }
  }
  if (wrong) std::printf("%s: %zu of %zu elements at fault\n", name, wrong, expected.size());
  bool good = Untouched(name, outside, after, 0, after.size());
  return good && wrong == 0 ? 0 : 1;
}
"""


def cpp_program(facts: Reproduction) -> str:
    """The program's text. Its first lines say what it shows and how it is built."""
    lines = [*_opening(facts), _PRELUDE.replace("@HEADER@", facts.header), *_data(facts), *_main(facts)]
    return "\n".join(lines) + "\n"


def _opening(facts: Reproduction) -> Iterator[str]:
    yield f"// {facts.operator}: {_one_line(facts.sentence)}"
    yield f"// Case {facts.case_id}, {facts.case.product}."
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
    body = [*_set_up(facts), *_call(facts), *_verdict(facts)]
    yield from (f"  {line}" if line else "" for line in body)
    yield "}"


def _set_up(facts: Reproduction) -> Iterator[str]:
    yield "CHECK_RUNTIME(aclInit(nullptr));"
    yield "CHECK_RUNTIME(aclrtSetDevice(0));"
    yield "aclrtStream stream = nullptr;"
    yield "CHECK_RUNTIME(aclrtCreateStream(&stream));"
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
