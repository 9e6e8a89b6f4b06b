// Scalars, arrays and lists of the descriptor interface.
#include <cstring>
#include <memory>
#include <new>

#include "aclnn/acl_meta.h"
#include "dtype.h"
#include "message.h"
#include "registry.h"
#include "status.h"
#include "tensor.h"

namespace loopback {
namespace {

// A copy of the caller's values: empty where the pointer is null or the size 0, null where there is no memory.
template <class Array, class Value>
Array *create(const Value *values, uint64_t size)
{
    try {
        auto array = std::make_unique<Array>();
        if (values != nullptr && size > 0) {
            array->values.assign(values, values + size);
        }
        Registry::instance().add(array.get());
        return array.release();
    } catch (const std::exception &) {
        report("no memory for an array");
        return nullptr;
    }
}

template <class Handle>
aclnnStatus destroy(const Handle *handle, const char *caller)
{
    if (handle == nullptr) {
        return success;
    }
    if (!Registry::instance().remove(handle)) {
        report(std::string(caller) + ": not one of these handles, or one that was destroyed");
        return success;
    }
    delete handle;
    return success;
}

template <class Array>
aclnnStatus give_size(const Array *array, uint64_t *size, const char *caller)
{
    if (array == nullptr || size == nullptr) {
        return fail(param_nullptr, std::string(caller) + ": a null pointer");
    }
    *size = array->values.size();
    return success;
}

}  // namespace
}  // namespace loopback

using namespace loopback;

extern "C" {

aclScalar *aclCreateScalar(void *value, aclDataType dtype)
{
    const size_t size = itemsize(dtype);
    if (value == nullptr || size == 0) {
        report("aclCreateScalar: a null pointer, or a dtype without whole bytes");
        return nullptr;
    }
    try {
        auto scalar = std::make_unique<aclScalar>();
        scalar->value.resize(size);
        std::memcpy(scalar->value.data(), value, size);
        scalar->dtype = dtype;
        Registry::instance().add(scalar.get());
        return scalar.release();
    } catch (const std::exception &) {
        report("aclCreateScalar: no memory");
        return nullptr;
    }
}

aclIntArray *aclCreateIntArray(const int64_t *value, uint64_t size)
{
    return create<aclIntArray>(value, size);
}

aclFloatArray *aclCreateFloatArray(const float *value, uint64_t size)
{
    return create<aclFloatArray>(value, size);
}

aclBoolArray *aclCreateBoolArray(const bool *value, uint64_t size)
{
    return create<aclBoolArray>(value, size);
}

aclTensorList *aclCreateTensorList(const aclTensor *const *value, uint64_t size)
{
    return create<aclTensorList>(value, size);
}

aclScalarList *aclCreateScalarList(const aclScalar *const *value, uint64_t size)
{
    return create<aclScalarList>(value, size);
}

aclnnStatus aclDestroyScalar(const aclScalar *scalar)
{
    return destroy(scalar, "aclDestroyScalar");
}

aclnnStatus aclDestroyIntArray(const aclIntArray *array)
{
    return destroy(array, "aclDestroyIntArray");
}

aclnnStatus aclDestroyFloatArray(const aclFloatArray *array)
{
    return destroy(array, "aclDestroyFloatArray");
}

aclnnStatus aclDestroyBoolArray(const aclBoolArray *array)
{
    return destroy(array, "aclDestroyBoolArray");
}

// A list owns its elements.
aclnnStatus aclDestroyTensorList(const aclTensorList *list)
{
    if (Registry::instance().find(list) != 0) {
        for (const aclTensor *tensor : list->values) {
            aclDestroyTensor(tensor);
        }
    }
    return destroy(list, "aclDestroyTensorList");
}

aclnnStatus aclDestroyScalarList(const aclScalarList *list)
{
    if (Registry::instance().find(list) != 0) {
        for (const aclScalar *scalar : list->values) {
            aclDestroyScalar(scalar);
        }
    }
    return destroy(list, "aclDestroyScalarList");
}

aclnnStatus aclGetIntArraySize(const aclIntArray *array, uint64_t *size)
{
    return give_size(array, size, "aclGetIntArraySize");
}

aclnnStatus aclGetFloatArraySize(const aclFloatArray *array, uint64_t *size)
{
    return give_size(array, size, "aclGetFloatArraySize");
}

aclnnStatus aclGetBoolArraySize(const aclBoolArray *array, uint64_t *size)
{
    return give_size(array, size, "aclGetBoolArraySize");
}

aclnnStatus aclGetTensorListSize(const aclTensorList *list, uint64_t *size)
{
    return give_size(list, size, "aclGetTensorListSize");
}

aclnnStatus aclGetScalarListSize(const aclScalarList *list, uint64_t *size)
{
    return give_size(list, size, "aclGetScalarListSize");
}
}
