/* aclnnUpsampleNearestExact1dBackward, in two phases. */
#ifndef ACLNN_CTS_LOOPBACK_ACLNN_UPSAMPLE_NEAREST_EXACT1D_BACKWARD_H
#define ACLNN_CTS_LOOPBACK_ACLNN_UPSAMPLE_NEAREST_EXACT1D_BACKWARD_H

#include "acl/acl_base.h"
#include "aclnn/acl_meta.h"
#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

aclnnStatus aclnnUpsampleNearestExact1dBackwardGetWorkspaceSize(const aclTensor *gradOutput,
                                                                const aclIntArray *outputSizeOptional,
                                                                const aclIntArray *inputSize, double scalesOptional,
                                                                aclTensor *out, uint64_t *workspaceSize,
                                                                aclOpExecutor **executor);
aclnnStatus aclnnUpsampleNearestExact1dBackward(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                                                aclrtStream stream);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
