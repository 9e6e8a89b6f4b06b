/* aclnnGeluBackwardV2, in two phases. */
#ifndef ACLNN_CTS_LOOPBACK_ACLNN_GELU_BACKWARD_V2_H
#define ACLNN_CTS_LOOPBACK_ACLNN_GELU_BACKWARD_V2_H

#include "acl/acl_base.h"
#include "aclnn/acl_meta.h"
#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

aclnnStatus aclnnGeluBackwardV2GetWorkspaceSize(const aclTensor *gradOutput, const aclTensor *self,
                                                char *approximate, aclTensor *gradInput, uint64_t *workspaceSize,
                                                aclOpExecutor **executor);
aclnnStatus aclnnGeluBackwardV2(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                                aclrtStream stream);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
