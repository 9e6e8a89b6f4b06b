#include "shape.h"

#include <algorithm>

namespace loopback {

int64_t count(const Dims &dims, size_t begin, size_t end)
{
    const auto first = dims.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last = dims.begin() + static_cast<std::ptrdiff_t>(end);
    if (std::find(first, last, 0) != last) {
        return 0;
    }
    int64_t product = 1;
    for (auto size = first; size != last; ++size) {
        if (*size < 0) {
            return -1;
        }
        if (__builtin_mul_overflow(product, *size, &product)) {
            product = int64_max;
        }
    }
    return product;
}

int64_t count(const Dims &dims)
{
    return count(dims, 0, dims.size());
}

Dims contiguous_strides(const Dims &dims)
{
    Dims strides(dims.size());
    uint64_t stride = 1;
    for (size_t axis = dims.size(); axis-- > 0;) {
        strides[axis] = static_cast<int64_t>(stride);
        stride *= static_cast<uint64_t>(dims[axis]);
    }
    return strides;
}

bool is_contiguous(const Dims &dims, const Dims &strides)
{
    const Dims expected = contiguous_strides(dims);
    for (size_t axis = 0; axis < dims.size(); ++axis) {
        if (dims[axis] != 1 && strides[axis] != expected[axis]) {
            return count(dims) == 0;
        }
    }
    return true;
}

uint64_t saturating_product(uint64_t a, uint64_t b)
{
    uint64_t product = 0;
    return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<uint64_t>::max() : product;
}

uint64_t saturating_sum(uint64_t a, uint64_t b)
{
    uint64_t sum = 0;
    return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<uint64_t>::max() : sum;
}

std::string to_text(const Dims &dims)
{
    std::string text = "[";
    for (const int64_t size : dims) {
        text += (text.size() > 1 ? ", " : "") + std::to_string(size);
    }
    return text + "]";
}

}  // namespace loopback
