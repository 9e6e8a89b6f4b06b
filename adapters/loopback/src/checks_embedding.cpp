// The documented rules of aclnnEmbeddingDenseBackward's arguments, in the order in which they are looked at.
#include "checks.h"
#include "dtype.h"
#include "embedding.h"
#include "message.h"

namespace loopback {
namespace {

using Call = EmbeddingDenseBackward;
constexpr const char *op = Call::name;
constexpr size_t largest_rank = 8;

bool check_pointers(const Call &call)
{
    return are_present(op, {{"grad", call.grad}, {"indices", call.indices}, {"out", call.out}});
}

bool check_product(const Call &)
{
    return is_on(op, {Product::training, Product::a2});
}

bool check_grad_dtype(const Call &call)
{
    return has_float_dtype(op, {"grad", call.grad});
}

bool check_indices_dtype(const Call &call)
{
    return has_dtype(
        op, {"indices", call.indices},
        {ACL_FLOAT, ACL_FLOAT16, ACL_DOUBLE, ACL_INT32, ACL_INT64, ACL_INT16, ACL_INT8, ACL_UINT8, ACL_BOOL});
}

bool check_out_dtype(const Call &call)
{
    return has_float_dtype(op, {"out", call.out}) && has_same_dtype(op, {"out", call.out}, {"grad", call.grad});
}

// What "2D" means for the format of out is not said: any that is not private is taken.
bool check_formats(const Call &call)
{
    return has_format(op, {"grad", call.grad}, {ACL_FORMAT_ND})
           && has_format(op, {"indices", call.indices}, {ACL_FORMAT_ND})
           && (!is_private_format(call.out->format) || refuse(op, "out has a private format"));
}

bool check_ranks(const Call &call)
{
    return has_rank(op, {"grad", call.grad}, 2, largest_rank) && has_rank(op, {"indices", call.indices}, 1, largest_rank);
}

bool check_sizes(const Call &call)
{
    return has_no_negative_dim(op, {"grad", call.grad}) && has_no_negative_dim(op, {"indices", call.indices});
}

// All axes of grad but the last, taken together, are those of indices.
bool check_rows(const Call &call)
{
    const size_t last = call.grad->rank() - 1;
    const int64_t rows = count(call.grad->dims(), 0, last);
    return call.grad->dim(last) == 0 || rows == call.indices->numel()
           || refuse(op, text("grad has %lld rows for %lld indices", static_cast<long long>(rows),
                              static_cast<long long>(call.indices->numel())));
}

bool check_out_rank(const Call &call)
{
    return has_rank(op, {"out", call.out}, 2, 2);
}

bool check_out_rows(const Call &call)
{
    return (call.out->dim(0) >= 0 && static_cast<uint64_t>(call.out->dim(0)) == call.num_weights)
           || refuse(op, text("out has %lld rows; expected numWeights, %llu", static_cast<long long>(call.out->dim(0)),
                              static_cast<unsigned long long>(call.num_weights)));
}

bool check_out_columns(const Call &call)
{
    return has_dim(op, {"out", call.out}, 1, call.grad->dim(call.grad->rank() - 1));
}

// On the training series a scaled gradient must fit the local memory of a core beside its share of the counts.
bool check_embedding_dim(const Call &call)
{
    if (!call.scale_grad_by_freq || soc()->product != Product::training) {
        return true;
    }
    const int32_t dtype = call.indices->dtype();
    if (dtype != ACL_INT32 && dtype != ACL_INT64) {
        return true;
    }
    const auto cores = static_cast<uint64_t>(soc()->ai_cores);
    const Wide counts = static_cast<Wide>(call.num_weights / cores) + call.num_weights % cores;
    const Wide left = 180192 - (dtype == ACL_INT32 ? 4 : 8) * counts;
    const Wide needed = static_cast<Wide>(call.grad->dim(call.grad->rank() - 1)) * (dtype == ACL_INT32 ? 36 : 20);
    return needed < left
           || refuse(op, "scaleGradByFreq: the last dimension of grad is too large for numWeights on this chip");
}

bool check_views(const Call &call)
{
    return is_view_inside(op, {"grad", call.grad}) && is_view_inside(op, {"indices", call.indices})
           && is_view_inside(op, {"out", call.out});
}

constexpr Step<Call> steps[] = {
    {check_pointers, param_nullptr},      {check_product, inner_find_kernel_error},
    {check_grad_dtype, param_invalid},    {check_indices_dtype, param_invalid},
    {check_out_dtype, param_invalid},     {check_formats, param_invalid},
    {check_ranks, param_invalid},         {check_sizes, param_invalid},
    {check_rows, param_invalid},          {check_out_rank, param_invalid},
    {check_out_rows, param_invalid},      {check_out_columns, param_invalid},
    {check_embedding_dim, param_invalid}, {check_views, inner_nullptr},
};

}  // namespace

aclnnStatus EmbeddingDenseBackward::check() const
{
    return status_of<Call>(*this, steps);
}

}  // namespace loopback
