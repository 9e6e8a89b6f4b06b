// Arithmetic on sizes that a caller may choose freely: nothing here overflows.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace loopback {

using Dims = std::vector<int64_t>;

// For sums and products of a few 64-bit numbers.
__extension__ typedef __int128 Wide;

constexpr int64_t int64_max = std::numeric_limits<int64_t>::max();

// Elements of a shape: 0 where a size is 0, -1 where one is negative (and none is 0), int64_max where they are more.
int64_t count(const Dims &dims, size_t begin, size_t end);
int64_t count(const Dims &dims);

// Strides of a contiguous tensor; they wrap around where a shape is too large to exist.
Dims contiguous_strides(const Dims &dims);
// Whether a view is row major without gaps; strides of dimensions of size 1 do not count.
bool is_contiguous(const Dims &dims, const Dims &strides);

// a * b and a + b, or the largest number.
uint64_t saturating_product(uint64_t a, uint64_t b);
uint64_t saturating_sum(uint64_t a, uint64_t b);

std::string to_text(const Dims &dims);

}  // namespace loopback
