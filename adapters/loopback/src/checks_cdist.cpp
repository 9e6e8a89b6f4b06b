// The documented rules of aclnnCdistBackward's arguments, in the order in which they are looked at.
#include "cdist.h"
#include "checks.h"
#include "message.h"

namespace loopback {
namespace {

using Call = CdistBackward;
constexpr const char *op = Call::name;
constexpr size_t least_rank = 2;
constexpr size_t largest_rank = 7;

bool check_pointers(const Call &call)
{
    return are_present(
        op, {{"grad", call.grad}, {"x1", call.x1}, {"x2", call.x2}, {"cdist", call.cdist}, {"out", call.out}});
}

bool check_dtypes(const Call &call)
{
    const Named grad{"grad", call.grad};
    return has_float_dtype(op, grad) && has_same_dtype(op, {"x1", call.x1}, grad)
           && has_same_dtype(op, {"x2", call.x2}, grad) && has_same_dtype(op, {"cdist", call.cdist}, grad)
           && has_same_dtype(op, {"out", call.out}, grad);
}

bool check_formats(const Call &call)
{
    for (const Named &tensor : {Named{"grad", call.grad}, Named{"x1", call.x1}, Named{"x2", call.x2},
                                Named{"cdist", call.cdist}, Named{"out", call.out}}) {
        if (!has_format(op, tensor, {ACL_FORMAT_ND})) {
            return false;
        }
    }
    return true;
}

bool check_ranks(const Call &call)
{
    return has_rank(op, {"grad", call.grad}, least_rank, largest_rank)
           && has_rank(op, {"x1", call.x1}, call.grad->rank(), call.grad->rank())
           && has_rank(op, {"x2", call.x2}, call.grad->rank(), call.grad->rank());
}

bool check_sizes(const Call &call)
{
    return has_no_negative_dim(op, {"grad", call.grad}) && has_no_negative_dim(op, {"x1", call.x1})
           && has_no_negative_dim(op, {"x2", call.x2});
}

bool check_x1_shape(const Call &call)
{
    Dims dims = call.grad->dims();
    dims.back() = call.x1->dims().back();
    return has_shape(op, {"x1", call.x1}, dims);
}

bool check_x2_shape(const Call &call)
{
    const size_t rank = call.grad->rank();
    for (size_t axis = 0; axis < rank - 2; ++axis) {
        const int64_t size = call.x2->dims()[axis];
        if (size != 1 && size != call.grad->dims()[axis]) {
            return refuse(op, text("x2 has %lld in dimension %lld; expected 1 or that of grad",
                                   static_cast<long long>(size), static_cast<long long>(axis)));
        }
    }
    return has_dim(op, {"x2", call.x2}, rank - 2, call.grad->dims().back())
           && has_dim(op, {"x2", call.x2}, rank - 1, call.x1->dims().back());
}

bool check_other_shapes(const Call &call)
{
    return has_shape(op, {"cdist", call.cdist}, call.grad->dims()) && has_shape(op, {"out", call.out}, call.x1->dims());
}

bool check_views(const Call &call)
{
    return is_view_inside(op, {"grad", call.grad}) && is_view_inside(op, {"x1", call.x1})
           && is_view_inside(op, {"x2", call.x2}) && is_view_inside(op, {"cdist", call.cdist})
           && is_view_inside(op, {"out", call.out});
}

constexpr Step<Call> steps[] = {
    {check_pointers, param_nullptr}, {check_dtypes, param_invalid},       {check_formats, param_invalid},
    {check_ranks, param_invalid},    {check_sizes, param_invalid},        {check_x1_shape, param_invalid},
    {check_x2_shape, param_invalid}, {check_other_shapes, param_invalid}, {check_views, inner_nullptr},
};

}  // namespace

aclnnStatus CdistBackward::check() const
{
    return status_of<Call>(*this, steps);
}

}  // namespace loopback
