#include "plan.h"

#include <cstring>

#include "dtype.h"
#include "fault.h"
#include "message.h"

namespace loopback {
namespace {

constexpr uint64_t alignment = 32;
constexpr Wide largest_reach = int64_t{1} << 48;

}  // namespace

Region Launch::region(size_t tensor, const View &view) const
{
    if (view.numel() <= 0) {
        return {};
    }
    Wide low = view.offset;
    Wide high = view.offset;
    for (size_t axis = 0; axis < view.dims.size(); ++axis) {
        const Wide reach = (static_cast<Wide>(view.dims[axis]) - 1) * view.strides[axis];
        (reach < 0 ? low : high) += reach;
        if (low < -largest_reach || high > largest_reach) {
            throw Fault{ACL_ERROR_RT_AICORE_EXCEPTION, "a kernel's tensor reaches further than any memory"};
        }
    }
    const size_t size = itemsize(view.dtype);
    const auto first = static_cast<int64_t>(low);
    const uintptr_t address = reinterpret_cast<uintptr_t>(addresses_[tensor]) + static_cast<uintptr_t>(first) * size;
    const size_t bytes = static_cast<size_t>(high - low + 1) * size;
    Span span = DeviceMemory::instance().resolve(reinterpret_cast<void *>(address), bytes, "a kernel's tensor");
    return Region(std::move(span), first, size);
}

Span Launch::workspace(uint64_t size) const
{
    if (size == 0) {
        return {};
    }
    if (reinterpret_cast<uintptr_t>(workspace_) % alignment != 0) {
        throw Fault{ACL_ERROR_RT_AICORE_EXCEPTION, text("the workspace %p is not aligned to 32 bytes", workspace_)};
    }
    const Span span = DeviceMemory::instance().resolve(workspace_, size, "a kernel's workspace");
    if (SHARED("workspace-overrun")) {
        const void *end = static_cast<std::byte *>(workspace_) + size;
        std::memset(DeviceMemory::instance().resolve(end, sizeof(float), "beyond the workspace").bytes, 0,
                    sizeof(float));
    }
    return span;
}

uint64_t Layout::add(int64_t elements, uint64_t bytes_each)
{
    const uint64_t offset = size_;
    const uint64_t bytes = saturating_product(static_cast<uint64_t>(elements), bytes_each);
    const uint64_t end = saturating_sum(saturating_sum(offset, bytes), alignment - 1);
    size_ = end / alignment * alignment;
    return offset;
}

}  // namespace loopback
