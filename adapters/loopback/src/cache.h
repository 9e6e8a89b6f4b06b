// Plans of calls that were accepted before, by everything but addresses. A hit is answered without any check.
#pragma once

#include <memory>
#include <string>

#include "executor.h"

namespace loopback {

// The key of a request: names, descriptors, attributes, core counts and the determinism level.
std::string cache_key(const Request &request);
std::shared_ptr<const Plan> find_cached(const std::string &key);
// Keeps a plan; the oldest goes where there are more than ACLNN_CACHE_LIMIT.
void keep_cached(const std::string &key, const std::shared_ptr<const Plan> &plan);

}  // namespace loopback
