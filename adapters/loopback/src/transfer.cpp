#include "transfer.h"

#include <cmath>
#include <cstring>
#include <limits>

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

template <class T, class Make>
void write(const Region &region, const View &view, const float *values, const Make &make)
{
    for_each_offset(view, [&](int64_t offset) {
        const T value = make(*values++);
        std::memcpy(region.at(offset), &value, sizeof value);
    });
}

[[noreturn]] void refuse(const View &view, const char *what)
{
    throw Fault{ACL_ERROR_RT_AICORE_EXCEPTION, text("%s: dtype %d", what, view.dtype)};
}

constexpr float largest_half = 65504.0F;
constexpr float largest_bfloat = 0x1.FEp+127F;

float largest_of(int32_t dtype)
{
    switch (dtype) {
        case ACL_FLOAT16:
            return largest_half;
        case ACL_BF16:
            return largest_bfloat;
        default:
            return std::numeric_limits<float>::max();
    }
}

// What a saturating device makes of a value before the cast, so that the cast itself cannot overflow.
float saturated(float value, float largest, const Launch &launch)
{
    if (std::isnan(value)) {
        launch.note_overflow();
        return 0.0F;
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

void gather(const Launch &launch, size_t tensor, const View &view, float *values)
{
    const Region region = launch.region(tensor, view);
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
            read<double>(region, view, [&](double value) { *values++ = static_cast<float>(value); });
            break;
        default:
            refuse(view, "a floating tensor was to be read");
    }
}

std::vector<float> gathered(const Launch &launch, size_t tensor, const View &view)
{
    std::vector<float> values(static_cast<size_t>(view.numel()));
    gather(launch, tensor, view, values.data());
    return values;
}

void scatter(const Launch &launch, size_t tensor, const View &view, const float *values)
{
    const Region region = launch.region(tensor, view);
    const float largest = largest_of(view.dtype);
    const auto settled = [&](float value) { return launch.saturates() ? saturated(value, largest, launch) : value; };
    switch (view.dtype) {
        case ACL_FLOAT:
            write<float>(region, view, values, [&](float value) { return settled(value); });
            break;
        case ACL_FLOAT16:
            write<uint16_t>(region, view, values, [&](float value) { return float_to_half(settled(value)); });
            break;
        case ACL_BF16:
            write<uint16_t>(region, view, values, [&](float value) { return float_to_bfloat(settled(value)); });
            break;
        case ACL_DOUBLE:
            write<double>(region, view, values, [&](float value) { return static_cast<double>(settled(value)); });
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

}  // namespace loopback
