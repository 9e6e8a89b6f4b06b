/* aclnnGRUBackward, in two phases. */
#ifndef ACLNN_CTS_LOOPBACK_ACLNN_GRU_BACKWARD_H
#define ACLNN_CTS_LOOPBACK_ACLNN_GRU_BACKWARD_H

#include "acl/acl_base.h"
#include "aclnn/acl_meta.h"
#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

aclnnStatus aclnnGRUBackwardGetWorkspaceSize(const aclTensor *input, const aclTensorList *params,
                                             const aclTensorList *hx, const aclTensor *dy, const aclTensor *dh,
                                             const aclTensorList *r, const aclTensorList *z, const aclTensorList *n,
                                             const aclTensorList *h_n, const aclTensorList *h,
                                             const aclTensor *batchSizesOptional, bool hasBias, int64_t numLayers,
                                             bool bidirectional, bool batchFirst, aclTensor *dxOut,
                                             aclTensor *dhPrevOut, aclTensorList *dparamsOut, uint64_t *workspaceSize,
                                             aclOpExecutor **executor);
aclnnStatus aclnnGRUBackward(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
