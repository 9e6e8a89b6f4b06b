// The aclnnStatus values that this library returns.
#pragma once

#include "aclnn/aclnn_base.h"

namespace loopback {

constexpr aclnnStatus success = 0;
constexpr aclnnStatus param_nullptr = 161001;
constexpr aclnnStatus param_invalid = 161002;
constexpr aclnnStatus runtime_error = 361001;
constexpr aclnnStatus inner_error = 561000;
constexpr aclnnStatus inner_tiling_error = 561002;
constexpr aclnnStatus inner_find_kernel_error = 561003;
constexpr aclnnStatus inner_nullptr = 561103;

}  // namespace loopback
