"""What C++ programs have in common: memory between guards, and comparisons with what conforms."""

from __future__ import annotations

__all__ = ["DEVICE", "MANY_TIMES", "PRELUDE", "RELATIONS"]

PRELUDE = r"""#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <vector>

#include <unistd.h>

#include "acl/acl.h"
@HEADERS@

// Exit codes: 0 the fault is gone, 1 it is there, 2 the surroundings failed.
#define CHECK_RUNTIME(call)                                        \
  do {                                                             \
    auto code = (call);                                            \
    if (code != 0) {                                               \
      std::printf("%s failed: %d\n", #call, static_cast<int>(code)); \
      return 2;                                                    \
    }                                                              \
  } while (0)
#define TAKE(step) \
  if (int code = (step)) return code

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr size_t kGuard = 256;
constexpr uint8_t kFill = 0xFF;  // of what is to be written
enum class Way { kGuarded, kExact, kLarger };

bool fault = false;
std::vector<std::vector<double>> results;  // of outputs, in the order in which they were compared

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
    case 0: case 16: std::memcpy(&single, address, sizeof single); return single;
    case 1: std::memcpy(&half, address, sizeof half); return HalfToDouble(half);
    case 27: std::memcpy(&half, address, sizeof half); return Bf16ToDouble(half);
    default: std::memcpy(&wide, address, sizeof wide); return wide;
  }
}

bool Untouched(const char *who, const char *name, const std::vector<uint8_t> &before, const std::vector<uint8_t> &after,
               size_t guard) {
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i] != after[i]) {
      ptrdiff_t place = static_cast<ptrdiff_t>(i) - static_cast<ptrdiff_t>(guard);
      std::printf("%s%s: byte %zd must not be written and was changed\n", who, name, place);
      return false;
    }
  }
  return true;
}
"""

DEVICE = r"""struct Memory {
  void *base = nullptr;  // of the allocation: guard, storage, guard
  size_t bytes = 0, guard = 0;
  std::vector<uint8_t> before;

  void *Address() const { return base == nullptr ? nullptr : static_cast<uint8_t *>(base) + guard; }

  int Allocate(const void *data, size_t size, size_t around) {
    bytes = size;
    guard = around;
    before.assign(size + 2 * guard, 0xA5);
    if (size > 0) {
      if (data != nullptr) std::memcpy(before.data() + guard, data, size);
      else std::memset(before.data() + guard, kFill, size);
    }
    CHECK_RUNTIME(aclrtMalloc(&base, before.size(), ACL_MEM_MALLOC_HUGE_FIRST));
    return Fill();
  }

  int Fill() const {
    CHECK_RUNTIME(aclrtMemcpy(base, before.size(), before.data(), before.size(), ACL_MEMCPY_HOST_TO_DEVICE));
    return 0;
  }

  int Read(std::vector<uint8_t> *after) const {
    after->resize(before.size());
    CHECK_RUNTIME(aclrtMemcpy(after->data(), after->size(), base, before.size(), ACL_MEMCPY_DEVICE_TO_HOST));
    return 0;
  }

  int Free() {
    if (base != nullptr) CHECK_RUNTIME(aclrtFree(base));
    base = nullptr;
    bytes = 0;
    return 0;
  }

  // Of an input: 0, 1 where it was changed, 2 where the surroundings failed.
  int Unchanged(const char *who, const char *name) const {
    std::vector<uint8_t> after;
    if (Read(&after) != 0) return 2;
    return Untouched(who, name, before, after, guard) ? 0 : 1;
  }

  // The same of what lies around a workspace.
  int LookAround(const char *who) const {
    if (base == nullptr) return 0;
    std::vector<uint8_t> after, outside(before);
    if (Read(&after) != 0) return 2;
    std::memcpy(outside.data() + guard, after.data() + guard, bytes);
    return Untouched(who, "workspace", outside, after, guard) ? 0 : 1;
  }
};

int Wait(aclrtStream stream) {
  int code = static_cast<int>(aclrtSynchronizeStream(stream));
  if (code == 0) return 0;
  std::printf("aclrtSynchronizeStream returned %d\nFAULT\n", code);
  return 1;
}

struct Range {
  double lower, upper;
  bool judged;
  bool finite_alone;  // inf and nan conform too
};

void PrintPlace(const char *who, const char *name, const std::vector<int64_t> &shape, size_t element) {
  std::vector<long long> index(shape.size());
  for (size_t axis = shape.size(); axis-- > 0; element /= static_cast<size_t>(shape[axis])) {
    index[axis] = static_cast<long long>(element % static_cast<size_t>(shape[axis]));
  }
  std::printf("%s%s[", who, name);
  for (size_t axis = 0; axis < shape.size(); ++axis) std::printf("%s%lld", axis ? ", " : "", index[axis]);
  std::printf("]");
}

// An output: its elements, where `expected` is given, and that nothing but them was written. 0, 1 for a fault, 2 where
// the surroundings failed.
int Compare(const char *who, const char *name, const Memory &memory, int dtype, size_t size,
            const std::vector<int64_t> &shape, const std::vector<int64_t> &strides, int64_t offset,
            const std::vector<Range> *expected) {
  std::vector<uint8_t> after;
  if (memory.Read(&after) != 0) return 2;
  std::vector<uint8_t> outside(memory.before);  // what it must be where no element of the view lies
  std::vector<double> values;
  size_t count = 1, wrong = 0, unwritten = 0, parts = dtype == 16 || dtype == 17 ? 2 : 1;  // of a complex number
  for (int64_t length : shape) count *= static_cast<size_t>(length);
  for (size_t element = 0; element < count; ++element) {
    size_t rest = element;
    int64_t place = offset;
    for (size_t axis = shape.size(); axis-- > 0; rest /= static_cast<size_t>(shape[axis])) {
      place += static_cast<int64_t>(rest % static_cast<size_t>(shape[axis])) * strides[axis];
    }
    const uint8_t *got = after.data() + memory.guard + static_cast<size_t>(place) * size;
    std::memcpy(outside.data() + (got - after.data()), got, size);
    if (expected == nullptr) continue;
    if (std::vector<uint8_t>(got, got + size) == std::vector<uint8_t>(size, kFill)) ++unwritten;
    for (size_t part = 0; part < parts; ++part) {
      double value = ReadElement(got + part * (size / parts), dtype);
      values.push_back(value);
      const Range &range = (*expected)[element * parts + part];
      bool right = std::isnan(range.lower) ? std::isnan(value) : range.lower <= value && value <= range.upper;
      bool open = !range.judged || (range.finite_alone && !std::isfinite(value));
      if (!open && !right && ++wrong <= 8) {
        PrintPlace(who, name, shape, element);
        std::printf("%s is %.17g, expected %.17g to %.17g\n", parts == 1 ? "" : part ? ".im" : ".re", value,
                    range.lower, range.upper);
      }
    }
  }
  if (wrong) std::printf("%s%s: %zu of %zu elements at fault\n", who, name, wrong, values.size());
  if (unwritten) std::printf("%s%s: %zu of %zu elements were never written\n", who, name, unwritten, count);
  if (expected != nullptr) results.push_back(values);
  bool good = Untouched(who, name, outside, after, memory.guard);
  return good && wrong == 0 && unwritten == 0 ? 0 : 1;
}
"""

