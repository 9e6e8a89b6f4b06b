// aclnnSoftmaxBackward: arguments, checks and plan.
#pragma once

#include "executor.h"
#include "tensor.h"

namespace loopback {

class SoftmaxBackward final : public Operator {
public:
    static constexpr const char *name = "aclnnSoftmaxBackward";

    const aclTensor *grad_output;
    const aclTensor *output;
    int64_t dim;
    const aclTensor *out;

    Request request() const override;
    aclnnStatus check() const override;
    Plan plan() const override;
};

}  // namespace loopback
