/* aclnnEmbeddingDenseBackward, in two phases. */
#ifndef ACLNN_CTS_LOOPBACK_ACLNN_EMBEDDING_DENSE_BACKWARD_H
#define ACLNN_CTS_LOOPBACK_ACLNN_EMBEDDING_DENSE_BACKWARD_H

#include "acl/acl_base.h"
#include "aclnn/acl_meta.h"
#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

aclnnStatus aclnnEmbeddingDenseBackwardGetWorkspaceSize(const aclTensor *grad, const aclTensor *indices,
                                                        uint64_t numWeights, uint64_t paddingIdx,
                                                        bool scaleGradByFreq, const aclTensor *out,
                                                        uint64_t *workspaceSize, aclOpExecutor **executor);
aclnnStatus aclnnEmbeddingDenseBackward(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                                        aclrtStream stream);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
