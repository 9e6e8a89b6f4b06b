/* Handles and the status type of the operator interface. */
#ifndef ACLNN_CTS_LOOPBACK_ACLNN_BASE_H
#define ACLNN_CTS_LOOPBACK_ACLNN_BASE_H

#include "acl/acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef int32_t aclnnStatus;

typedef struct aclTensor aclTensor;
typedef struct aclScalar aclScalar;
typedef struct aclIntArray aclIntArray;
typedef struct aclFloatArray aclFloatArray;
typedef struct aclBoolArray aclBoolArray;
typedef struct aclTensorList aclTensorList;
typedef struct aclScalarList aclScalarList;
typedef struct aclOpExecutor aclOpExecutor;

aclnnStatus aclnnInit(const char *configPath);
aclnnStatus aclnnFinalize(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
