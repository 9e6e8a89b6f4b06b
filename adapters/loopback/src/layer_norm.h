// aclnnLayerNormBackward: arguments, checks and plan.
#pragma once

#include "executor.h"
#include "tensor.h"

namespace loopback {

class LayerNormBackward final : public Operator {
public:
    static constexpr const char *name = "aclnnLayerNormBackward";

    const aclTensor *grad_out;
    const aclTensor *input;
    const aclIntArray *normalized_shape;
    const aclTensor *mean;
    const aclTensor *rstd;
    const aclTensor *weight;
    const aclTensor *bias;
    const aclBoolArray *output_mask;
    // Of the input, the weight and the bias.
    const aclTensor *gradients[3];

    // The gradient of that number, where the mask asks for it.
    const aclTensor *wanted(size_t number) const;

    Request request() const override;
    aclnnStatus check() const override;
    Plan plan() const override;
};

}  // namespace loopback
