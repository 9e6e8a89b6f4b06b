/* aclnnCdistBackward, in two phases. */
#ifndef ACLNN_CTS_LOOPBACK_ACLNN_CDIST_BACKWARD_H
#define ACLNN_CTS_LOOPBACK_ACLNN_CDIST_BACKWARD_H

#include "acl/acl_base.h"
#include "aclnn/acl_meta.h"
#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

aclnnStatus aclnnCdistBackwardGetWorkspaceSize(const aclTensor *grad, const aclTensor *x1, const aclTensor *x2,
                                               const aclTensor *cdist, float p, aclTensor *out, uint64_t *workspaceSize,
                                               aclOpExecutor **executor);
aclnnStatus aclnnCdistBackward(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
