#include "rms_norm.h"

#include <algorithm>

#include "aclnnop/aclnn_rms_norm_grad.h"
#include "kernel_rms_norm.h"
#include "product.h"

namespace loopback {

Request RmsNormGrad::request() const
{
    return {name, {dy, x, rstd, gamma}, {dx, dgamma}, {}};
}

Plan RmsNormGrad::plan() const
{
    const int64_t rows = count(x->dims(), 0, x->rank() - gamma->rank());
    RmsNormKernel kernel{dy->view,
                         x->view,
                         rstd->view,
                         gamma->view,
                         dx->view,
                         dgamma->view,
                         rows,
                         gamma->numel(),
                         std::min(rows, std::max<int64_t>(soc()->vector_cores, 1))};
    kernel.lay_out();
    return {kernel.workspace(), kernel};
}

}  // namespace loopback

using loopback::RmsNormGrad;

extern "C" {

aclnnStatus aclnnRmsNormGradGetWorkspaceSize(const aclTensor *dy, const aclTensor *x, const aclTensor *rstd,
                                             const aclTensor *gamma, const aclTensor *dxOut, const aclTensor *dgammaOut,
                                             uint64_t *workspaceSize, aclOpExecutor **executor)
{
    RmsNormGrad call;
    call.dy = dy;
    call.x = x;
    call.rstd = rstd;
    call.gamma = gamma;
    call.dx = dxOut;
    call.dgamma = dgammaOut;
    return loopback::phase_one(call, workspaceSize, executor);
}

aclnnStatus aclnnRmsNormGrad(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream)
{
    return loopback::phase_two(RmsNormGrad::name, workspace, workspaceSize, executor, stream);
}
}
