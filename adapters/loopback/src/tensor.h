// The objects behind the descriptor handles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "acl/acl_base.h"
#include "shape.h"

namespace loopback {

// What a kernel reads of a tensor: everything but the address.
struct View {
    Dims dims;
    Dims strides;
    int64_t offset = 0;
    int32_t dtype = ACL_DT_UNDEFINED;

    int64_t numel() const { return count(dims); }
};

}  // namespace loopback

struct aclTensor {
    loopback::View view;
    loopback::Dims storage;
    int32_t format;
    void *data;

    const loopback::Dims &dims() const { return view.dims; }
    size_t rank() const { return view.dims.size(); }
    int64_t dim(size_t axis) const { return view.dims[axis]; }
    int32_t dtype() const { return view.dtype; }
    int64_t numel() const { return view.numel(); }
    bool is_contiguous() const { return loopback::is_contiguous(view.dims, view.strides); }
    // Whether every element of the view lies in the storage's shape.
    bool is_inside_storage() const;
};

struct aclScalar {
    std::vector<std::byte> value;
    int32_t dtype;
};

struct aclIntArray {
    std::vector<int64_t> values;
};

struct aclFloatArray {
    std::vector<float> values;
};

struct aclBoolArray {
    std::vector<bool> values;
};

struct aclTensorList {
    std::vector<const aclTensor *> values;
};

struct aclScalarList {
    std::vector<const aclScalar *> values;
};
