/* The runtime's C interface, as programs include it. */
#ifndef ACLNN_CTS_LOOPBACK_ACL_H
#define ACLNN_CTS_LOOPBACK_ACL_H

#include "acl/acl_base.h"
#include "acl/acl_rt.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

aclError aclInit(const char *configPath);
aclError aclFinalize(void);
aclError aclFinalizeReference(uint64_t *refCount);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
