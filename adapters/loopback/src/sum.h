// Sums in FP32, by blocks: sixteen lanes that are added pairwise at the end.
#pragma once

#include <cstdint>

#include "fault.h"

namespace loopback {

constexpr int64_t lanes = 16;

// The sum of term(0) to term(n - 1).
template <class Term>
float blocked_sum(int64_t n, const Term &term)
{
    if (SHARED("order-by-chance") && odd_launch()) {
        float reversed = 0;
        for (int64_t i = n; i-- > 0;) {
            reversed += term(i);
        }
        return reversed;
    }
    if (n < lanes) {
        float sum = 0;
        for (int64_t i = 0; i < n; ++i) {
            sum += term(i);
        }
        return sum;
    }
    float part[lanes] = {};
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        for (int64_t lane = 0; lane < lanes; ++lane) {
            part[lane] += term(i + lane);
        }
    }
    for (int64_t lane = 0; i < n; ++i, ++lane) {
        part[lane] += term(i);
    }
    for (int64_t width = lanes / 2; width > 0; width /= 2) {
        for (int64_t lane = 0; lane < width; ++lane) {
            part[lane] += part[lane + width];
        }
    }
    return part[0];
}

}  // namespace loopback
