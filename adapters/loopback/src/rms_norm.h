// aclnnRmsNormGrad: arguments, checks and plan.
#pragma once

#include "executor.h"
#include "tensor.h"

namespace loopback {

class RmsNormGrad final : public Operator {
public:
    static constexpr const char *name = "aclnnRmsNormGrad";

    const aclTensor *dy;
    const aclTensor *x;
    const aclTensor *rstd;
    const aclTensor *gamma;
    const aclTensor *dx;
    const aclTensor *dgamma;

    Path path() const override { return Path::individual; }
    Request request() const override;
    aclnnStatus check() const override;
    Plan plan() const override;
};

}  // namespace loopback
