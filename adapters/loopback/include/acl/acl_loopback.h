/* What the software device has beyond the documented interface. */
#ifndef ACLNN_CTS_LOOPBACK_ACL_LOOPBACK_H
#define ACLNN_CTS_LOOPBACK_ACL_LOOPBACK_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* The seeded faults and decoys that ACLNN_LOOPBACK_FAULT may name, one by one from index 0 on; then a null pointer. */
const char *aclLoopbackFaultId(size_t index);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
