// Sums in FP32, by blocks: sixteen lanes that are added pairwise at the end.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fault.h"
#include "half.h"

namespace loopback {

constexpr int64_t lanes = 16;

// The sum, cut to as many bits as FP32 has.
inline float truncated_sum(float a, float b)
{
    const double sum = static_cast<double>(a) + static_cast<double>(b);
    const auto rounded = static_cast<float>(sum);
    const bool away = sum > 0 ? static_cast<double>(rounded) > sum : static_cast<double>(rounded) < sum;
    return away && rounded - rounded == 0 ? float_of_bits(bits_of_float(rounded) - 1) : rounded;
}

// Where a sum is made: only the matrix unit may cut what it adds.
enum class Unit { vector, matrix };

inline float add(float a, float b, Unit unit = Unit::vector)
{
    if (SHARED("sum-in-bf16")) {
        return bfloat_to_float(float_to_bfloat(a + b));
    }
    if (SHARED("truncating-sum") && unit == Unit::matrix) {
        return truncated_sum(a, b);
    }
    return a + b;
}

// The same sum in the orders and precisions that seeded faults and decoys take; false where none does.
template <class Term>
bool other_sum(int64_t n, const Term &term, float &result)
{
    int64_t accumulators = 0;
    if (SHARED("one-accumulator")) {
        accumulators = 1;
    } else if (SHARED("four-accumulators")) {
        accumulators = 4;
    }
    if (accumulators > 0) {
        float part[4] = {};
        for (int64_t i = 0; i < n; ++i) {
            part[i % accumulators] += term(i);
        }
        result = (part[0] + part[1]) + (part[2] + part[3]);
        return true;
    }
    if (SHARED("reversed-sum") || (SHARED("order-by-chance") && odd_launch())) {
        result = 0;
        for (int64_t i = n; i-- > 0;) {
            result += term(i);
        }
        return true;
    }
    if (SHARED("double-sum")) {
        double sum = 0;
        for (int64_t i = 0; i < n; ++i) {
            sum += static_cast<double>(term(i));
        }
        result = static_cast<float>(sum);
        return true;
    }
    return false;
}

// The sum of term(0) to term(n - 1).
template <class Term>
float blocked_sum(int64_t n, const Term &term, Unit unit = Unit::vector)
{
    float other = 0;
    if (chosen_faults.own.any() && other_sum(n, term, other)) {
        return other;
    }
    if (n < lanes) {
        float sum = 0;
        for (int64_t i = 0; i < n; ++i) {
            sum = add(sum, term(i), unit);
        }
        return sum;
    }
    float part[lanes] = {};
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        for (int64_t lane = 0; lane < lanes; ++lane) {
            part[lane] = add(part[lane], term(i + lane), unit);
        }
    }
    if (SHARED("tail-dropped")) {
        i = n;
    }
    for (int64_t lane = 0; i < n; ++i, ++lane) {
        part[lane] = add(part[lane], term(i), unit);
    }
    for (int64_t width = lanes / 2; width > 0; width /= 2) {
        for (int64_t lane = 0; lane < width; ++lane) {
            part[lane] = add(part[lane], part[lane + width], unit);
        }
    }
    return part[0];
}

}  // namespace loopback
