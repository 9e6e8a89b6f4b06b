#include "kernel_activation.h"

#include "dtype.h"
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
    if (!is_complex(out.dtype)) {
        scatter(launch, out_argument, out, result.data());
        return;
    }
    std::vector<Real> parts(2 * result.size());
    for (size_t i = 0; i < result.size(); ++i) {
        parts[2 * i] = result[i];
    }
    scatter(launch, out_argument, real_view(out), parts.data());
}

template <class Real>
void ComplexSigmoidKernel<Real>::operator()(const Launch &launch) const
{
    const View gradients = real_view(broadcast_to(grad_output, out.dims));
    std::vector<Real> result = gathered<Real>(launch, grad_output_argument, gradients);
    const View outputs = real_view(broadcast_to(output, out.dims));
    const std::vector<Real> values = gathered<Real>(launch, self_argument, outputs);
    for (size_t i = 0; i < result.size(); i += 2) {
        const Real re = values[i];
        const Real im = values[i + 1];
        const Real slope_re = (1 - re) * re + im * im;
        const Real slope_im = (1 - re) * im - im * re;
        const Real gradient_re = result[i];
        const Real gradient_im = result[i + 1];
        result[i] = gradient_re * slope_re + gradient_im * slope_im;
        result[i + 1] = gradient_im * slope_re - gradient_re * slope_im;
    }
    scatter(launch, out_argument, real_view(out), result.data());
}

template struct ActivationKernel<float>;
template struct ActivationKernel<double>;
template struct ComplexSigmoidKernel<float>;
template struct ComplexSigmoidKernel<double>;

}  // namespace loopback
