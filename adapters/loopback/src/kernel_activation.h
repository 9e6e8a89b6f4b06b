// Elementwise in FP32 on two tensors that broadcast, rounded once at the end.
#pragma once

#include "plan.h"

namespace loopback {

struct ActivationKernel {
    View grad_output;
    View self;
    View out;
    float (*element)(float gradient, float value, float parameter);
    float parameter;

    void operator()(const Launch &launch) const;
};

}  // namespace loopback
