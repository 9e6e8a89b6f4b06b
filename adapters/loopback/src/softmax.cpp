#include "softmax.h"

#include <algorithm>

#include "aclnnop/aclnn_softmax_backward.h"
#include "kernel_softmax.h"

namespace loopback {

Request SoftmaxBackward::request() const
{
    return {name, {grad_output, output}, {out}, {dim}};
}

Plan SoftmaxBackward::plan() const
{
    const Dims &dims = grad_output->dims();
    if (count(dims) == 0) {
        return {};
    }
    SoftmaxKernel kernel{grad_output->view, output->view, out->view, 1, 1, 1};
    if (!dims.empty()) {
        const auto rank = static_cast<int64_t>(dims.size());
        const auto axis = static_cast<size_t>(std::clamp<int64_t>(dim < 0 ? dim + rank : dim, 0, rank - 1));
        kernel.outer = count(dims, 0, axis);
        kernel.length = dims[axis];
        kernel.inner = count(dims, axis + 1, dims.size());
    }
    kernel.lay_out();
    return {kernel.workspace(), kernel};
}

}  // namespace loopback

using loopback::SoftmaxBackward;

extern "C" {

aclnnStatus aclnnSoftmaxBackwardGetWorkspaceSize(const aclTensor *gradOutput, const aclTensor *output, int64_t dim,
                                                 aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    SoftmaxBackward call;
    call.grad_output = gradOutput;
    call.output = output;
    call.dim = dim;
    call.out = out;
    return loopback::phase_one(call, workspaceSize, executor);
}

aclnnStatus aclnnSoftmaxBackward(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream)
{
    return loopback::phase_two(SoftmaxBackward::name, workspace, workspaceSize, executor, stream);
}
}
