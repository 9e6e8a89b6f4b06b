#include "embedding.h"

#include "aclnnop/aclnn_embedding_dense_backward.h"
#include "kernel_embedding.h"

namespace loopback {

Request EmbeddingDenseBackward::request() const
{
    return {name,
            {grad, indices},
            {out},
            {static_cast<int64_t>(num_weights), static_cast<int64_t>(padding_idx), int64_t{scale_grad_by_freq}}};
}

Plan EmbeddingDenseBackward::plan() const
{
    // A negative number in the uint64_t is beyond every table, and so is whatever names no row.
    const int64_t padding = padding_idx < num_weights ? static_cast<int64_t>(padding_idx) : -1;
    EmbeddingKernel kernel{grad->view, indices->view, out->view, padding, scale_grad_by_freq};
    kernel.lay_out();
    return {kernel.workspace(), kernel};
}

}  // namespace loopback

using loopback::EmbeddingDenseBackward;

extern "C" {

aclnnStatus aclnnEmbeddingDenseBackwardGetWorkspaceSize(const aclTensor *grad, const aclTensor *indices,
                                                        uint64_t numWeights, uint64_t paddingIdx, bool scaleGradByFreq,
                                                        const aclTensor *out, uint64_t *workspaceSize,
                                                        aclOpExecutor **executor)
{
    EmbeddingDenseBackward call;
    call.grad = grad;
    call.indices = indices;
    call.num_weights = numWeights;
    call.padding_idx = paddingIdx;
    call.scale_grad_by_freq = scaleGradByFreq;
    call.out = out;
    return loopback::phase_one(call, workspaceSize, executor);
}

aclnnStatus aclnnEmbeddingDenseBackward(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                                        aclrtStream stream)
{
    return loopback::phase_two(EmbeddingDenseBackward::name, workspace, workspaceSize, executor, stream);
}
}
