// The gradients of a gated recurrent unit, in FP32, each rounded once at the end. From the last step to the first, with g
// the gradient of the hidden state, p the hidden state before the step and a = h_n:
//   n' = g (1 - z) (1 - n n), r' = n' a r (1 - r), z' = g (p - n) z (1 - z)
//   the next g is g z + [z', r', n' r] W_hh
// The gradients of the parameters are sums over all steps and the batch.
#pragma once

#include <vector>

#include "plan.h"

namespace loopback {

// A tensor among the arguments of a launch.
struct Slot {
    size_t argument = 0;
    View view;
};

struct GruKernel {
    Slot input;
    Slot dy;
    Slot dh;
    Slot hx;
    std::vector<Slot> params;
    // r, z, n, h_n and h, each by layer and direction.
    std::vector<Slot> saved[5];
    Slot dx;
    Slot dh_prev;
    std::vector<Slot> dparams;
    // Parameters of a layer and direction.
    size_t each = 0;
    int64_t layers = 0;
    int64_t directions = 0;
    bool batch_first = false;
    int64_t steps = 0;
    int64_t batch = 0;
    int64_t features = 0;
    int64_t hidden = 0;

    void operator()(const Launch &launch) const;
};

}  // namespace loopback
