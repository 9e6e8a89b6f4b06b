// Elementwise in Real, which is FP32 or FP64, on two tensors that broadcast, rounded once at the end.
#pragma once

#include "plan.h"

namespace loopback {

template <class Real>
struct ActivationKernel {
    View grad_output;
    View self;
    View out;
    Real (*element)(Real gradient, Real value, Real parameter);
    Real parameter;

    void operator()(const Launch &launch) const;
};

// The same of complex numbers, which are computed in components of Real: the gradient times the conjugate slope y (1 - y).
template <class Real>
struct ComplexSigmoidKernel {
    View grad_output;
    View output;
    View out;

    void operator()(const Launch &launch) const;
};

}  // namespace loopback
