// The documented rules of aclnnConvTbcBackward's arguments, in the order in which they are looked at.
#include "checks.h"
#include "conv_tbc.h"
#include "message.h"

namespace loopback {
namespace {

using Call = ConvTbcBackward;
constexpr const char *op = Call::name;
constexpr int64_t largest_dim = 2147483646;
constexpr int64_t largest_kernel = 255;
constexpr int64_t largest_pad = 255;

bool check_pointers(const Call &call)
{
    return are_present(op, {{"self", call.self},
                            {"input", call.input},
                            {"weight", call.weight},
                            {"bias", call.bias},
                            {"gradInput", call.grad_input},
                            {"gradWeight", call.grad_weight},
                            {"gradBias", call.grad_bias}});
}

bool check_product(const Call &)
{
    return is_on(op, {Product::training, Product::a2});
}

bool check_dtypes(const Call &call)
{
    return has_float_dtype(op, {"self", call.self}) && has_float_dtype(op, {"input", call.input})
           && has_float_dtype(op, {"weight", call.weight}) && has_float_dtype(op, {"bias", call.bias})
           && has_float_dtype(op, {"gradInput", call.grad_input})
           && has_float_dtype(op, {"gradWeight", call.grad_weight})
           && has_float_dtype(op, {"gradBias", call.grad_bias});
}

bool check_same_dtypes(const Call &call)
{
    return has_same_dtype(op, {"input", call.input}, {"self", call.self})
           && has_same_dtype(op, {"weight", call.weight}, {"self", call.self})
           && has_same_dtype(op, {"bias", call.bias}, {"self", call.self});
}

bool check_gradient_dtypes(const Call &call)
{
    return has_same_dtype(op, {"gradInput", call.grad_input}, {"input", call.input})
           && has_same_dtype(op, {"gradWeight", call.grad_weight}, {"weight", call.weight})
           && has_same_dtype(op, {"gradBias", call.grad_bias}, {"bias", call.bias});
}

// The parameter list names NCL alone for gradInput and gradWeight, and the example passes ND: both are taken.
bool check_formats(const Call &call)
{
    const Numbers of_three = {ACL_FORMAT_ND, ACL_FORMAT_NCL};
    return has_format(op, {"self", call.self}, of_three) && has_format(op, {"input", call.input}, of_three)
           && has_format(op, {"weight", call.weight}, of_three)
           && has_format(op, {"bias", call.bias}, {ACL_FORMAT_ND})
           && has_format(op, {"gradInput", call.grad_input}, of_three)
           && has_format(op, {"gradWeight", call.grad_weight}, of_three)
           && has_format(op, {"gradBias", call.grad_bias}, {ACL_FORMAT_ND});
}

bool check_ranks(const Call &call)
{
    return has_rank(op, {"self", call.self}, 3, 3) && has_rank(op, {"input", call.input}, 3, 3)
           && has_rank(op, {"weight", call.weight}, 3, 3) && has_rank(op, {"bias", call.bias}, 1, 1);
}

bool check_gradient_shapes(const Call &call)
{
    return has_shape(op, {"gradInput", call.grad_input}, call.input->dims())
           && has_shape(op, {"gradWeight", call.grad_weight}, call.weight->dims())
           && has_shape(op, {"gradBias", call.grad_bias}, call.bias->dims());
}

bool check_negative_dims(const Call &call)
{
    return has_no_negative_dim(op, {"self", call.self}) && has_no_negative_dim(op, {"gradInput", call.grad_input})
           && has_no_negative_dim(op, {"gradWeight", call.grad_weight})
           && has_no_negative_dim(op, {"gradBias", call.grad_bias});
}

bool check_input_channels(const Call &call)
{
    return has_dim(op, {"input", call.input}, 2, call.weight->dim(1));
}

bool check_bias_size(const Call &call)
{
    return has_dim(op, {"bias", call.bias}, 0, call.weight->dim(2));
}

bool check_pad(const Call &call)
{
    const int64_t high = soc()->product == Product::a2 ? largest_pad : int64_max;
    return (call.pad >= 0 && call.pad <= high)
           || refuse(op, text("pad is %lld; expected 0 to %lld", static_cast<long long>(call.pad),
                              static_cast<long long>(high)));
}

bool check_self_shape(const Call &call)
{
    const Wide time = static_cast<Wide>(call.input->dim(0)) + 2 * static_cast<Wide>(call.pad) + 1 - call.weight->dim(0);
    if (time < 0 || time != call.self->dim(0)) {
        return refuse(op, "dimension 0 of self is not T + 2 * pad + 1 - L");
    }
    return has_dim(op, {"self", call.self}, 1, call.input->dim(1))
           && has_dim(op, {"self", call.self}, 2, call.weight->dim(2));
}

bool check_dim_ranges(const Call &call)
{
    if (soc()->product != Product::a2) {
        return true;
    }
    for (size_t axis = 0; axis < 3; ++axis) {
        const int64_t high = axis == 0 ? largest_kernel : largest_dim;
        if (!has_dims_between(op, {"self", call.self}, axis, 1, largest_dim)
            || !has_dims_between(op, {"input", call.input}, axis, 1, largest_dim)
            || !has_dims_between(op, {"weight", call.weight}, axis, 1, high)) {
            return false;
        }
    }
    return true;
}

// No document speaks of empty tensors; without any gradient there is nothing to propagate.
bool check_self_is_not_empty(const Call &call)
{
    return call.self->numel() != 0 || refuse(op, "self is empty");
}

bool check_mode_range(const Call &call)
{
    return (call.cube_math_type >= keep_dtype && call.cube_math_type <= use_hf32)
           || refuse(op, text("cubeMathType is %d; expected 0 to 3", call.cube_math_type));
}

// A matrix unit without FP32 refuses to keep it and to use HF32.
bool check_mode_of_product(const Call &call)
{
    const bool needs_fp32 = call.cube_math_type == keep_dtype || call.cube_math_type == use_hf32;
    return soc()->cube_has_fp32() || call.self->dtype() == ACL_FLOAT16 || !needs_fp32
           || refuse(op, text("cubeMathType %d: the matrix unit of %s has no FP32", call.cube_math_type, soc()->name));
}

bool check_views(const Call &call)
{
    return is_view_inside(op, {"self", call.self}) && is_view_inside(op, {"input", call.input})
           && is_view_inside(op, {"weight", call.weight}) && is_view_inside(op, {"gradInput", call.grad_input})
           && is_view_inside(op, {"gradWeight", call.grad_weight}) && is_view_inside(op, {"gradBias", call.grad_bias});
}

constexpr Step<Call> steps[] = {
    {check_pointers, param_nullptr},
    {check_product, inner_find_kernel_error},
    {check_dtypes, param_invalid},
    {check_same_dtypes, param_invalid},
    {check_gradient_dtypes, param_invalid},
    {check_formats, param_invalid},
    {check_ranks, param_invalid},
    {check_gradient_shapes, param_invalid},
    {check_negative_dims, param_invalid},
    {check_input_channels, param_invalid},
    {check_bias_size, param_invalid},
    {check_pad, param_invalid},
    {check_self_shape, param_invalid},
    {check_dim_ranges, param_invalid},
    {check_self_is_not_empty, param_invalid},
    {check_mode_range, param_invalid},
    {check_mode_of_product, param_invalid},
    {check_views, inner_nullptr},
};

}  // namespace

aclnnStatus ConvTbcBackward::check() const
{
    return status_of<Call>(*this, steps);
}

}  // namespace loopback
