// The narrow floating-point formats: widening is exact, narrowing rounds to nearest, ties to even, and keeps
// subnormals.
#pragma once

#include <cstdint>
#include <cstring>

namespace loopback {

inline uint32_t bits_of_float(float value)
{
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

inline float float_of_bits(uint32_t bits)
{
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

inline float half_to_float(uint16_t half)
{
    const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
    const uint32_t exponent = (half >> 10) & 0x1F;
    const uint32_t fraction = half & 0x3FF;
    if (exponent == 0x1F) {
        return float_of_bits(sign | 0x7F800000 | fraction << 13);
    }
    if (exponent == 0) {
        const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
        return sign != 0 ? -magnitude : magnitude;
    }
    return float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

inline uint16_t float_to_half(float value)
{
    const uint32_t bits = bits_of_float(value);
    const uint32_t sign = bits >> 16 & 0x8000;
    const uint32_t magnitude = bits & 0x7FFFFFFF;
    constexpr uint32_t infinity = 0x7F800000;
    constexpr uint32_t beyond_largest = 0x477FF000;   // 65520: half way from the largest number to the next
    constexpr uint32_t smallest_normal = 0x38800000;  // 2^-14
    constexpr uint32_t half_smallest = 0x33000000;    // 2^-25: half way from 0 to the smallest subnormal
    uint32_t result = 0;
    if (magnitude > infinity) {
        result = 0x7E00;
    } else if (magnitude >= beyond_largest) {
        result = 0x7C00;
    } else if (magnitude >= smallest_normal) {
        result = (magnitude + 0xFFF + (magnitude >> 13 & 1) - (112U << 23)) >> 13;
    } else if (magnitude > half_smallest) {
        const uint32_t shift = 126 - (magnitude >> 23);
        const uint32_t significand = (magnitude & 0x7FFFFF) | 0x800000;
        const uint32_t rest = significand & ((1U << shift) - 1);
        const uint32_t middle = 1U << (shift - 1);
        result = significand >> shift;
        if (rest > middle || (rest == middle && (result & 1) != 0)) {
            ++result;
        }
    }
    return static_cast<uint16_t>(sign | result);
}

inline float bfloat_to_float(uint16_t bfloat)
{
    return float_of_bits(static_cast<uint32_t>(bfloat) << 16);
}

inline uint16_t float_to_bfloat(float value)
{
    const uint32_t bits = bits_of_float(value);
    if ((bits & 0x7FFFFFFF) > 0x7F800000) {
        return static_cast<uint16_t>(bits >> 16 | 0x40);
    }
    return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

// HF32 as the matrix unit of this generation reads it: eleven bits of the fraction stay, ties go to even.
inline float round_to_hf32(float value)
{
    const uint32_t bits = bits_of_float(value);
    if ((bits & 0x7F800000) == 0x7F800000) {
        return value;
    }
    return float_of_bits((bits + 0x7FF + (bits >> 12 & 1)) & ~uint32_t{0xFFF});
}

}  // namespace loopback
