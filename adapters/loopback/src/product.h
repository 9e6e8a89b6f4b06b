// Which chip the library stands in for: chosen by ACLNN_LOOPBACK_SOC when it is first asked, and never again.
#pragma once

#include <cstdint>

namespace loopback {

enum class Product { inference, training, a2 };

struct Soc {
    const char *name;
    Product product;
    int64_t arch;
    int64_t ai_cores;
    int64_t cube_cores;
    int64_t vector_cores;  // 0 where they are part of the AI cores and not counted apart

    bool has_bf16() const { return product == Product::a2; }
    bool saturates_only() const { return product != Product::a2; }
    // Whether the matrix unit multiplies FP32 and HF32 operands.
    bool cube_has_fp32() const { return product == Product::a2; }
};

// Null, with a message, where ACLNN_LOOPBACK_SOC names no chip that is known here.
const Soc *soc();

}  // namespace loopback
