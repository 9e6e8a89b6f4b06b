// The process's devices, contexts and streams, and the settings that kernels read.
#pragma once

#include <cstdint>
#include <memory>

#include "acl/acl.h"
#include "stream.h"

namespace loopback {

struct Context {
    std::shared_ptr<Device> device;
    std::shared_ptr<Stream> default_stream;
};

// The calling thread's context; null, with a message, where it has none.
std::shared_ptr<Context> current_context(const char *caller);

// The stream behind a handle (null: the default stream of the thread's context); null, with a message, where there is
// none.
std::shared_ptr<Stream> find_stream(aclrtStream handle, const char *caller);

// The determinism level of the process; 0 where it was never set.
int64_t determinism();

}  // namespace loopback
