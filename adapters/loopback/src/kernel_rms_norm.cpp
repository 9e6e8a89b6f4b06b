#include "kernel_rms_norm.h"

#include <algorithm>

#include "fault.h"
#include "sum.h"
#include "transfer.h"

namespace loopback {
namespace {

enum Argument : size_t { dy_argument, x_argument, rstd_argument, gamma_argument, dx_argument, dgamma_argument };

}  // namespace

void RmsNormKernel::lay_out()
{
    layout.add(static_cast<int64_t>(saturating_product(static_cast<uint64_t>(cores), static_cast<uint64_t>(width))));
}

void RmsNormKernel::operator()(const Launch &launch) const
{
    const Span memory = launch.workspace(workspace());
    const std::vector<float> gradient = gathered(launch, dy_argument, dy);
    const std::vector<float> data = gathered(launch, x_argument, x);
    const std::vector<float> factors = gathered(launch, rstd_argument, rstd);
    compute_dx(launch, gradient.data(), data.data(), factors.data());
    compute_dgamma(launch, gradient.data(), data.data(), factors.data(), floats(memory, 0));
}

void RmsNormKernel::compute_dx(const Launch &launch, const float *gradient, const float *data,
                               const float *factors) const
{
    const std::vector<float> weights = gathered(launch, gamma_argument, gamma);
    std::vector<float> normalised(static_cast<size_t>(width));
    std::vector<float> weighted(static_cast<size_t>(width));
    std::vector<float> result(static_cast<size_t>(dx.numel()));
    const float reciprocal = 1.0F / static_cast<float>(width);
    for (int64_t row = 0; row < rows; ++row) {
        const float factor = factors[row];
        float *h = normalised.data();
        float *g = weighted.data();
        for (int64_t d = 0; d < width; ++d) {
            h[d] = data[row * width + d] * factor;
            g[d] = gradient[row * width + d] * weights[static_cast<size_t>(d)];
        }
        const float mean = blocked_sum(width, [&](int64_t d) { return g[d] * h[d]; }) * reciprocal;
        for (int64_t d = 0; d < width; ++d) {
            result[static_cast<size_t>(row * width + d)] = (g[d] - h[d] * mean) * factor;
        }
    }
    scatter(launch, dx_argument, dx, result.data());
}

void RmsNormKernel::compute_dgamma(const Launch &launch, const float *gradient, const float *data, const float *factors,
                                   float *parts) const
{
    if (!FAULT("rms.sums-not-cleared")) {
        std::fill(parts, parts + cores * width, 0.0F);
    }
    for (int64_t row = 0; row < rows; ++row) {
        float *part = parts + row * cores / rows * width;
        for (int64_t d = 0; d < width; ++d) {
            part[d] += gradient[row * width + d] * (data[row * width + d] * factors[row]);
        }
    }
    std::vector<float> result(static_cast<size_t>(width));
    for (int64_t d = 0; d < width; ++d) {
        result[static_cast<size_t>(d)] = blocked_sum(cores, [&](int64_t core) { return parts[core * width + d]; });
    }
    scatter(launch, dgamma_argument, dgamma, result.data());
}

}  // namespace loopback
