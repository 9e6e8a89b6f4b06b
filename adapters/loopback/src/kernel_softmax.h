// out = output * gradOutput - output * (the sum of output * gradOutput along one axis), in FP32, rounded once at the
// end.
#pragma once

#include "plan.h"

namespace loopback {

struct SoftmaxKernel {
    View grad_output;
    View output;
    View out;
    // The tensor as (outer, length, inner), with the axis in the middle.
    int64_t outer;
    int64_t length;
    int64_t inner;
    Layout layout{};

    // Places the sums in the workspace.
    void lay_out();
    uint64_t workspace() const { return layout.size(); }
    void operator()(const Launch &launch) const;

private:
    void sum_slices(const float *y, const float *g, float *sums) const;
    void subtract(const float *y, float *g, const float *sums) const;
};

}  // namespace loopback
