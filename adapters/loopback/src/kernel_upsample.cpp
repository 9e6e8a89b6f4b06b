#include "kernel_upsample.h"

#include <algorithm>
#include <cmath>

#include "sum.h"
#include "transfer.h"

namespace loopback {
namespace {

enum Argument : size_t { grad_output_argument, out_argument };

}  // namespace

float upsample_scale(double given, int64_t grad_length, int64_t out_length)
{
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
        const float edge = std::ceil(product - 0.5F);
        result.push_back(std::min(static_cast<int64_t>(std::clamp(edge, 0.0F, longest)), grad_output.dims[2]));
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
            result.push_back(blocked_sum(n, [&](int64_t j) { return begin[j]; }));
        }
    }
    scatter(launch, out_argument, out, result.data());
}

}  // namespace loopback
