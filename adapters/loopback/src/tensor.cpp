// Tensor descriptors. Making one checks next to nothing, as on the real thing: sizes, dtype, format and address may be
// anything.
#include "tensor.h"

#include <algorithm>
#include <memory>
#include <new>

#include "aclnn/acl_meta.h"
#include "message.h"
#include "registry.h"
#include "status.h"

bool aclTensor::is_inside_storage() const
{
    const loopback::Wide elements = loopback::count(storage);
    loopback::Wide low = view.offset;
    loopback::Wide high = view.offset;
    for (size_t axis = 0; axis < rank(); ++axis) {
        const loopback::Wide reach = (static_cast<loopback::Wide>(dim(axis)) - 1) * view.strides[axis];
        (reach < 0 ? low : high) += reach;
        if (low < 0 || high >= elements) {
            return false;
        }
    }
    return low >= 0 && high < elements;
}

namespace loopback {
namespace {

struct Description {
    const int64_t *view_dims;
    uint64_t view_rank;
    aclDataType dtype;
    const int64_t *strides;
    int64_t offset;
    aclFormat format;
    const int64_t *storage_dims;
    uint64_t storage_rank;
    void *data;
};

bool is_readable(const Description &description)
{
    return (description.view_dims != nullptr || description.view_rank == 0)
           && (description.storage_dims != nullptr || description.storage_rank == 0);
}

void describe(aclTensor &tensor, const Description &from)
{
    tensor.view.dims.assign(from.view_dims, from.view_dims + from.view_rank);
    if (from.strides != nullptr) {
        tensor.view.strides.assign(from.strides, from.strides + from.view_rank);
    } else {
        tensor.view.strides = contiguous_strides(tensor.view.dims);
    }
    tensor.view.offset = from.offset;
    tensor.view.dtype = from.dtype;
    tensor.storage.assign(from.storage_dims, from.storage_dims + from.storage_rank);
    tensor.format = from.format;
    tensor.data = from.data;
}

aclnnStatus give_copy(const Dims &dims, int64_t **values, uint64_t *size)
{
    *values = new (std::nothrow) int64_t[dims.size()];
    if (*values == nullptr) {
        return fail(inner_error, "no memory");
    }
    std::copy(dims.begin(), dims.end(), *values);
    *size = dims.size();
    return success;
}

template <class... Pointers>
bool any_null(const Pointers *...pointers)
{
    return ((pointers == nullptr) || ...);
}

aclnnStatus refuse_null(const char *caller)
{
    return fail(param_nullptr, std::string(caller) + ": a null pointer");
}

}  // namespace
}  // namespace loopback

using namespace loopback;

extern "C" {

aclTensor *aclCreateTensor(const int64_t *view_dims, uint64_t view_rank, aclDataType dtype, const int64_t *strides,
                           int64_t offset, aclFormat format, const int64_t *storage_dims, uint64_t storage_rank,
                           void *data)
{
    const Description description{view_dims, view_rank,    dtype,        strides, offset,
                                  format,    storage_dims, storage_rank, data};
    if (!is_readable(description)) {
        report("aclCreateTensor: a null pointer to dimensions whose number is not 0");
        return nullptr;
    }
    try {
        auto tensor = std::make_unique<aclTensor>();
        describe(*tensor, description);
        Registry::instance().add(tensor.get());
        return tensor.release();
    } catch (const std::exception &) {
        report("aclCreateTensor: no memory");
        return nullptr;
    }
}

aclnnStatus aclInitTensor(aclTensor *tensor, const int64_t *view_dims, uint64_t view_rank, aclDataType dtype,
                          const int64_t *strides, int64_t offset, aclFormat format, const int64_t *storage_dims,
                          uint64_t storage_rank, void *data)
{
    const Description description{view_dims, view_rank,    dtype,        strides, offset,
                                  format,    storage_dims, storage_rank, data};
    if (tensor == nullptr || !is_readable(description)) {
        return refuse_null("aclInitTensor");
    }
    describe(*tensor, description);
    return success;
}

aclnnStatus aclDestroyTensor(const aclTensor *tensor)
{
    if (tensor == nullptr) {
        return success;
    }
    if (!Registry::instance().remove(tensor)) {
        report("aclDestroyTensor: not a tensor, or one that was destroyed");
        return success;
    }
    delete tensor;
    return success;
}

aclnnStatus aclGetViewShape(const aclTensor *tensor, int64_t **values, uint64_t *size)
{
    return any_null(tensor, values, size) ? refuse_null("aclGetViewShape") : give_copy(tensor->dims(), values, size);
}

aclnnStatus aclGetViewStrides(const aclTensor *tensor, int64_t **values, uint64_t *size)
{
    return any_null(tensor, values, size) ? refuse_null("aclGetViewStrides")
                                          : give_copy(tensor->view.strides, values, size);
}

aclnnStatus aclGetStorageShape(const aclTensor *tensor, int64_t **values, uint64_t *size)
{
    return any_null(tensor, values, size) ? refuse_null("aclGetStorageShape")
                                          : give_copy(tensor->storage, values, size);
}

aclnnStatus aclGetViewOffset(const aclTensor *tensor, int64_t *offset)
{
    if (any_null(tensor, offset)) {
        return refuse_null("aclGetViewOffset");
    }
    *offset = tensor->view.offset;
    return success;
}

aclnnStatus aclGetFormat(const aclTensor *tensor, aclFormat *format)
{
    if (any_null(tensor, format)) {
        return refuse_null("aclGetFormat");
    }
    *format = static_cast<aclFormat>(tensor->format);
    return success;
}

aclnnStatus aclGetDataType(const aclTensor *tensor, aclDataType *dtype)
{
    if (any_null(tensor, dtype)) {
        return refuse_null("aclGetDataType");
    }
    *dtype = static_cast<aclDataType>(tensor->dtype());
    return success;
}

aclnnStatus aclSetRawTensorAddr(aclTensor *tensor, void *address)
{
    if (tensor == nullptr) {
        return refuse_null("aclSetRawTensorAddr");
    }
    tensor->data = address;
    return success;
}

aclnnStatus aclGetRawTensorAddr(const aclTensor *tensor, void **address)
{
    if (any_null(tensor, address)) {
        return refuse_null("aclGetRawTensorAddr");
    }
    *address = tensor->data;
    return success;
}
}
