/* aclnnRmsNormGrad, in two phases. */
#ifndef ACLNN_CTS_LOOPBACK_ACLNN_RMS_NORM_GRAD_H
#define ACLNN_CTS_LOOPBACK_ACLNN_RMS_NORM_GRAD_H

#include "acl/acl_base.h"
#include "aclnn/acl_meta.h"
#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

aclnnStatus aclnnRmsNormGradGetWorkspaceSize(const aclTensor *dy, const aclTensor *x, const aclTensor *rstd,
                                             const aclTensor *gamma, const aclTensor *dxOut,
                                             const aclTensor *dgammaOut, uint64_t *workspaceSize,
                                             aclOpExecutor **executor);
aclnnStatus aclnnRmsNormGrad(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
