// The documented rules of aclnnSoftmaxBackward's arguments, in the order in which they are looked at.
#include <algorithm>

#include "checks.h"
#include "message.h"
#include "softmax.h"

namespace loopback {
namespace {

using Call = SoftmaxBackward;
constexpr const char *op = Call::name;
constexpr size_t largest_rank = 8;

bool check_pointers(const Call &call)
{
    return are_present(op, {{"gradOutput", call.grad_output}, {"output", call.output}, {"out", call.out}});
}

bool check_grad_output_dtype(const Call &call)
{
    return has_float_dtype(op, {"gradOutput", call.grad_output});
}

bool check_output_dtype(const Call &call)
{
    return has_float_dtype(op, {"output", call.output})
           && has_same_dtype(op, {"output", call.output}, {"gradOutput", call.grad_output});
}

// A list is printed for out, and a cast promised for all else: the floating dtypes of the chip are cast to.
bool check_out_dtype(const Call &call)
{
    return call.out->dtype() == ACL_DOUBLE || has_float_dtype(op, {"out", call.out});
}

bool check_formats(const Call &call)
{
    return has_format(op, {"gradOutput", call.grad_output}, {ACL_FORMAT_ND})
           && has_format(op, {"output", call.output}, {ACL_FORMAT_ND})
           && has_format(op, {"out", call.out}, {ACL_FORMAT_ND});
}

// A tensor without dimensions counts as one of one.
bool check_dim(const Call &call)
{
    const auto rank = static_cast<int64_t>(std::max<size_t>(call.grad_output->rank(), 1));
    return (call.dim >= -rank && call.dim < rank)
           || refuse(op, text("dim is %lld; expected %lld to %lld", static_cast<long long>(call.dim),
                              static_cast<long long>(-rank), static_cast<long long>(rank - 1)));
}

bool check_ranks(const Call &call)
{
    return has_rank(op, {"gradOutput", call.grad_output}, 0, largest_rank)
           && has_rank(op, {"output", call.output}, 0, largest_rank);
}

bool check_sizes(const Call &call)
{
    return has_no_negative_dim(op, {"gradOutput", call.grad_output});
}

bool check_output_shape(const Call &call)
{
    return has_shape(op, {"output", call.output}, call.grad_output->dims());
}

bool check_out_shape(const Call &call)
{
    return has_shape(op, {"out", call.out}, call.grad_output->dims());
}

bool check_views(const Call &call)
{
    return is_view_inside(op, {"gradOutput", call.grad_output}) && is_view_inside(op, {"output", call.output})
           && is_view_inside(op, {"out", call.out});
}

constexpr Step<Call> steps[] = {
    {check_pointers, param_nullptr},     {check_grad_output_dtype, param_invalid},
    {check_output_dtype, param_invalid}, {check_out_dtype, param_invalid},
    {check_formats, param_invalid},      {check_dim, param_invalid},
    {check_ranks, param_invalid},        {check_sizes, param_invalid},
    {check_output_shape, param_invalid}, {check_out_shape, param_invalid},
    {check_views, inner_nullptr},
};

}  // namespace

aclnnStatus SoftmaxBackward::check() const
{
    return status_of<Call>(*this, steps);
}

}  // namespace loopback
