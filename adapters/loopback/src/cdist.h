// aclnnCdistBackward: arguments, checks and plan.
#pragma once

#include "executor.h"
#include "tensor.h"

namespace loopback {

class CdistBackward final : public Operator {
public:
    static constexpr const char *name = "aclnnCdistBackward";

    const aclTensor *grad;
    const aclTensor *x1;
    const aclTensor *x2;
    const aclTensor *cdist;
    float p;
    const aclTensor *out;

    Request request() const override;
    aclnnStatus check() const override;
    Plan plan() const override;
};

}  // namespace loopback
