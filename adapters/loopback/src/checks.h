// What the operators' checks have in common. Each function says whether it holds, and keeps a message where it does
// not.
#pragma once

#include <initializer_list>
#include <string>

#include "product.h"
#include "status.h"
#include "tensor.h"

namespace loopback {

struct Named {
    const char *name;
    const aclTensor *tensor;
};

using Numbers = std::initializer_list<int32_t>;

// Keeps the message and gives false.
bool refuse(const char *operation, const std::string &message);

// The status of a check that held or did not.
inline aclnnStatus status_of(bool holds, aclnnStatus otherwise)
{
    return holds ? success : otherwise;
}

// One check of a call, and the status where it does not hold.
template <class Call>
struct Step {
    bool (*holds)(const Call &);
    aclnnStatus otherwise;
};

// The status of the first step that does not hold.
template <class Call, size_t count>
aclnnStatus status_of(const Call &call, const Step<Call> (&steps)[count])
{
    for (const Step<Call> &step : steps) {
        if (!step.holds(call)) {
            return step.otherwise;
        }
    }
    return success;
}

// The pointer to anything else than a tensor is there.
bool is_present(const char *operation, const char *name, const void *pointer);
// Every tensor is there.
bool are_present(const char *operation, std::initializer_list<Named> tensors);
// The chip is one of these products.
bool is_on(const char *operation, std::initializer_list<Product> products);

bool has_dtype(const char *operation, const Named &tensor, Numbers dtypes);
// FLOAT and FLOAT16, and BF16 where the chip has it.
bool has_float_dtype(const char *operation, const Named &tensor);
bool has_same_dtype(const char *operation, const Named &tensor, const Named &as);
bool has_format(const char *operation, const Named &tensor, Numbers formats);
bool has_rank(const char *operation, const Named &tensor, size_t low, size_t high);
// The shape that two broadcast to; false, with a message, where they do not.
bool broadcast(const char *operation, const Named &left, const Named &right, Dims &dims);
bool has_shape(const char *operation, const Named &tensor, const Dims &dims);
bool has_dim(const char *operation, const Named &tensor, size_t axis, int64_t size);
bool has_dims_between(const char *operation, const Named &tensor, size_t axis, int64_t low, int64_t high);
bool has_no_negative_dim(const char *operation, const Named &tensor);
// A view that is not contiguous lies inside its storage; of contiguous ones nobody looks at the storage.
bool is_view_inside(const char *operation, const Named &tensor);

}  // namespace loopback
