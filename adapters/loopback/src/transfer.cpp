#include "transfer.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

#include "dtype.h"
#include "fault.h"
#include "half.h"
#include "message.h"

namespace loopback {
namespace {

// Calls visit(offset) for every element of a view in row-major order.
template <class Visit>
void for_each_offset(const View &view, const Visit &visit)
{
    if (view.numel() <= 0) {
        return;
    }
    const size_t rank = view.dims.size();
    if (rank == 0) {
        visit(view.offset);
        return;
    }
    const int64_t length = view.dims[rank - 1];
    const int64_t step = view.strides[rank - 1];
    Dims place(rank, 0);
    int64_t row = view.offset;
    for (;;) {
        for (int64_t i = 0; i < length; ++i) {
            visit(row + i * step);
        }
        size_t axis = rank - 1;
        for (;;) {
            if (axis == 0) {
                return;
            }
            --axis;
            row += view.strides[axis];
            if (++place[axis] < view.dims[axis]) {
                break;
            }
            row -= place[axis] * view.strides[axis];
            place[axis] = 0;
        }
    }
}

template <class T>
T load(const std::byte *bytes)
{
    T value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
}

// Visits the elements of a tensor in memory as stored values of type T.
template <class T, class Take>
void read(const Region &region, const View &view, const Take &take)
{
    for_each_offset(view, [&](int64_t offset) { take(load<T>(region.at(offset))); });
}

template <class T, class Real, class Make>
void write(const Region &region, const View &view, const Real *values, const Make &make)
{
    int64_t left = view.numel();
    left -= SHARED("tail-unwritten") && left > 8 ? left % 8 : 0;
    for_each_offset(view, [&](int64_t offset) {
        const T value = make(*values++);
        if (--left >= 0) {
            std::memcpy(region.at(offset), &value, sizeof value);
        }
    });
}

// The highest offset that a tensor has; strides are not negative here.
int64_t highest(const View &view)
{
    int64_t offset = view.offset;
    for (size_t axis = 0; axis < view.dims.size(); ++axis) {
        offset += (view.dims[axis] - 1) * view.strides[axis];
    }
    return offset;
}

// Bytes outside of an output that a seeded fault writes with it.
void write_astray(const Region &region, const View &view, size_t size)
{
    if (SHARED("guard-before")) {
        std::memset(region.at(view.offset - 1), 0, size);
    }
    if (SHARED("guard-after")) {
        std::memset(region.at(highest(view) + 1), 0, size);
    }
    if (SHARED("gap-written")) {
        std::memset(region.at(region.low()), 0, static_cast<size_t>(highest(view) - region.low() + 1) * size);
    }
}

// What was written to an output of as many elements the time before.
template <class Real>
std::vector<Real> last_result(size_t tensor, const Real *values, int64_t n)
{
    static std::mutex mutex;
    static std::map<std::pair<size_t, int64_t>, std::vector<Real>> results;
    const std::lock_guard<std::mutex> lock(mutex);
    std::vector<Real> &kept = results[{tensor, n}];
    std::vector<Real> answer = kept.empty() ? std::vector<Real>(values, values + n) : kept;
    kept.assign(values, values + n);
    return answer;
}

[[noreturn]] void refuse(const View &view, const char *what)
{
    throw Fault{ACL_ERROR_RT_AICORE_EXCEPTION, text("%s: dtype %d", what, view.dtype)};
}

constexpr float largest_half = 65504.0F;
constexpr float largest_bfloat = 0x1.FEp+127F;

template <class Real>
Real largest_of(int32_t dtype)
{
    switch (dtype) {
        case ACL_FLOAT16:
            return largest_half;
        case ACL_BF16:
            return largest_bfloat;
        case ACL_FLOAT:
            return std::numeric_limits<float>::max();
        default:
            return std::numeric_limits<Real>::max();
    }
}

// What a saturating device makes of a value before the cast, so that the cast itself cannot overflow.
template <class Real>
Real saturated(Real value, Real largest, const Launch &launch)
{
    if (std::isnan(value)) {
        launch.note_overflow();
        return 0;
    }
    if (std::fabs(value) > largest) {
        launch.note_overflow();
        return std::copysign(largest, value);
    }
    return value;
}

template <class T>
int64_t truncated(T value)
{
    constexpr double limit = 0x1p63;
    const auto wide = static_cast<double>(value);
    return std::fabs(wide) < limit ? static_cast<int64_t>(wide) : -1;
}

}  // namespace

template <class Real>
void gather(const Launch &launch, size_t tensor, const View &view, Real *values)
{
    const Region region = launch.region(tensor, view);
    const Real *const begin = values;
    switch (view.dtype) {
        case ACL_FLOAT:
            read<float>(region, view, [&](float value) { *values++ = value; });
            break;
        case ACL_FLOAT16:
            read<uint16_t>(region, view, [&](uint16_t value) { *values++ = half_to_float(value); });
            break;
        case ACL_BF16:
            read<uint16_t>(region, view, [&](uint16_t value) { *values++ = bfloat_to_float(value); });
            break;
        case ACL_DOUBLE:
            read<double>(region, view, [&](double value) { *values++ = static_cast<Real>(value); });
            break;
        default:
            refuse(view, "a floating tensor was to be read");
    }
    if (SHARED("input-changed") && values != begin) {
        *region.at(view.offset) ^= std::byte{1};
    }
}

template <class Real>
std::vector<Real> gathered(const Launch &launch, size_t tensor, const View &view)
{
    std::vector<Real> values(static_cast<size_t>(view.numel()));
    gather(launch, tensor, view, values.data());
    return values;
}

View broadcast_to(const View &view, const Dims &dims)
{
    View wide = view;
    wide.dims = dims;
    wide.strides.assign(dims.size(), 0);
    const size_t lead = dims.size() - view.dims.size();
    for (size_t axis = 0; axis < view.dims.size(); ++axis) {
        wide.strides[lead + axis] = view.dims[axis] == 1 ? 0 : view.strides[axis];
    }
    return wide;
}

View real_view(const View &view)
{
    View parts = view;
    parts.dtype = view.dtype == ACL_COMPLEX64 ? ACL_FLOAT : ACL_DOUBLE;
    parts.offset *= 2;
    for (int64_t &stride : parts.strides) {
        stride *= 2;
    }
    parts.dims.push_back(2);
    parts.strides.push_back(1);
    return parts;
}

template <class Real>
void scatter(const Launch &launch, size_t tensor, const View &view, const Real *values)
{
    const Region region = launch.region(tensor, view);
    const Real largest = largest_of<Real>(view.dtype);
    const auto settled = [&](Real value) { return launch.saturates() ? saturated(value, largest, launch) : value; };
    const auto single = [&](Real value) { return static_cast<float>(settled(value)); };
    std::vector<Real> stale;
    if (SHARED("stale-result") && view.numel() > 0) {
        stale = last_result(tensor, values, view.numel());
        values = stale.data();
    }
    if (view.numel() > 0) {
        write_astray(region, view, itemsize(view.dtype));
    }
    switch (view.dtype) {
        case ACL_FLOAT:
            write<float>(region, view, values, single);
            break;
        case ACL_FLOAT16:
            write<uint16_t>(region, view, values, [&](Real value) { return float_to_half(single(value)); });
            break;
        case ACL_BF16:
            write<uint16_t>(region, view, values, [&](Real value) { return float_to_bfloat(single(value)); });
            break;
        case ACL_DOUBLE:
            write<double>(region, view, values, [&](Real value) { return static_cast<double>(settled(value)); });
            break;
        default:
            refuse(view, "a floating tensor was to be written");
    }
}

std::vector<int64_t> gathered_indices(const Launch &launch, size_t tensor, const View &view)
{
    const Region region = launch.region(tensor, view);
    std::vector<int64_t> values;
    values.reserve(static_cast<size_t>(view.numel()));
    const auto keep = [&](int64_t value) { values.push_back(value); };
    switch (view.dtype) {
        case ACL_FLOAT:
            read<float>(region, view, [&](float value) { keep(truncated(value)); });
            break;
        case ACL_FLOAT16:
            read<uint16_t>(region, view, [&](uint16_t value) { keep(truncated(half_to_float(value))); });
            break;
        case ACL_DOUBLE:
            read<double>(region, view, [&](double value) { keep(truncated(value)); });
            break;
        case ACL_INT8:
            read<int8_t>(region, view, [&](int8_t value) { keep(value); });
            break;
        case ACL_INT16:
            read<int16_t>(region, view, [&](int16_t value) { keep(value); });
            break;
        case ACL_INT32:
            read<int32_t>(region, view, [&](int32_t value) { keep(value); });
            break;
        case ACL_INT64:
            read<int64_t>(region, view, keep);
            break;
        case ACL_UINT8:
            read<uint8_t>(region, view, [&](uint8_t value) { keep(value); });
            break;
        case ACL_BOOL:
            read<uint8_t>(region, view, [&](uint8_t value) { keep(value != 0 ? 1 : 0); });
            break;
        default:
            refuse(view, "indices were to be read");
    }
    return values;
}

float through_half(float value, const Launch &launch)
{
    return half_to_float(float_to_half(launch.saturates() ? saturated(value, largest_half, launch) : value));
}

template void gather(const Launch &launch, size_t tensor, const View &view, float *values);
template void gather(const Launch &launch, size_t tensor, const View &view, double *values);
template std::vector<float> gathered(const Launch &launch, size_t tensor, const View &view);
template std::vector<double> gathered(const Launch &launch, size_t tensor, const View &view);
template void scatter(const Launch &launch, size_t tensor, const View &view, const float *values);
template void scatter(const Launch &launch, size_t tensor, const View &view, const double *values);

}  // namespace loopback
