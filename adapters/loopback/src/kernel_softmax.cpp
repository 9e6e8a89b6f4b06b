#include "kernel_softmax.h"

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
            *sums++ = blocked_sum(length, [&](int64_t k) { return y[begin + k * inner] * g[begin + k * inner]; });
        }
    }
}

void SoftmaxKernel::subtract(const float *y, float *g, const float *sums) const
{
    for (int64_t o = 0; o < outer; ++o, sums += inner) {
        for (int64_t k = 0; k < length; ++k) {
            for (int64_t i = 0; i < inner; ++i, ++y, ++g) {
                *g = *y * *g - *y * sums[i];
            }
        }
    }
}

}  // namespace loopback
