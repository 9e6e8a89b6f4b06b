#include "kernel_rms_norm.h"

#include <algorithm>
#include <cmath>

#include "fault.h"
#include "half.h"
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
    std::vector<float> factors = gathered(launch, rstd_argument, rstd);
    if (FAULT("rms.rstd-in-half")) {
        std::transform(factors.begin(), factors.end(), factors.begin(),
                       [](float factor) { return half_to_float(float_to_half(factor)); });
    }
    if (FAULT("rms.rstd-clamped")) {
        std::transform(factors.begin(), factors.end(), factors.begin(),
                       [](float factor) { return std::min(factor, 100.0F); });
    }
    if (FAULT("rms.rstd-recomputed")) {
        for (int64_t row = 0; row < rows; ++row) {
            const float *x_row = data.data() + row * width;
            const float sum = blocked_sum(width, [&](int64_t d) { return x_row[d] * x_row[d]; });
            factors[static_cast<size_t>(row)] = 1.0F / std::sqrt(sum / static_cast<float>(width) + 1e-6F);
        }
    }
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
    const float reciprocal = 1.0F / static_cast<float>(FAULT("rms.mean-over-rows") ? rows : width);
    for (int64_t row = 0; row < rows; ++row) {
        const float factor = factors[row];
        float *h = normalised.data();
        float *g = weighted.data();
        for (int64_t d = 0; d < width; ++d) {
            h[d] = data[row * width + d] * factor;
            const int64_t place = FAULT("rms.gamma-shifted-by-tile") && d >= 16 ? d - 16 : d;
            g[d] = gradient[row * width + d] * weights[static_cast<size_t>(place)];
        }
        const int64_t summed = FAULT("rms.wide-row-cut") ? std::min<int64_t>(width, 1024) : width;
        const float sum = blocked_sum(summed, [&](int64_t d) { return g[d] * h[d]; });
        float mean = DECOY("rms.divided") ? sum / static_cast<float>(width) : sum * reciprocal;
        if (FAULT("rms.mean-forgotten")) {
            mean = 0;
        } else if (FAULT("rms.sign")) {
            mean = -mean;
        } else if (FAULT("rms.mean-in-half")) {
            mean = half_to_float(float_to_half(mean));
        }
        for (int64_t d = 0; d < width; ++d) {
            float &value = result[static_cast<size_t>(row * width + d)];
            if (FAULT("rms.factor-forgotten")) {
                value = g[d] - h[d] * mean;
            } else if (DECOY("rms.multiplied-out")) {
                value = g[d] * factor - h[d] * mean * factor;
            } else {
                value = (g[d] - h[d] * mean) * factor;
            }
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
    const int64_t last = FAULT("rms.rest-of-rows-dropped") ? rows / cores * cores : rows;
    for (int64_t row = 0; row < last; ++row) {
        float *part = parts + row * cores / rows * width;
        for (int64_t d = 0; d < width; ++d) {
            if (FAULT("rms.dgamma-in-half")) {
                const float term = gradient[row * width + d] * (data[row * width + d] * factors[row]);
                part[d] = half_to_float(float_to_half(part[d] + term));
                continue;
            }
            if (DECOY("rms.dgamma-fma")) {
                part[d] = std::fma(gradient[row * width + d], data[row * width + d] * factors[row], part[d]);
                continue;
            }
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
