// aclnnEmbeddingDenseBackward: arguments, checks and plan.
#pragma once

#include "executor.h"
#include "tensor.h"

namespace loopback {

class EmbeddingDenseBackward final : public Operator {
public:
    static constexpr const char *name = "aclnnEmbeddingDenseBackward";

    const aclTensor *grad;
    const aclTensor *indices;
    uint64_t num_weights;
    uint64_t padding_idx;
    bool scale_grad_by_freq;
    const aclTensor *out;

    Request request() const override;
    aclnnStatus check() const override;
    Plan plan() const override;
};

}  // namespace loopback
