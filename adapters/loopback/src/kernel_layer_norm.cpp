#include "kernel_layer_norm.h"

#include "sum.h"
#include "transfer.h"

namespace loopback {
namespace {

enum Argument : size_t { grad_out_argument, input_argument, mean_argument, rstd_argument, weight_argument };
constexpr size_t first_gradient = 6;

}  // namespace

void LayerNormKernel::operator()(const Launch &launch) const
{
    const std::vector<float> g = gathered(launch, grad_out_argument, grad_out);
    std::vector<float> h = gathered(launch, input_argument, input);
    const std::vector<float> means = gathered(launch, mean_argument, mean);
    const std::vector<float> factors = gathered(launch, rstd_argument, rstd);
    for (int64_t row = 0; row < rows; ++row) {
        for (int64_t d = row * width; d < (row + 1) * width; ++d) {
            h[static_cast<size_t>(d)] = (h[static_cast<size_t>(d)] - means[static_cast<size_t>(row)])
                                        * factors[static_cast<size_t>(row)];
        }
    }
    if (wanted[0]) {
        const std::vector<float> weights = has_weight ? gathered(launch, weight_argument, weight)
                                                      : std::vector<float>(static_cast<size_t>(width), 1.0F);
        std::vector<float> result(g.size());
        for (int64_t row = 0; row < rows; ++row) {
            const float *normal = h.data() + row * width;
            float *value = result.data() + row * width;
            for (int64_t d = 0; d < width; ++d) {
                value[d] = g[static_cast<size_t>(row * width + d)] * weights[static_cast<size_t>(d)];
            }
            const float offset = blocked_sum(width, [&](int64_t d) { return value[d]; }) / static_cast<float>(width);
            const float slope =
                blocked_sum(width, [&](int64_t d) { return value[d] * normal[d]; }) / static_cast<float>(width);
            for (int64_t d = 0; d < width; ++d) {
                value[d] = (value[d] - offset - normal[d] * slope) * factors[static_cast<size_t>(row)];
            }
        }
        scatter(launch, first_gradient, gradients[0], result.data());
    }
    for (size_t number = 1; number < 3; ++number) {
        if (!wanted[number]) {
            continue;
        }
        std::vector<float> result(static_cast<size_t>(width));
        for (int64_t d = 0; d < width; ++d) {
            result[static_cast<size_t>(d)] = blocked_sum(rows, [&](int64_t row) {
                const auto place = static_cast<size_t>(row * width + d);
                return number == 1 ? g[place] * h[place] : g[place];
            });
        }
        scatter(launch, first_gradient + number, gradients[number], result.data());
    }
}

}  // namespace loopback
