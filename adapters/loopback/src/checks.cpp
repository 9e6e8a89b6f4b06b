#include "checks.h"

#include <algorithm>

#include "dtype.h"
#include "message.h"

namespace loopback {
namespace {

bool contains(Numbers numbers, int32_t number)
{
    return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

}  // namespace

bool refuse(const char *operation, const std::string &message)
{
    report(std::string(operation) + ": " + message);
    return false;
}

bool is_present(const char *operation, const char *name, const void *pointer)
{
    return pointer != nullptr || refuse(operation, text("%s is null", name));
}

bool are_present(const char *operation, std::initializer_list<Named> tensors)
{
    for (const Named &named : tensors) {
        if (named.tensor == nullptr) {
            return refuse(operation, text("%s is null", named.name));
        }
    }
    return true;
}

bool is_on(const char *operation, std::initializer_list<Product> products)
{
    return std::find(products.begin(), products.end(), soc()->product) != products.end()
           || refuse(operation, text("there is no such kernel for %s", soc()->name));
}

bool has_dtype(const char *operation, const Named &tensor, Numbers dtypes)
{
    return contains(dtypes, tensor.tensor->dtype())
           || refuse(operation, text("%s is of %s (%d), which %s does not support", tensor.name,
                                     dtype_name(tensor.tensor->dtype()), tensor.tensor->dtype(), soc()->name));
}

bool has_float_dtype(const char *operation, const Named &tensor)
{
    return soc()->has_bf16()
               ? has_dtype(operation, tensor, {ACL_FLOAT, ACL_FLOAT16, ACL_BF16})
               : has_dtype(operation, tensor, {ACL_FLOAT, ACL_FLOAT16});
}

bool has_same_dtype(const char *operation, const Named &tensor, const Named &as)
{
    return tensor.tensor->dtype() == as.tensor->dtype()
           || refuse(operation, text("%s is of %s, and %s of %s", tensor.name, dtype_name(tensor.tensor->dtype()),
                                     as.name, dtype_name(as.tensor->dtype())));
}

bool has_format(const char *operation, const Named &tensor, Numbers formats)
{
    return contains(formats, tensor.tensor->format)
           || refuse(operation, text("%s has format %s (%d)", tensor.name, format_name(tensor.tensor->format),
                                     tensor.tensor->format));
}

bool has_rank(const char *operation, const Named &tensor, size_t low, size_t high)
{
    const size_t rank = tensor.tensor->rank();
    return (rank >= low && rank <= high)
           || refuse(operation, text("%s has %zu dimensions; expected %zu to %zu", tensor.name, rank, low, high));
}

bool broadcast(const char *operation, const Named &left, const Named &right, Dims &dims)
{
    const Dims &a = left.tensor->dims();
    const Dims &b = right.tensor->dims();
    dims.assign(std::max(a.size(), b.size()), 1);
    for (size_t back = 1; back <= dims.size(); ++back) {
        const int64_t one = back <= a.size() ? a[a.size() - back] : 1;
        const int64_t other = back <= b.size() ? b[b.size() - back] : 1;
        if (one != other && one != 1 && other != 1) {
            return refuse(operation, text("%s is %s and %s %s, which do not broadcast", left.name, to_text(a).c_str(),
                                          right.name, to_text(b).c_str()));
        }
        dims[dims.size() - back] = one == 1 ? other : one;
    }
    return true;
}

bool has_shape(const char *operation, const Named &tensor, const Dims &dims)
{
    return tensor.tensor->dims() == dims
           || refuse(operation, text("%s is %s; expected %s", tensor.name, to_text(tensor.tensor->dims()).c_str(),
                                     to_text(dims).c_str()));
}

bool has_dim(const char *operation, const Named &tensor, size_t axis, int64_t size)
{
    return has_dims_between(operation, tensor, axis, size, size);
}

bool has_dims_between(const char *operation, const Named &tensor, size_t axis, int64_t low, int64_t high)
{
    const int64_t size = tensor.tensor->dim(axis);
    return (size >= low && size <= high)
           || refuse(operation,
                     text("dimension %zu of %s is %lld; expected %lld to %lld", axis, tensor.name,
                          static_cast<long long>(size), static_cast<long long>(low), static_cast<long long>(high)));
}

bool has_no_negative_dim(const char *operation, const Named &tensor)
{
    for (size_t axis = 0; axis < tensor.tensor->rank(); ++axis) {
        if (!has_dims_between(operation, tensor, axis, 0, int64_max)) {
            return false;
        }
    }
    return true;
}

bool is_view_inside(const char *operation, const Named &tensor)
{
    return tensor.tensor->is_contiguous() || tensor.tensor->is_inside_storage()
           || refuse(operation, text("the view of %s reaches outside its storage", tensor.name));
}

}  // namespace loopback
