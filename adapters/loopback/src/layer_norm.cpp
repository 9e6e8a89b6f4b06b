#include "layer_norm.h"

#include "aclnnop/aclnn_layer_norm_backward.h"
#include "kernel_layer_norm.h"

namespace loopback {

const aclTensor *LayerNormBackward::wanted(size_t number) const
{
    const bool asked = output_mask != nullptr && number < output_mask->values.size() && output_mask->values[number];
    return asked ? gradients[number] : nullptr;
}

Request LayerNormBackward::request() const
{
    Request request{name, {grad_out, input, mean, rstd, weight, bias}, {wanted(0), wanted(1), wanted(2)}, {}};
    for (size_t number = 0; number < 3; ++number) {
        request.excluded.push_back(wanted(number) == nullptr ? gradients[number] : nullptr);
    }
    add_array(request, normalized_shape);
    add_array(request, output_mask);
    return request;
}

Plan LayerNormBackward::plan() const
{
    const size_t leading = input->rank() - normalized_shape->values.size();
    LayerNormKernel kernel{grad_out->view, input->view, mean->view, rstd->view, {}, false, {}, {}, 0, 0};
    if (weight != nullptr) {
        kernel.weight = weight->view;
        kernel.has_weight = true;
    }
    for (size_t number = 0; number < 3; ++number) {
        if (const aclTensor *gradient = wanted(number)) {
            kernel.gradients[number] = gradient->view;
            kernel.wanted[number] = true;
        }
    }
    kernel.rows = count(input->dims(), 0, leading);
    kernel.width = count(input->dims(), leading, input->rank());
    return {0, kernel};
}

}  // namespace loopback

using loopback::LayerNormBackward;

extern "C" {

aclnnStatus aclnnLayerNormBackwardGetWorkspaceSize(const aclTensor *gradOut, const aclTensor *input,
                                                   const aclIntArray *normalizedShape, const aclTensor *mean,
                                                   const aclTensor *rstd, const aclTensor *weightOptional,
                                                   const aclTensor *biasOptional, const aclBoolArray *outputMask,
                                                   aclTensor *gradInputOut, aclTensor *gradWeightOut,
                                                   aclTensor *gradBiasOut, uint64_t *workspaceSize,
                                                   aclOpExecutor **executor)
{
    LayerNormBackward call;
    call.grad_out = gradOut;
    call.input = input;
    call.normalized_shape = normalizedShape;
    call.mean = mean;
    call.rstd = rstd;
    call.weight = weightOptional;
    call.bias = biasOptional;
    call.output_mask = outputMask;
    call.gradients[0] = gradInputOut;
    call.gradients[1] = gradWeightOut;
    call.gradients[2] = gradBiasOut;
    return loopback::phase_one(call, workspaceSize, executor);
}

aclnnStatus aclnnLayerNormBackward(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                                   aclrtStream stream)
{
    return loopback::phase_two(LayerNormBackward::name, workspace, workspaceSize, executor, stream);
}
}
