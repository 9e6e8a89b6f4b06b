#include "conv_tbc.h"

#include "aclnnop/aclnn_convolution_backward.h"
#include "kernel_conv_tbc.h"
#include "product.h"

namespace loopback {

Request ConvTbcBackward::request() const
{
    return {name, {self, input, weight, bias}, {grad_input, grad_weight, grad_bias}, {pad, cube_math_type}};
}

Operand operand_of(int32_t dtype, int8_t cube_math_type)
{
    if (dtype == ACL_FLOAT16 || cube_math_type == keep_dtype) {
        return Operand::as_stored;
    }
    if (cube_math_type == use_fp16 || (dtype == ACL_FLOAT && !soc()->cube_has_fp32())) {
        return Operand::fp16;
    }
    return dtype == ACL_FLOAT ? Operand::hf32 : Operand::as_stored;
}

Plan ConvTbcBackward::plan() const
{
    ConvTbcKernel kernel{self->view,        input->view,     weight->view, grad_input->view,
                         grad_weight->view, grad_bias->view, pad,          operand_of(self->dtype(), cube_math_type)};
    kernel.lay_out();
    return {kernel.workspace(), kernel};
}

}  // namespace loopback

using loopback::ConvTbcBackward;

extern "C" {

aclnnStatus aclnnConvTbcBackwardGetWorkspaceSize(const aclTensor *self, const aclTensor *input, const aclTensor *weight,
                                                 const aclTensor *bias, int64_t pad, int8_t cubeMathType,
                                                 aclTensor *gradInput, aclTensor *gradWeight, aclTensor *gradBias,
                                                 uint64_t *workspaceSize, aclOpExecutor **executor)
{
    ConvTbcBackward call;
    call.self = self;
    call.input = input;
    call.weight = weight;
    call.bias = bias;
    call.pad = pad;
    call.cube_math_type = cubeMathType;
    call.grad_input = gradInput;
    call.grad_weight = gradWeight;
    call.grad_bias = gradBias;
    return loopback::phase_one(call, workspaceSize, executor);
}

aclnnStatus aclnnConvTbcBackward(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream)
{
    return loopback::phase_two(ConvTbcBackward::name, workspace, workspaceSize, executor, stream);
}
}
