// The gradients of a convolution over time, batch and channels.
//
// With To = T + 2 pad + 1 - L; self (To, B, Co), input (T, B, Ci), weight (L, Ci, Co):
//   gradInput[t, b, i]  = sum over k, o of self[t + pad - k, b, o] weight[k, i, o]
//   gradWeight[k, i, o] = sum over b, u of input[u + k - pad, b, i] self[u, b, o]
//   gradBias[o]         = sum over u, b of self[u, b, o]
// where what lies outside the tensors counts as 0. The first two are products of the matrix unit: operands rounded to
// the mode's format, FP32 sums. The third is a plain sum of self as it is stored.
#pragma once

#include "conv_tbc.h"
#include "plan.h"

namespace loopback {

struct ConvTbcKernel {
    View self;
    View input;
    View weight;
    View grad_input;
    View grad_weight;
    View grad_bias;
    int64_t pad;
    Operand operand;
    Layout layout{};
    uint64_t self_at = 0;
    uint64_t input_at = 0;
    uint64_t weight_at = 0;
    uint64_t total_at = 0;
    uint64_t block_at = 0;

    // Places the rounded operands and the sums of one kernel position in the workspace.
    void lay_out();
    uint64_t workspace() const { return layout.size(); }
    void operator()(const Launch &launch) const;

private:
    int64_t batch() const { return input.dims[1]; }
    int64_t channels_in() const { return input.dims[2]; }
    int64_t channels_out() const { return weight.dims[2]; }

    void round_operands(const Launch &launch, float *values, int64_t n) const;
    void compute_grad_input(const Launch &launch, const float *gradient, const float *kernel) const;
    void compute_grad_weight(const Launch &launch, const float *gradient, const float *data, float *total,
                             float *block) const;
    void compute_grad_bias(const Launch &launch, const float *gradient) const;
};

}  // namespace loopback
