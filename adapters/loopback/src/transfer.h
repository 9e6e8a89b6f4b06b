// Between tensors as they lie in memory and the FP32 or index arrays that kernels compute on.
#pragma once

#include <cstdint>
#include <vector>

#include "plan.h"

namespace loopback {

// The elements of a floating tensor in row-major order, widened or (DOUBLE) rounded to FP32.
void gather(const Launch &launch, size_t tensor, const View &view, float *values);
std::vector<float> gathered(const Launch &launch, size_t tensor, const View &view);

// The view as one of a shape that its own broadcasts to.
View broadcast_to(const View &view, const Dims &dims);

// Writes row-major FP32 values to a floating tensor, each rounded once. Where the launch saturates, what would be
// infinite becomes the largest finite number of the dtype, and nan becomes 0.
void scatter(const Launch &launch, size_t tensor, const View &view, const float *values);

// The elements of an index tensor in row-major order: floating ones truncated, and what fits no int64 as -1.
std::vector<int64_t> gathered_indices(const Launch &launch, size_t tensor, const View &view);

// FP32 to FP16 and back as a cast on the device does it.
float through_half(float value, const Launch &launch);

}  // namespace loopback
