// The gradients of a normalisation by the root mean square. With x as (rows, d), d the size of gamma, and
// h = x * rstd, g = dy * gamma, all in FP32:
//   dx = (g - h * mean(g * h)) * rstd, the mean over a row, rounded once at the end
//   dgamma = the sum of dy * h over the rows: each core sums its rows, and then the cores' sums are added
#pragma once

#include "plan.h"

namespace loopback {

struct RmsNormKernel {
    View dy;
    View x;
    View rstd;
    View gamma;
    View dx;
    View dgamma;
    int64_t rows;
    int64_t width;
    int64_t cores;
    Layout layout{};

    // Places the cores' sums in the workspace.
    void lay_out();
    uint64_t workspace() const { return layout.size(); }
    void operator()(const Launch &launch) const;

private:
    void compute_dx(const Launch &launch, const float *gradient, const float *data, const float *factors) const;
    void compute_dgamma(const Launch &launch, const float *gradient, const float *data, const float *factors,
                        float *parts) const;
};

}  // namespace loopback