MANY_TIMES = r"""// Memory of this process, in bytes; 0 where the system does not tell.
size_t ResidentBytes() {
  size_t whole = 0, resident = 0;
  if (std::FILE *file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%zu %zu", &whole, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// Refused calls in a row: one status, and a process that does not grow over the second half of them.
int ManyTimes(int times, int (*prepare)(), int (*phaseOne)(const char *), int (*release)(), const aclnnStatus *status,
              int (*judge)(const char *)) {
  size_t before = 0;
  aclnnStatus first = 0;
  for (int number = 0; number < times; ++number) {
    if (number == times / 2) before = ResidentBytes();
    TAKE(prepare());
    TAKE(phaseOne(number == 0 ? "" : nullptr));
    TAKE(release());
    if (number == 0) first = *status;
    if (*status != first) {
      std::printf("call %d in a row returned %d, the first %d\n", number, static_cast<int>(*status),
                  static_cast<int>(first));
      fault = true;
      break;
    }
  }
  size_t now = ResidentBytes();
  size_t grown = now > before ? now - before : 0;
  std::printf("the process grew by %zu bytes over the last %d of %d calls; %d are allowed for\n", grown,
              times - times / 2, times, @GROWTH@);
  if (grown > @GROWTH@) fault = true;
  return judge("");
}
"""

RELATIONS = r"""// Row by row: a constant and what is added to it, on both sides, no further apart than the bound.
struct Term {
  size_t result, first;
  int64_t step;
  double factor;
};
struct Side {
  double constant;
  std::vector<Term> terms;
};
struct Run {
  size_t rows;
  Side left, right;
};
struct Relation {
  const char *output, *said, *place;
  std::vector<int64_t> shape;
  std::vector<Run> runs;
  std::vector<double> bounds;
};

double Sum(const Side &side, size_t row) {
  long double total = side.constant;
  for (const Term &term : side.terms) {
    size_t element = term.first + static_cast<size_t>(static_cast<int64_t>(row) * term.step);
    total += static_cast<long double>(term.factor) * results[term.result][element];
  }
  return static_cast<double>(total);
}

void Relate(const std::vector<Relation> &relations, size_t wanted) {
  if (results.size() != wanted) {
    std::printf("a call gave no outputs, so that nothing is known of what they have to do with one another\n");
    return;
  }
  for (const Relation &relation : relations) {
    std::printf("%s: %s\n", relation.output, relation.said);
    size_t wrong = 0, place = 0;
    for (const Run &run : relation.runs) {
      for (size_t row = 0; row < run.rows; ++row, ++place) {
        double left = Sum(run.left, row), right = Sum(run.right, row), bound = relation.bounds[place];
        bool alike = left == right || (std::isnan(left) && std::isnan(right));
        if (alike || std::isinf(bound) || std::fabs(left - right) <= bound) continue;
        if (++wrong <= 8) {
          PrintPlace("", relation.output, relation.shape, place);
          std::printf("%s%s%s is %.17g and %.17g, which may be %.3g apart\n", *relation.place ? " (" : "",
                      relation.place, *relation.place ? ")" : "", left, right, bound);
        }
      }
    }
    if (wrong) std::printf("%zu of %zu do not hold\n", wrong, place);
    fault = fault || wrong > 0;
  }
}
"""
