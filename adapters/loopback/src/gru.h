// aclnnGRUBackward: arguments, checks and plan.
#pragma once

#include "executor.h"
#include "tensor.h"

namespace loopback {

class GruBackward final : public Operator {
public:
    static constexpr const char *name = "aclnnGRUBackward";

    const aclTensor *input;
    const aclTensorList *params;
    const aclTensorList *hx;
    const aclTensor *dy;
    const aclTensor *dh;
    // r, z, n, h_n and h.
    const aclTensorList *saved[5];
    const aclTensor *batch_sizes;
    bool has_bias;
    int64_t layers;
    bool bidirectional;
    bool batch_first;
    const aclTensor *dx;
    const aclTensor *dh_prev;
    const aclTensorList *dparams;

    int64_t directions() const { return bidirectional ? 2 : 1; }
    // Parameters of a layer and direction.
    int64_t each() const { return has_bias ? 4 : 2; }

    Request request() const override;
    aclnnStatus check() const override;
    Plan plan() const override;
};

}  // namespace loopback
