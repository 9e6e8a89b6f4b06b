// The documented rules of aclnnRmsNormGrad's arguments, in the order in which they are looked at: pointers, then dtypes
// and formats, then all that a tiling rejects.
#include <array>

#include "checks.h"
#include "dtype.h"
#include "message.h"
#include "rms_norm.h"

namespace loopback {
namespace {

using Call = RmsNormGrad;
constexpr const char *op = Call::name;
constexpr size_t largest_rank = 8;
constexpr int64_t smallest_last_axis_bytes = 32;

std::array<Named, 6> all(const Call &call)
{
    return {Named{"dy", call.dy},       Named{"x", call.x},      Named{"rstd", call.rstd},
            Named{"gamma", call.gamma}, Named{"dxOut", call.dx}, Named{"dgammaOut", call.dgamma}};
}

template <class Holds>
bool all_hold(const Call &call, const Holds &holds)
{
    for (const Named &tensor : all(call)) {
        if (!holds(tensor)) {
            return false;
        }
    }
    return true;
}

bool check_pointers(const Call &call)
{
    return all_hold(call, [](const Named &tensor) { return are_present(op, {tensor}); });
}

bool check_product(const Call &)
{
    return is_on(op, {Product::inference, Product::a2});
}

// dtypes of dy, x, rstd, gamma, dxOut and dgammaOut together.
using Row = std::array<int32_t, 6>;

constexpr Row rows_of_a2[] = {
    {ACL_FLOAT16, ACL_FLOAT16, ACL_FLOAT, ACL_FLOAT, ACL_FLOAT16, ACL_FLOAT},
    {ACL_BF16, ACL_BF16, ACL_FLOAT, ACL_FLOAT, ACL_BF16, ACL_FLOAT},
    {ACL_FLOAT16, ACL_FLOAT16, ACL_FLOAT, ACL_FLOAT16, ACL_FLOAT16, ACL_FLOAT},
    {ACL_FLOAT, ACL_FLOAT, ACL_FLOAT, ACL_FLOAT, ACL_FLOAT, ACL_FLOAT},
    {ACL_BF16, ACL_BF16, ACL_FLOAT, ACL_BF16, ACL_BF16, ACL_FLOAT},
};

constexpr Row rows_of_inference[] = {
    {ACL_FLOAT16, ACL_FLOAT16, ACL_FLOAT, ACL_FLOAT16, ACL_FLOAT16, ACL_FLOAT},
    {ACL_FLOAT, ACL_FLOAT, ACL_FLOAT, ACL_FLOAT, ACL_FLOAT, ACL_FLOAT},
};

template <size_t N>
bool contains(const Row (&rows)[N], const Row &row)
{
    for (const Row &known : rows) {
        if (known == row) {
            return true;
        }
    }
    return false;
}

bool check_dtypes(const Call &call)
{
    Row row{};
    std::string names;
    size_t place = 0;
    for (const Named &tensor : all(call)) {
        row[place++] = tensor.tensor->dtype();
        names += std::string(" ") + dtype_name(tensor.tensor->dtype());
    }
    const bool known = soc()->product == Product::a2 ? contains(rows_of_a2, row) : contains(rows_of_inference, row);
    return known || refuse(op, text("%s has no row of dtypes", soc()->name) + names);
}

// ND is printed, and the example makes every tensor in NCDHW: both are taken.
bool check_formats(const Call &call)
{
    return all_hold(call, [](const Named &tensor) { return has_format(op, tensor, {ACL_FORMAT_ND, ACL_FORMAT_NCDHW}); });
}

bool check_ranks(const Call &call)
{
    return all_hold(call, [](const Named &tensor) { return has_rank(op, tensor, 1, largest_rank); });
}

bool check_same_shapes(const Call &call)
{
    return has_shape(op, {"x", call.x}, call.dy->dims()) && has_shape(op, {"dxOut", call.dx}, call.dy->dims())
           && has_shape(op, {"dgammaOut", call.dgamma}, call.gamma->dims());
}

// gamma has the trailing axes of x.
bool check_gamma_shape(const Call &call)
{
    const Dims &dims = call.x->dims();
    if (call.gamma->rank() > dims.size()) {
        return refuse(op, "gamma has more dimensions than x");
    }
    return has_shape(op, {"gamma", call.gamma},
                     Dims(dims.end() - static_cast<std::ptrdiff_t>(call.gamma->rank()), dims.end()));
}

// rstd has the leading axes of x that gamma lacks. The example leaves one of them out, so that only the number of its
// elements binds an rstd with another number of axes.
bool check_rstd_shape(const Call &call)
{
    const size_t leading = call.x->rank() - call.gamma->rank();
    const Dims expected(call.x->dims().begin(), call.x->dims().begin() + static_cast<std::ptrdiff_t>(leading));
    if (call.rstd->rank() == leading) {
        return has_shape(op, {"rstd", call.rstd}, expected);
    }
    return call.rstd->numel() == count(expected)
           || refuse(op,
                     text("rstd is %s; expected %s", to_text(call.rstd->dims()).c_str(), to_text(expected).c_str()));
}

bool check_not_empty(const Call &call)
{
    return all_hold(call, [](const Named &tensor) {
        return tensor.tensor->numel() > 0 || refuse(op, text("%s is empty", tensor.name));
    });
}

bool check_contiguous(const Call &call)
{
    const std::array<Named, 6> tensors = all(call);
    for (size_t input = 0; input < 4; ++input) {
        if (!tensors[input].tensor->is_contiguous()) {
            return refuse(op, text("%s is not contiguous", tensors[input].name));
        }
    }
    return true;
}

bool check_last_axis(const Call &call)
{
    if (soc()->product != Product::inference) {
        return true;
    }
    for (const Named &tensor : {Named{"x", call.x}, Named{"dy", call.dy}, Named{"gamma", call.gamma}}) {
        const auto size = static_cast<int64_t>(itemsize(tensor.tensor->dtype()));
        if (!has_dims_between(op, tensor, tensor.tensor->rank() - 1, smallest_last_axis_bytes / size, int64_max)) {
            return false;
        }
    }
    return true;
}

bool check_views(const Call &call)
{
    return is_view_inside(op, {"dxOut", call.dx}) && is_view_inside(op, {"dgammaOut", call.dgamma});
}

constexpr Step<Call> steps[] = {
    {check_pointers, param_nullptr},         {check_product, inner_find_kernel_error},
    {check_dtypes, param_invalid},           {check_formats, inner_tiling_error},
    {check_ranks, inner_tiling_error},       {check_same_shapes, inner_tiling_error},
    {check_gamma_shape, inner_tiling_error}, {check_rstd_shape, inner_tiling_error},
    {check_not_empty, inner_tiling_error},   {check_contiguous, inner_tiling_error},
    {check_last_axis, inner_tiling_error},   {check_views, inner_tiling_error},
};

}  // namespace

aclnnStatus RmsNormGrad::check() const
{
    return status_of<Call>(*this, steps);
}

}  // namespace loopback
