#include "memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "message.h"

namespace loopback {
namespace {

constexpr size_t largest_range = size_t{1} << 40;
constexpr size_t smallest_range = size_t{1} << 32;
constexpr size_t default_total = size_t{16} << 30;
constexpr size_t granule = 512;
constexpr std::align_val_t host_alignment{64};
// Fresh memory holds a pattern and not zeros; of large blocks the beginning has to do.
constexpr size_t filled = size_t{1} << 20;
constexpr int fill_pattern = 0xC5;

size_t total_from_environment()
{
    const char *value = std::getenv("ACLNN_LOOPBACK_MEMORY");
    if (value == nullptr || *value == '\0') {
        return default_total;
    }
    return static_cast<size_t>(std::strtoull(value, nullptr, 10));
}

std::byte *allocate_host(size_t size)
{
    auto *bytes = static_cast<std::byte *>(::operator new(size, host_alignment, std::nothrow));
    if (bytes != nullptr) {
        std::memset(bytes, fill_pattern, std::min(size, filled));
    }
    return bytes;
}

}  // namespace

void HostBytes::operator()(std::byte *bytes) const
{
    ::operator delete(bytes, host_alignment);
}

// Never destroyed: threads of streams may outlive main.
DeviceMemory &DeviceMemory::instance()
{
    static DeviceMemory *const memory = new DeviceMemory;
    return *memory;
}

DeviceMemory::DeviceMemory() : total_(total_from_environment())
{
    for (size_t size = largest_range; size >= smallest_range; size /= 2) {
        void *range = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (range != MAP_FAILED) {
            begin_ = reinterpret_cast<uintptr_t>(range);
            end_ = begin_ + size;
            cursor_ = begin_;
            return;
        }
    }
}

uintptr_t DeviceMemory::first_gap(uintptr_t from, uintptr_t limit, size_t reach) const
{
    uintptr_t at = from;
    auto next = blocks_.upper_bound(at);
    const auto after = [](const Block &block) { return block.end() + granule - block.end() % granule + granule; };
    if (next != blocks_.begin()) {
        at = std::max(at, after(*std::prev(next)->second));
    }
    for (; next != blocks_.end() && next->first < limit; ++next) {
        if (at < next->first && next->first - at >= reach) {
            return at;
        }
        at = after(*next->second);
    }
    return at < limit && limit - at >= reach ? at : 0;
}

// Addresses are used again only when the range has been gone through, so that stale ones do not hit something new.
uintptr_t DeviceMemory::place(size_t reach) const
{
    if (begin_ == 0) {
        return 0;
    }
    const uintptr_t ahead = first_gap(cursor_, end_, reach);
    return ahead != 0 ? ahead : first_gap(begin_, end_, reach);
}

aclError DeviceMemory::allocate(size_t size, int32_t device, void **address)
{
    const std::lock_guard<std::mutex> lock(mutex_);
    if (size > total_ - used_) {
        return fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
                    text("aclrtMalloc: %zu bytes asked for, %zu of %zu are free", size, total_ - used_, total_));
    }
    const size_t reach = (size / granule + 3) * granule;
    const uintptr_t place_found = place(reach);
    std::byte *bytes = place_found != 0 ? allocate_host(size) : nullptr;
    if (bytes == nullptr) {
        return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, text("aclrtMalloc: no %zu bytes on this machine", size));
    }
    auto block = std::make_shared<Block>();
    block->address = place_found;
    block->size = size;
    block->device = device;
    block->bytes.reset(bytes);
    blocks_.emplace(place_found, std::move(block));
    cursor_ = place_found + reach;
    used_ += size;
    *address = reinterpret_cast<void *>(place_found);
    return ACL_SUCCESS;
}

aclError DeviceMemory::release(void *address)
{
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = blocks_.find(reinterpret_cast<uintptr_t>(address));
    if (found == blocks_.end()) {
        return fail(ACL_ERROR_RT_PARAM_INVALID, text("aclrtFree: %p is not the start of an allocation", address));
    }
    used_ -= found->second->size;
    blocks_.erase(found);
    return ACL_SUCCESS;
}

void DeviceMemory::release_all(int32_t device)
{
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto at = blocks_.begin(); at != blocks_.end();) {
        if (at->second->device == device) {
            used_ -= at->second->size;
            at = blocks_.erase(at);
        } else {
            ++at;
        }
    }
}

bool DeviceMemory::owns(const void *address) const
{
    const auto value = reinterpret_cast<uintptr_t>(address);
    return value >= begin_ && value < end_;
}

Span DeviceMemory::find(const void *address, size_t count) const
{
    const auto value = reinterpret_cast<uintptr_t>(address);
    const std::lock_guard<std::mutex> lock(mutex_);
    auto next = blocks_.upper_bound(value);
    if (next == blocks_.begin()) {
        return {};
    }
    const std::shared_ptr<Block> &block = std::prev(next)->second;
    if (value >= block->end() || count > block->end() - value) {
        return {};
    }
    return {block, block->bytes.get() + (value - block->address)};
}

Span DeviceMemory::resolve(const void *address, size_t count, const char *what) const
{
    Span span = find(address, count);
    if (span.bytes == nullptr) {
        throw Fault{ACL_ERROR_RT_AICORE_EXCEPTION,
                    text("%s: %zu bytes at %p are not inside one device allocation", what, count, address)};
    }
    return span;
}

size_t DeviceMemory::used() const
{
    const std::lock_guard<std::mutex> lock(mutex_);
    return used_;
}

}  // namespace loopback
