/* aclnnLeakyReluBackward, in two phases. */
#ifndef ACLNN_CTS_LOOPBACK_ACLNN_LEAKY_RELU_BACKWARD_H
#define ACLNN_CTS_LOOPBACK_ACLNN_LEAKY_RELU_BACKWARD_H

#include "acl/acl_base.h"
#include "aclnn/acl_meta.h"
#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

aclnnStatus aclnnLeakyReluBackwardGetWorkspaceSize(const aclTensor *gradOutput, const aclTensor *self,
                                                   const aclScalar *negativeSlope, bool selfIsResult,
                                                   aclTensor *out, uint64_t *workspaceSize,
                                                   aclOpExecutor **executor);
aclnnStatus aclnnLeakyReluBackward(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                                   aclrtStream stream);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
