#include "kernel_softmax.h"

#include <cmath>

#include "fault.h"
#include "half.h"
#include "sum.h"
#include "transfer.h"

namespace loopback {
namespace {

enum Argument : size_t { grad_output_argument, output_argument, out_argument };

}  // namespace

void SoftmaxKernel::lay_out()
{
    layout.add(static_cast<int64_t>(saturating_product(static_cast<uint64_t>(outer), static_cast<uint64_t>(inner))));
}

void SoftmaxKernel::operator()(const Launch &launch) const
{
    const Span memory = launch.workspace(workspace());
    float *sums = floats(memory, 0);
    std::vector<float> g = gathered(launch, grad_output_argument, grad_output);
    const std::vector<float> y = gathered(launch, output_argument, output);
    sum_slices(y.data(), g.data(), sums);
    subtract(y.data(), g.data(), sums);
    scatter(launch, out_argument, out, g.data());
}

void SoftmaxKernel::sum_slices(const float *y, const float *g, float *sums) const
{
    for (int64_t o = 0; o < outer; ++o) {
        for (int64_t i = 0; i < inner; ++i) {
            const int64_t begin = o * length * inner + i;
            const auto product = [&](int64_t k) { return y[begin + k * inner] * g[begin + k * inner]; };
            if (DECOY("softmax.fma")) {
                float sum = 0;
                for (int64_t k = 0; k < length; ++k) {
                    sum = std::fma(y[begin + k * inner], g[begin + k * inner], sum);
                }
                *sums++ = sum;
            } else if (FAULT("softmax.product-in-half")) {
                *sums++ = blocked_sum(length, [&](int64_t k) { return half_to_float(float_to_half(product(k))); });
            } else if (FAULT("softmax.zeros-skipped")) {
                *sums++ = blocked_sum(length, [&](int64_t k) { return y[begin + k * inner] == 0 ? 0 : product(k); });
            } else if (FAULT("softmax.first-term-twice")) {
                *sums++ = blocked_sum(length, product) + product(0);
            } else {
                *sums++ = blocked_sum(length, product);
            }
        }
    }
}

void SoftmaxKernel::subtract(const float *y, float *g, const float *sums) const
{
    for (int64_t o = 0; o < outer; ++o, sums += inner) {
        for (int64_t k = 0; k < length; ++k) {
            for (int64_t i = 0; i < inner; ++i, ++y, ++g) {
                if (FAULT("softmax.sum-forgotten")) {
                    *g = *y * *g;
                } else if (FAULT("softmax.sign")) {
                    *g = *y * sums[i] - *y * *g;
                } else if (FAULT("softmax.output-not-multiplied")) {
                    *g = *y * *g - sums[i];
                } else if (FAULT("softmax.squared-output")) {
                    *g = *y * *g - *y * *y * sums[i];
                } else if (DECOY("softmax.factored")) {
                    *g = *y * (*g - sums[i]);
                } else {
                    *g = *y * *g - *y * sums[i];
                }
            }
        }
    }
}

}  // namespace loopback
