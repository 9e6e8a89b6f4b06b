/* aclnnConvTbcBackward, in two phases. */
#ifndef ACLNN_CTS_LOOPBACK_ACLNN_CONVOLUTION_BACKWARD_H
#define ACLNN_CTS_LOOPBACK_ACLNN_CONVOLUTION_BACKWARD_H

#include "acl/acl_base.h"
#include "aclnn/acl_meta.h"
#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

aclnnStatus aclnnConvTbcBackwardGetWorkspaceSize(const aclTensor *self, const aclTensor *input,
                                                 const aclTensor *weight, const aclTensor *bias, int64_t pad,
                                                 int8_t cubeMathType, aclTensor *gradInput, aclTensor *gradWeight,
                                                 aclTensor *gradBias, uint64_t *workspaceSize,
                                                 aclOpExecutor **executor);
aclnnStatus aclnnConvTbcBackward(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                                 aclrtStream stream);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
