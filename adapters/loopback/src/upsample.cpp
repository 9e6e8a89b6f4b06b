#include "upsample.h"

#include "aclnnop/aclnn_upsample_nearest_exact1d_backward.h"
#include "fault.h"
#include "kernel_upsample.h"

namespace loopback {

Request UpsampleNearestExact1dBackward::request() const
{
    Request request{name, {grad_output}, {out}, {bits_of(scales)}};
    add_array(request, output_size);
    add_array(request, input_size);
    return request;
}

Plan UpsampleNearestExact1dBackward::plan() const
{
    UpsampleKernel kernel{grad_output->view, out->view, upsample_scale(scales, grad_output->dim(2), out->dim(2)),
                          !grad_output->is_contiguous() || FAULT("upsample.workspace-overrun")};
    kernel.lay_out();
    return {kernel.workspace(), kernel};
}

}  // namespace loopback

using loopback::UpsampleNearestExact1dBackward;

extern "C" {

aclnnStatus aclnnUpsampleNearestExact1dBackwardGetWorkspaceSize(const aclTensor *gradOutput,
                                                                const aclIntArray *outputSizeOptional,
                                                                const aclIntArray *inputSize, double scalesOptional,
                                                                aclTensor *out, uint64_t *workspaceSize,
                                                                aclOpExecutor **executor)
{
    UpsampleNearestExact1dBackward call;
    call.grad_output = gradOutput;
    call.output_size = outputSizeOptional;
    call.input_size = inputSize;
    call.scales = scalesOptional;
    call.out = out;
    return loopback::phase_one(call, workspaceSize, executor);
}

aclnnStatus aclnnUpsampleNearestExact1dBackward(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                                                aclrtStream stream)
{
    return loopback::phase_two(UpsampleNearestExact1dBackward::name, workspace, workspaceSize, executor, stream);
}
}
