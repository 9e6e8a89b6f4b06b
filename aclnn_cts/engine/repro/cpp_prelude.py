"""What every C++ reproduction has: memory between guards, and the comparison of an output with what conforms."""

from __future__ import annotations

__all__ = ["PRELUDE"]

PRELUDE = r"""#include <cmath>
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
