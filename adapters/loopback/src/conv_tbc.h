// aclnnConvTbcBackward: arguments, checks and plan.
#pragma once

#include "executor.h"
#include "tensor.h"

namespace loopback {

class ConvTbcBackward final : public Operator {
public:
    static constexpr const char *name = "aclnnConvTbcBackward";

    const aclTensor *self;
    const aclTensor *input;
    const aclTensor *weight;
    const aclTensor *bias;
    int64_t pad;
    int8_t cube_math_type;
    const aclTensor *grad_input;
    const aclTensor *grad_weight;
    const aclTensor *grad_bias;

    Request request() const override;
    aclnnStatus check() const override;
    Plan plan() const override;
};

// The values of cubeMathType.
enum CubeMathType : int8_t { keep_dtype = 0, allow_fp32_down_precision = 1, use_fp16 = 2, use_hf32 = 3 };

// The format to which the matrix unit's operands are rounded.
enum class Operand { as_stored, fp16, hf32 };

// What the mode promises for a dtype on this chip.
Operand operand_of(int32_t dtype, int8_t cube_math_type);

}  // namespace loopback
