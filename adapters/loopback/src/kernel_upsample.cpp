#include "kernel_upsample.h"

#include <algorithm>
#include <cmath>

#include "fault.h"
#include "half.h"
#include "sum.h"
#include "transfer.h"

namespace loopback {
namespace {

enum Argument : size_t { grad_output_argument, out_argument };

}  // namespace

float upsample_scale(double given, int64_t grad_length, int64_t out_length)
{
    if (FAULT("upsample.scale-ignored")) {
        given = 0;
    } else if (FAULT("upsample.scale-inverted") && given > 0) {
        given = 1 / given;
    }
    if (FAULT("upsample.scale-in-half")) {
        const double factor = given > 0 ? given : static_cast<double>(grad_length) / static_cast<double>(out_length);
        return half_to_float(float_to_half(static_cast<float>(factor)));
    }
    return given > 0 ? static_cast<float>(given) : static_cast<float>(grad_length) / static_cast<float>(out_length);
}

void UpsampleKernel::lay_out()
{
    layout.add(copies ? grad_output.numel() : 0);
}

std::vector<int64_t> UpsampleKernel::edges() const
{
    const auto longest = static_cast<float>(grad_output.dims[2]);
    std::vector<int64_t> result;
    for (int64_t i = 0; i <= out.dims[2]; ++i) {
        const float product = static_cast<float>(i) * scale;
        float edge = std::ceil(product - 0.5F);
        if (FAULT("upsample.tie-to-the-right")) {
            edge = std::floor(product + 0.5F);
        } else if (FAULT("upsample.not-exact")) {
            edge = std::ceil(product);
        }
        result.push_back(std::min(static_cast<int64_t>(std::clamp(edge, 0.0F, longest)), grad_output.dims[2]));
    }
    if (FAULT("upsample.last-edge-off-by-one") && grad_output.dims[2] > 1) {
        result.back() = std::max(result.back() - 1, result[result.size() - 2]);
    }
    return result;
}

void UpsampleKernel::operator()(const Launch &launch) const
{
    Span memory;
    std::vector<float> local;
    const float *gradient = nullptr;
    if (copies) {
        memory = launch.workspace(workspace());
        gather(launch, grad_output_argument, grad_output, floats(memory, 0));
        gradient = floats(memory, 0);
    } else {
        local = gathered(launch, grad_output_argument, grad_output);
        gradient = local.data();
    }
    const std::vector<int64_t> bounds = edges();
    std::vector<float> result;
    result.reserve(static_cast<size_t>(out.numel()));
    const int64_t last_row = out.dims[0] * out.dims[1];
    for (int64_t row = 0; row < last_row; ++row, gradient += grad_output.dims[2]) {
        for (size_t i = 0; i + 1 < bounds.size(); ++i) {
            const float *begin = gradient + bounds[i];
            const int64_t n = bounds[i + 1] - bounds[i];
            result.push_back(blocked_sum(n, [&](int64_t j) { return begin[j]; }, Unit::matrix));
            if (FAULT("upsample.averaged") && n > 0) {
                result.back() /= static_cast<float>(n);
            } else if (FAULT("upsample.first-alone") && n > 0) {
                result.back() = begin[0];
            } else if (FAULT("upsample.negated")) {
                result.back() = -result.back();
            } else if (FAULT("upsample.nothing-repeated") && n == 0) {
                result.back() = gradient[std::min(bounds[i], grad_output.dims[2] - 1)];
            } else if (FAULT("upsample.rest-of-rows-dropped") && last_row > 8 && row >= last_row / 8 * 8) {
                result.back() = 0;
            }
        }
    }
    scatter(launch, out_argument, out, result.data());
}

}  // namespace loopback
