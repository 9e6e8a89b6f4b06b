// Between tensors as they lie in memory and the FP32, FP64 or index arrays that kernels compute on.
#pragma once

#include <cstdint>
#include <vector>

#include "plan.h"

namespace loopback {

// The elements of a floating tensor in row-major order, widened or rounded to Real: float or double.
template <class Real>
void gather(const Launch &launch, size_t tensor, const View &view, Real *values);
template <class Real = float>
std::vector<Real> gathered(const Launch &launch, size_t tensor, const View &view);

// The view as one of a shape that its own broadcasts to.
View broadcast_to(const View &view, const Dims &dims);

// A complex tensor as a floating one: re and im in a last dimension.
View real_view(const View &view);

// Writes row-major values to a floating tensor, each rounded once to FP32 and narrower. Where the launch saturates, what would be
// infinite becomes the largest finite number of the dtype, and nan becomes 0.
template <class Real>
void scatter(const Launch &launch, size_t tensor, const View &view, const Real *values);

// The elements of an index tensor in row-major order: floating ones truncated, and what fits no int64 as -1.
std::vector<int64_t> gathered_indices(const Launch &launch, size_t tensor, const View &view);

// FP32 to FP16 and back as a cast on the device does it.
float through_half(float value, const Launch &launch);

}  // namespace loopback
