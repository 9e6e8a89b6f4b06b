// The documented rules of aclnnLayerNormBackward's arguments, in the order in which they are looked at.
#include <array>

#include "checks.h"
#include "dtype.h"
#include "layer_norm.h"
#include "message.h"

namespace loopback {
namespace {

using Call = LayerNormBackward;
constexpr const char *op = Call::name;
constexpr size_t largest_rank = 8;
constexpr size_t outputs = 3;
constexpr const char *gradient_names[outputs] = {"gradInputOut", "gradWeightOut", "gradBiasOut"};

bool check_pointers(const Call &call)
{
    return are_present(op, {{"gradOut", call.grad_out}, {"input", call.input}})
           && is_present(op, "normalizedShape", call.normalized_shape)
           && are_present(op, {{"mean", call.mean}, {"rstd", call.rstd}})
           && is_present(op, "outputMask", call.output_mask);
}

bool check_mask(const Call &call)
{
    return call.output_mask->values.size() == outputs
           || refuse(op, text("outputMask has %zu items; expected 3", call.output_mask->values.size()));
}

bool check_gradients(const Call &call)
{
    for (size_t number = 0; number < outputs; ++number) {
        if (call.output_mask->values[number] && !are_present(op, {{gradient_names[number], call.gradients[number]}})) {
            return false;
        }
    }
    return true;
}

// Every tensor that is there, outputs that the mask excludes among them.
template <class Holds>
bool all_hold(const Call &call, const Holds &holds)
{
    const std::array<Named, 9> tensors = {
        Named{"gradOut", call.grad_out},         Named{"input", call.input},
        Named{"mean", call.mean},                Named{"rstd", call.rstd},
        Named{"weightOptional", call.weight},    Named{"biasOptional", call.bias},
        Named{gradient_names[0], call.gradients[0]}, Named{gradient_names[1], call.gradients[1]},
        Named{gradient_names[2], call.gradients[2]}};
    for (const Named &tensor : tensors) {
        if (tensor.tensor != nullptr && !holds(tensor)) {
            return false;
        }
    }
    return true;
}

// Statistics are of one dtype, at least as wide as that of the input; the parameters are of its dtype or FLOAT.
bool check_dtypes(const Call &call)
{
    const auto parameter = [&call](const aclTensor *tensor, const char *named) {
        return tensor == nullptr || tensor->dtype() == ACL_FLOAT
               || has_same_dtype(op, {named, tensor}, {"input", call.input});
    };
    return all_hold(call, [](const Named &tensor) { return has_float_dtype(op, tensor); })
           && has_same_dtype(op, {"gradOut", call.grad_out}, {"input", call.input})
           && has_same_dtype(op, {"rstd", call.rstd}, {"mean", call.mean})
           && (itemsize(call.mean->dtype()) >= itemsize(call.input->dtype())
               || refuse(op, "mean is narrower than input"))
           && parameter(call.weight, "weightOptional") && parameter(call.bias, "biasOptional")
           && (call.weight == nullptr || call.bias == nullptr
               || has_same_dtype(op, {"biasOptional", call.bias}, {"weightOptional", call.weight}));
}

bool check_ranks(const Call &call)
{
    return all_hold(call, [](const Named &tensor) { return has_rank(op, tensor, 1, largest_rank); });
}

bool check_shapes(const Call &call)
{
    const Dims &dims = call.input->dims();
    const Dims &normal = call.normalized_shape->values;
    if (normal.empty() || normal.size() > dims.size()) {
        return refuse(op, text("normalizedShape has %zu items, and input %zu dimensions", normal.size(), dims.size()));
    }
    const auto leading = static_cast<std::ptrdiff_t>(dims.size() - normal.size());
    if (Dims(dims.begin() + leading, dims.end()) != normal) {
        return refuse(op, text("input is %s, normalizedShape %s", to_text(dims).c_str(), to_text(normal).c_str()));
    }
    const int64_t rows = count(dims, 0, static_cast<size_t>(leading));
    for (const Named &tensor : {Named{"mean", call.mean}, Named{"rstd", call.rstd}}) {
        if (tensor.tensor->numel() != rows) {
            return refuse(op, text("%s is %s; expected %lld elements", tensor.name,
                                   to_text(tensor.tensor->dims()).c_str(), static_cast<long long>(rows)));
        }
    }
    const auto parameter = [&normal](const char *named, const aclTensor *tensor) {
        return tensor == nullptr || has_shape(op, {named, tensor}, normal);
    };
    return has_shape(op, {"gradOut", call.grad_out}, dims) && parameter("weightOptional", call.weight)
           && parameter("biasOptional", call.bias) && parameter(gradient_names[1], call.wanted(1))
           && parameter(gradient_names[2], call.wanted(2))
           && (call.wanted(0) == nullptr || has_shape(op, {gradient_names[0], call.wanted(0)}, dims));
}

bool check_not_empty(const Call &call)
{
    return all_hold(call, [](const Named &tensor) {
        return tensor.tensor->numel() > 0 || refuse(op, text("%s is empty", tensor.name));
    });
}

bool check_formats(const Call &call)
{
    return all_hold(call, [](const Named &tensor) { return has_format(op, tensor, {ACL_FORMAT_ND}); });
}

bool check_views(const Call &call)
{
    return all_hold(call, [](const Named &tensor) { return is_view_inside(op, tensor); });
}

// The length of the mask first: what it asks for cannot be known before.
constexpr Step<Call> steps[] = {
    {check_pointers, param_nullptr}, {check_mask, param_invalid},   {check_gradients, param_nullptr},
    {check_dtypes, param_invalid},   {check_formats, param_invalid}, {check_ranks, param_invalid},
    {check_shapes, param_invalid},   {check_not_empty, param_invalid}, {check_views, inner_nullptr},
};

}  // namespace

aclnnStatus LayerNormBackward::check() const
{
    return status_of<Call>(*this, steps);
}

}  // namespace loopback
