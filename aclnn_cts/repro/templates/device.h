// Memory on the device, and outputs held to what conforms.
#pragma once
#include "prelude.h"

struct Memory {
  void *base = nullptr;  // of the allocation: guard, storage, guard
  size_t bytes = 0, guard = 0;
  bool given = false;  // whether the call was given contents
  std::vector<uint8_t> before;

  void *Address() const { return base == nullptr ? nullptr : static_cast<uint8_t *>(base) + guard; }

  int Allocate(const void *data, size_t size, size_t around) {
    bytes = size;
    guard = around;
    given = data != nullptr;
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
    if (!memory.given && std::vector<uint8_t>(got, got + size) == std::vector<uint8_t>(size, kFill)) ++unwritten;
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
