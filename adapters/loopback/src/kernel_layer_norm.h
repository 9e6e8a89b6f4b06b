// The gradients of a layer normalisation, in FP32, each rounded once at the end. With h = (input - mean) * rstd and
// g = gradOut * weight, row by row:
//   gradInput = (g - mean of g - h * mean of g * h) * rstd
//   gradWeight = the sum of gradOut * h over the rows, gradBias = that of gradOut
#pragma once

#include "plan.h"

namespace loopback {

struct LayerNormKernel {
    View grad_out;
    View input;
    View mean;
    View rstd;
    View weight;
    bool has_weight;
    View gradients[3];
    bool wanted[3];
    int64_t rows;
    int64_t width;

    void operator()(const Launch &launch) const;
};

}  // namespace loopback
