#include "kernel_activation.h"

#include "transfer.h"

namespace loopback {
namespace {

enum Argument : size_t { grad_output_argument, self_argument, out_argument };

}  // namespace

template <class Real>
void ActivationKernel<Real>::operator()(const Launch &launch) const
{
    std::vector<Real> result = gathered<Real>(launch, grad_output_argument, broadcast_to(grad_output, out.dims));
    const std::vector<Real> values = gathered<Real>(launch, self_argument, broadcast_to(self, out.dims));
    for (size_t i = 0; i < result.size(); ++i) {
        result[i] = element(result[i], values[i], parameter);
    }
    scatter(launch, out_argument, out, result.data());
}

template struct ActivationKernel<float>;
template struct ActivationKernel<double>;

}  // namespace loopback
