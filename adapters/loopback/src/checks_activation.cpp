// The documented rules of the arguments of the activations, in the order in which they are looked at.
#include <cstring>

#include "activation.h"
#include "checks.h"
#include "dtype.h"
#include "half.h"
#include "message.h"

namespace loopback {
namespace {

constexpr size_t largest_rank = 8;

template <class T>
double value_as(const aclScalar &scalar)
{
    T value;
    std::memcpy(&value, scalar.value.data(), sizeof value);
    return static_cast<double>(value);
}

}  // namespace

double number_of(const aclScalar &scalar)
{
    switch (scalar.dtype) {
        case ACL_FLOAT:
            return value_as<float>(scalar);
        case ACL_DOUBLE:
            return value_as<double>(scalar);
        case ACL_FLOAT16:
            return half_to_float(static_cast<uint16_t>(value_as<uint16_t>(scalar)));
        case ACL_BF16:
            return bfloat_to_float(static_cast<uint16_t>(value_as<uint16_t>(scalar)));
        case ACL_INT8:
            return value_as<int8_t>(scalar);
        case ACL_INT16:
            return value_as<int16_t>(scalar);
        case ACL_INT32:
            return value_as<int32_t>(scalar);
        case ACL_INT64:
            return value_as<int64_t>(scalar);
        case ACL_UINT8:
        case ACL_BOOL:
            return value_as<uint8_t>(scalar);
        default:
            return 0;
    }
}

aclnnStatus Activation::check_tensors(const char *op, const char *out_name, const void *other,
                                      const char *other_name) const
{
    return status_of(are_present(op, {{"gradOutput", grad_output}, {self_name, self}})
                         && is_present(op, other_name, other) && are_present(op, {{out_name, out}}),
                     param_nullptr);
}

aclnnStatus Activation::check_shapes(const char *op, const char *out_name) const
{
    Dims dims;
    const bool hold = has_format(op, {"gradOutput", grad_output}, {ACL_FORMAT_ND})
                      && has_format(op, {self_name, self}, {ACL_FORMAT_ND}) && has_format(op, {out_name, out}, {ACL_FORMAT_ND})
                      && has_rank(op, {"gradOutput", grad_output}, 0, largest_rank)
                      && has_rank(op, {self_name, self}, 0, largest_rank) && has_rank(op, {out_name, out}, 0, largest_rank)
                      && has_no_negative_dim(op, {"gradOutput", grad_output}) && has_no_negative_dim(op, {self_name, self})
                      && broadcast(op, {"gradOutput", grad_output}, {self_name, self}, dims)
                      && has_shape(op, {out_name, out}, dims);
    if (!hold) {
        return param_invalid;
    }
    return status_of(is_view_inside(op, {"gradOutput", grad_output}) && is_view_inside(op, {self_name, self})
                         && is_view_inside(op, {out_name, out}),
                     inner_nullptr);
}

aclnnStatus LeakyReluBackward::check() const
{
    const aclnnStatus present = check_tensors(name, "out", negative_slope, "negativeSlope");
    if (present != success) {
        return present;
    }
    for (const Named &tensor : {Named{"gradOutput", grad_output}, Named{self_name, self}, Named{"out", out}}) {
        if (tensor.tensor->dtype() != ACL_DOUBLE && !has_float_dtype(name, tensor)) {
            return param_invalid;
        }
    }
    switch (negative_slope->dtype) {
        case ACL_FLOAT:
        case ACL_FLOAT16:
        case ACL_DOUBLE:
        case ACL_INT32:
        case ACL_INT64:
        case ACL_INT8:
        case ACL_BOOL:
        case ACL_INT16:
        case ACL_UINT8:
            break;
        case ACL_BF16:
            if (soc()->has_bf16()) {
                break;
            }
            [[fallthrough]];
        default:
            return status_of(refuse(name, text("negativeSlope is of dtype %d", negative_slope->dtype)), param_invalid);
    }
    if (self_is_result && number_of(*negative_slope) < 0) {
        return status_of(refuse(name, "negativeSlope is negative, and self a result"), param_invalid);
    }
    return check_shapes(name, "out");
}

aclnnStatus GeluBackwardV2::check() const
{
    const aclnnStatus present = check_tensors(name, "gradInput", approximate, "approximate");
    if (present != success) {
        return present;
    }
    if (!has_float_dtype(name, {"gradOutput", grad_output}) || !has_float_dtype(name, {self_name, self})
        || !has_float_dtype(name, {"gradInput", out})) {
        return param_invalid;
    }
    // Two dtypes promote to FLOAT unless they are one.
    const int32_t promoted = grad_output->dtype() == self->dtype() ? self->dtype() : ACL_FLOAT;
    if (!has_dtype(name, {"gradInput", out}, {promoted})) {
        return param_invalid;
    }
    if (std::strcmp(approximate, "none") != 0 && std::strcmp(approximate, "tanh") != 0) {
        return status_of(refuse(name, text("approximate is %.32s; expected none or tanh", approximate)), param_invalid);
    }
    return check_shapes(name, "gradInput");
}

aclnnStatus SigmoidBackward::check() const
{
    const aclnnStatus present = check_tensors(name, "gradInput", self, self_name);
    if (present != success) {
        return present;
    }
    const Named gradient{"gradOutput", grad_output};
    for (const Named &tensor : {gradient, Named{"gradInput", out}}) {
        if (tensor.tensor->dtype() != ACL_DOUBLE && !is_complex(tensor.tensor->dtype())
            && !has_float_dtype(name, tensor)) {
            return param_invalid;
        }
    }
    if (!has_same_dtype(name, {self_name, self}, gradient)) {
        return param_invalid;
    }
    if (is_complex(grad_output->dtype()) && !is_complex(out->dtype())) {
        return status_of(refuse(name, "gradOutput is complex, and gradInput is not"), param_invalid);
    }
    return check_shapes(name, "gradInput");
}

}  // namespace loopback
