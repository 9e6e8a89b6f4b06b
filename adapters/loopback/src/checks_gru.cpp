// The documented rules of aclnnGRUBackward's arguments, in the order in which they are looked at.
#include <string>

#include "checks.h"
#include "gru.h"
#include "message.h"

namespace loopback {
namespace {

using Call = GruBackward;
constexpr const char *op = Call::name;
constexpr const char *saved_names[5] = {"r", "z", "n", "h_n", "h"};

bool check_pointers(const Call &call)
{
    if (!are_present(op, {{"input", call.input}}) || !is_present(op, "params", call.params)
        || !is_present(op, "hx", call.hx) || !are_present(op, {{"dy", call.dy}, {"dh", call.dh}})) {
        return false;
    }
    for (size_t number = 0; number < 5; ++number) {
        if (!is_present(op, saved_names[number], call.saved[number])) {
            return false;
        }
    }
    return are_present(op, {{"dxOut", call.dx}, {"dhPrevOut", call.dh_prev}})
           && is_present(op, "dparamsOut", call.dparams);
}

// Every tensor of a list, which goes by `name[0]`, `name[1]`, ...; a null pointer among them holds nothing.
template <class Holds>
bool each_holds(const char *name, const aclTensorList *list, const Holds &holds)
{
    size_t place = 0;
    for (const aclTensor *tensor : list->values) {
        const std::string own = text("%s[%zu]", name, place++);
        if (!are_present(op, {{own.c_str(), tensor}}) || !holds(Named{own.c_str(), tensor})) {
            return false;
        }
    }
    return true;
}

// Every tensor but the sizes of batches.
template <class Holds>
bool all_hold(const Call &call, const Holds &holds)
{
    for (size_t number = 0; number < 5; ++number) {
        if (!each_holds(saved_names[number], call.saved[number], holds)) {
            return false;
        }
    }
    return holds(Named{"input", call.input}) && each_holds("params", call.params, holds)
           && each_holds("hx", call.hx, holds) && holds(Named{"dy", call.dy}) && holds(Named{"dh", call.dh})
           && holds(Named{"dxOut", call.dx}) && holds(Named{"dhPrevOut", call.dh_prev})
           && each_holds("dparamsOut", call.dparams, holds);
}

bool check_dtypes(const Call &call)
{
    const bool sizes = call.batch_sizes == nullptr || has_dtype(op, {"batchSizesOptional", call.batch_sizes}, {ACL_INT64});
    return sizes && all_hold(call, [&call](const Named &tensor) {
        return has_dtype(op, tensor, {ACL_FLOAT, ACL_FLOAT16}) && has_same_dtype(op, tensor, {"input", call.input});
    });
}

bool check_formats(const Call &call)
{
    return all_hold(call, [](const Named &tensor) { return has_format(op, tensor, {ACL_FORMAT_ND}); });
}

bool check_layers(const Call &call)
{
    return call.layers > 0 || refuse(op, text("numLayers is %lld; expected 1 or more", static_cast<long long>(call.layers)));
}

bool has_length(const char *name, const aclTensorList *list, int64_t length)
{
    return static_cast<int64_t>(list->values.size()) == length
           || refuse(op, text("%s has %zu tensors; expected %lld", name, list->values.size(),
                              static_cast<long long>(length)));
}

bool check_lengths(const Call &call)
{
    // A list holds fewer tensors than there is memory for, so that no product of theirs leaves 64 bits.
    const auto most = static_cast<int64_t>(call.params->values.size());
    if (call.layers > most) {
        return refuse(op, text("numLayers is %lld, and params has %lld tensors", static_cast<long long>(call.layers),
                               static_cast<long long>(most)));
    }
    const int64_t cells = call.layers * call.directions();
    for (size_t number = 0; number < 5; ++number) {
        if (!has_length(saved_names[number], call.saved[number], cells)) {
            return false;
        }
    }
    return has_length("params", call.params, cells * call.each()) && has_length("hx", call.hx, 1)
           && has_length("dparamsOut", call.dparams, cells * call.each());
}

bool check_ranks(const Call &call)
{
    return has_rank(op, {"input", call.input}, 3, 3) && has_rank(op, {"dy", call.dy}, 3, 3)
           && has_rank(op, {"dh", call.dh}, 3, 3)
           && each_holds("hx", call.hx, [](const Named &tensor) { return has_rank(op, tensor, 2, 3); });
}

bool check_parameters(const Call &call, const char *name, const aclTensorList *list)
{
    const int64_t hidden = call.dh->dim(2);
    int64_t place = 0;
    return each_holds(name, list, [&](const Named &tensor) {
        const int64_t kind = place % call.each();
        const int64_t width = place++ < call.each() * call.directions() ? call.input->dim(2) : call.directions() * hidden;
        const Dims dims = kind == 0 ? Dims{3 * hidden, width} : kind == 1 ? Dims{3 * hidden, hidden} : Dims{3 * hidden};
        return has_shape(op, tensor, dims);
    });
}

bool check_shapes(const Call &call)
{
    const int64_t steps = call.input->dim(call.batch_first ? 1 : 0);
    const int64_t batch = call.input->dim(call.batch_first ? 0 : 1);
    const int64_t hidden = call.dh->dim(2);
    const int64_t cells = call.layers * call.directions();
    const Dims states{cells, batch, hidden};
    const int64_t wide = call.directions() * hidden;
    const Dims gradient = call.batch_first ? Dims{batch, steps, wide} : Dims{steps, batch, wide};
    for (size_t number = 0; number < 5; ++number) {
        const auto holds = [&](const Named &tensor) { return has_shape(op, tensor, {steps, batch, hidden}); };
        if (!each_holds(saved_names[number], call.saved[number], holds)) {
            return false;
        }
    }
    // A single layer and direction may leave their dimension out, as the document's example does.
    const auto start = [&](const Named &tensor) {
        return has_shape(op, tensor, tensor.tensor->rank() == 2 && cells == 1 ? Dims{batch, hidden} : states);
    };
    return each_holds("hx", call.hx, start) && has_shape(op, {"dy", call.dy}, gradient)
           && has_shape(op, {"dh", call.dh}, states) && check_parameters(call, "params", call.params)
           && has_shape(op, {"dxOut", call.dx}, call.input->dims())
           && has_shape(op, {"dhPrevOut", call.dh_prev}, states)
           && check_parameters(call, "dparamsOut", call.dparams);
}

bool check_batch_sizes(const Call &call)
{
    return call.batch_sizes == nullptr || has_shape(op, {"batchSizesOptional", call.batch_sizes}, {0});
}

bool check_views(const Call &call)
{
    return all_hold(call, [](const Named &tensor) { return is_view_inside(op, tensor); });
}

constexpr Step<Call> steps[] = {
    {check_pointers, param_nullptr}, {check_dtypes, param_invalid}, {check_formats, param_invalid},
    {check_layers, param_invalid},   {check_lengths, param_invalid}, {check_ranks, param_invalid},
    {check_shapes, param_invalid},   {check_batch_sizes, param_invalid}, {check_views, inner_nullptr},
};

}  // namespace

aclnnStatus GruBackward::check() const
{
    return status_of<Call>(*this, steps);
}

}  // namespace loopback
