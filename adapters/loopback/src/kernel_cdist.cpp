#include "kernel_cdist.h"

#include <cmath>

#include "sum.h"
#include "transfer.h"

namespace loopback {
namespace {

enum Argument : size_t { grad_argument, x1_argument, x2_argument, cdist_argument, out_argument };

float term(float gradient, float difference, float distance, float p)
{
    // A power of 0 has no value where p is below 1, and with an exponent of 0 that of nan would be 1.
    const bool is_kept = difference == 0 || std::isnan(difference);
    const float power = is_kept ? difference : std::copysign(std::pow(std::fabs(difference), p - 1), difference);
    return gradient * (power / std::pow(distance, p - 1));
}

}  // namespace

void CdistKernel::operator()(const Launch &launch) const
{
    const size_t rank = grad.dims.size();
    const int64_t rows = grad.dims[rank - 2];
    const int64_t others = grad.dims[rank - 1];
    const int64_t columns = x1.dims[rank - 1];
    Dims pairs = grad.dims;
    pairs[rank - 2] = others;
    pairs[rank - 1] = columns;
    const std::vector<float> gradients = gathered(launch, grad_argument, grad);
    const std::vector<float> left = gathered(launch, x1_argument, x1);
    const std::vector<float> right = gathered(launch, x2_argument, broadcast_to(x2, pairs));
    const std::vector<float> distances = gathered(launch, cdist_argument, cdist);
    std::vector<float> result(left.size());
    for (size_t at = 0; at < result.size(); ++at) {
        const auto row = static_cast<int64_t>(at) / columns;
        const int64_t column = static_cast<int64_t>(at) % columns;
        const float *other = right.data() + row / rows * others * columns + column;
        const float *gradient = gradients.data() + row * others;
        const float *distance = distances.data() + row * others;
        result[at] = blocked_sum(
            others, [&](int64_t q) { return term(gradient[q], left[at] - other[q * columns], distance[q], p); });
    }
    scatter(launch, out_argument, out, result.data());
}

}  // namespace loopback
