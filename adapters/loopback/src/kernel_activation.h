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

}  // namespace loopback
