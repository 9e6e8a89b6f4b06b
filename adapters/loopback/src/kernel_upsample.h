// Each element of out is the FP32 sum of the elements of gradOutput that it was copied to: those from
// edge(i) = ceil(i * s - 0.5) up to edge(i + 1), s being the factor between the lengths, every step rounded to FP32.
#pragma once

#include <vector>

#include "plan.h"

namespace loopback {

struct UpsampleKernel {
    View grad_output;
    View out;
    float scale;
    bool copies;
    Layout layout{};

    // Places a contiguous copy of the gradient in the workspace where it has gaps.
    void lay_out();
    uint64_t workspace() const { return layout.size(); }
    void operator()(const Launch &launch) const;

private:
    std::vector<int64_t> edges() const;
};

// The factor: what is given, if positive, else the ratio of the lengths.
float upsample_scale(double given, int64_t grad_length, int64_t out_length);

}  // namespace loopback
