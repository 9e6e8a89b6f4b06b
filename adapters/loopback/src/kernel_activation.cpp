#include "kernel_activation.h"

#include "transfer.h"

namespace loopback {
namespace {

enum Argument : size_t { grad_output_argument, self_argument, out_argument };

}  // namespace

void ActivationKernel::operator()(const Launch &launch) const
{
    std::vector<float> result = gathered(launch, grad_output_argument, broadcast_to(grad_output, out.dims));
    const std::vector<float> values = gathered(launch, self_argument, broadcast_to(self, out.dims));
    for (size_t i = 0; i < result.size(); ++i) {
        result[i] = element(result[i], values[i], parameter);
    }
    scatter(launch, out_argument, out, result.data());
}

}  // namespace loopback
