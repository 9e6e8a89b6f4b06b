// Memory between guards, and how elements are read.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <vector>

#include <unistd.h>

#include "acl/acl.h"

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

// Values by how often each comes in a row.
template <typename T>
struct Equal {
  size_t times;
  T value;
};
template <typename T>
std::vector<T> Repeated(const std::vector<Equal<T>> &runs) {
  std::vector<T> all;
  for (const auto &run : runs) all.insert(all.end(), run.times, run.value);
  return all;
}

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

// E5M2 is the upper half of a half; E4M3FN has one nan and no infinities; E8M0 is a power of two or nan.
double Float8ToDouble(uint8_t bits, int dtype) {
  if (dtype == 35) return HalfToDouble(static_cast<uint16_t>(bits << 8));
  if (dtype == 37) return bits == 255 ? kNan : std::ldexp(1, bits - 127);
  int exponent = (bits >> 3) & 15;
  int fraction = bits & 7;
  double value = (bits & 127) == 127 ? kNan
                 : exponent == 0 ? std::ldexp(fraction, -9)
                                 : std::ldexp(8 + fraction, exponent - 10);
  return bits & 0x80 ? -value : value;
}

// HiFloat8: a sign, a prefix code that says how many exponent bits follow, and the mantissa; without the code a power
// of two. There is one nan, at -0.
double Hifloat8ToDouble(uint8_t bits) {
  int code = bits & 127;
  if (code == 0) return bits ? kNan : 0.0;
  double value;
  if (code < 8) {
    value = std::ldexp(1, code - 23);
  } else {
    int size = code >= 96 ? 4 : code >= 64 ? 3 : code >= 32 ? 2 : code >= 16 ? 1 : 0;
    int fraction_bits = size < 2 ? 3 : 5 - size;
    int field = (code >> fraction_bits) & ((1 << size) - 1);
    int leading = size ? 1 << (size - 1) : 0;
    int exponent = field & leading ? -field : field | leading;
    int fraction = code & ((1 << fraction_bits) - 1);
    value = code == 0x6F ? kInf : std::ldexp((1 << fraction_bits) + fraction, exponent - fraction_bits);
  }
  return bits & 0x80 ? -value : value;
}

double ReadElement(const uint8_t *address, int dtype) {
  uint16_t half;
  float single;
  double wide;
  switch (dtype) {
    case 0: case 16: std::memcpy(&single, address, sizeof single); return single;
    case 1: std::memcpy(&half, address, sizeof half); return HalfToDouble(half);
    case 27: std::memcpy(&half, address, sizeof half); return Bf16ToDouble(half);
    case 34: return Hifloat8ToDouble(*address);
    case 35: case 36: case 37: return Float8ToDouble(*address, dtype);
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
