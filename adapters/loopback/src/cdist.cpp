#include "cdist.h"

#include "aclnnop/aclnn_cdist_backward.h"
#include "kernel_cdist.h"

namespace loopback {

Request CdistBackward::request() const
{
    return {name, {grad, x1, x2, cdist}, {out}, {bits_of(p)}};
}

Plan CdistBackward::plan() const
{
    if (out->numel() == 0) {
        return {};
    }
    return {0, CdistKernel{grad->view, x1->view, x2->view, cdist->view, out->view, p}};
}

}  // namespace loopback

using loopback::CdistBackward;

extern "C" {

aclnnStatus aclnnCdistBackwardGetWorkspaceSize(const aclTensor *grad, const aclTensor *x1, const aclTensor *x2,
                                               const aclTensor *cdist, float p, aclTensor *out, uint64_t *workspaceSize,
                                               aclOpExecutor **executor)
{
    CdistBackward call;
    call.grad = grad;
    call.x1 = x1;
    call.x2 = x2;
    call.cdist = cdist;
    call.p = p;
    call.out = out;
    return loopback::phase_one(call, workspaceSize, executor);
}

aclnnStatus aclnnCdistBackward(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream)
{
    return loopback::phase_two(CdistBackward::name, workspace, workspaceSize, executor, stream);
}
}
