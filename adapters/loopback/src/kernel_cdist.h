// out = the sum over the rows of x2 of grad * d * |d|^(p - 2) / cdist^(p - 1) with d = x1 - x2, in FP32, rounded once
// at the end. Equal elements add 0.
#pragma once

#include "plan.h"

namespace loopback {

struct CdistKernel {
    View grad;
    View x1;
    View x2;
    View cdist;
    View out;
    float p;

    void operator()(const Launch &launch) const;
};

}  // namespace loopback
