// aclnnUpsampleNearestExact1dBackward: arguments, checks and plan.
#pragma once

#include "executor.h"
#include "tensor.h"

namespace loopback {

class UpsampleNearestExact1dBackward final : public Operator {
public:
    static constexpr const char *name = "aclnnUpsampleNearestExact1dBackward";

    const aclTensor *grad_output;
    const aclIntArray *output_size;
    const aclIntArray *input_size;
    double scales;
    const aclTensor *out;

    Request request() const override;
    aclnnStatus check() const override;
    Plan plan() const override;
};

}  // namespace loopback
