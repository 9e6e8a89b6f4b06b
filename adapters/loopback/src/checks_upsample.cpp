// The documented rules of aclnnUpsampleNearestExact1dBackward's arguments, in the order in which they are looked at.
#include <cmath>

#include "checks.h"
#include "message.h"
#include "upsample.h"

namespace loopback {
namespace {

using Call = UpsampleNearestExact1dBackward;
constexpr const char *op = Call::name;
constexpr int64_t ratio_limit = 50;

// outputSizeOptional is not among the pointers that the document checks: without it the size is gradOutput's own.
bool check_pointers(const Call &call)
{
    return are_present(op, {{"gradOutput", call.grad_output}, {"out", call.out}})
           && (call.input_size != nullptr || refuse(op, "inputSize is null"));
}

bool check_product(const Call &)
{
    return is_on(op, {Product::a2});
}

bool check_dtypes(const Call &call)
{
    return has_float_dtype(op, {"gradOutput", call.grad_output}) && has_float_dtype(op, {"out", call.out});
}

bool check_same_dtype(const Call &call)
{
    return has_same_dtype(op, {"out", call.out}, {"gradOutput", call.grad_output});
}

// NCHW is printed for out, and NCL is what its three dimensions would have: both are taken.
bool check_formats(const Call &call)
{
    return has_format(op, {"gradOutput", call.grad_output}, {ACL_FORMAT_NCL, ACL_FORMAT_ND})
           && has_format(op, {"out", call.out}, {ACL_FORMAT_ND, ACL_FORMAT_NCL, ACL_FORMAT_NCHW});
}

bool check_grad_output_rank(const Call &call)
{
    return has_rank(op, {"gradOutput", call.grad_output}, 3, 3);
}

// Four dimensions are printed, with three sizes to fill them and a gradient of three: three is what can be meant.
bool check_out_rank(const Call &call)
{
    return has_rank(op, {"out", call.out}, 3, 3);
}

bool check_array(const char *name, const aclIntArray &array, size_t length)
{
    return array.values.size() == length
           || refuse(op, text("%s has %zu items; expected %zu", name, array.values.size(), length));
}

bool check_arrays(const Call &call)
{
    return (call.output_size == nullptr || check_array("outputSizeOptional", *call.output_size, 1))
           && check_array("inputSize", *call.input_size, 3);
}

bool check_output_size(const Call &call)
{
    return call.output_size == nullptr || has_dim(op, {"gradOutput", call.grad_output}, 2, call.output_size->values[0]);
}

bool check_input_size(const Call &call)
{
    return has_shape(op, {"out", call.out}, call.input_size->values)
           && has_dim(op, {"gradOutput", call.grad_output}, 0, call.input_size->values[0])
           && has_dim(op, {"gradOutput", call.grad_output}, 1, call.input_size->values[1]);
}

// Nothing is said of negative and of infinite factors; nan and 0 leave it to the sizes.
bool check_scales(const Call &call)
{
    return (!(call.scales < 0) && !std::isinf(call.scales)) || refuse(op, text("scalesOptional is %g", call.scales));
}

bool check_sizes(const Call &call)
{
    for (size_t axis = 0; axis < 3; ++axis) {
        if (!has_dims_between(op, {"gradOutput", call.grad_output}, axis, 1, int64_max)
            || !has_dims_between(op, {"out", call.out}, axis, 1, int64_max)) {
            return false;
        }
    }
    return true;
}

bool check_ratio(const Call &call)
{
    const Wide longest = static_cast<Wide>(call.grad_output->dim(2)) * ratio_limit;
    return call.input_size->values[2] < longest
           || refuse(op, "the length of inputSize is not below 50 times that of outputSizeOptional");
}

bool check_views(const Call &call)
{
    return is_view_inside(op, {"gradOutput", call.grad_output}) && is_view_inside(op, {"out", call.out});
}

constexpr Step<Call> steps[] = {
    {check_pointers, param_nullptr},    {check_product, inner_find_kernel_error},
    {check_dtypes, param_invalid},      {check_same_dtype, param_invalid},
    {check_formats, param_invalid},     {check_grad_output_rank, param_invalid},
    {check_out_rank, param_invalid},    {check_arrays, param_invalid},
    {check_output_size, param_invalid}, {check_input_size, param_invalid},
    {check_scales, param_invalid},      {check_sizes, param_invalid},
    {check_ratio, param_invalid},       {check_views, inner_nullptr},
};

}  // namespace

aclnnStatus UpsampleNearestExact1dBackward::check() const
{
    return status_of<Call>(*this, steps);
}

}  // namespace loopback
