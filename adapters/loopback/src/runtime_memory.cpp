// The runtime's calls on memory. Direction and bounds of every copy are checked.
#include <cstdlib>
#include <cstring>

#include "message.h"
#include "state.h"

namespace loopback {
namespace {

struct Copy {
    void *dst;
    size_t dst_max;
    const void *src;
    size_t count;
    aclrtMemcpyKind kind;
};

bool kind_has_device(aclrtMemcpyKind kind, bool source, bool is_device)
{
    switch (kind) {
        case ACL_MEMCPY_HOST_TO_HOST:
            return false;
        case ACL_MEMCPY_HOST_TO_DEVICE:
        case ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE:
            return !source;
        case ACL_MEMCPY_DEVICE_TO_HOST:
            return source;
        case ACL_MEMCPY_DEVICE_TO_DEVICE:
        case ACL_MEMCPY_INNER_DEVICE_TO_DEVICE:
        case ACL_MEMCPY_INTER_DEVICE_TO_DEVICE:
            return true;
        case ACL_MEMCPY_DEFAULT:
        default:
            return is_device;
    }
}

aclError check_copy(const Copy &copy, const char *caller)
{
    if (copy.kind < ACL_MEMCPY_HOST_TO_HOST || copy.kind > ACL_MEMCPY_INTER_DEVICE_TO_DEVICE) {
        return fail(ACL_ERROR_RT_PARAM_INVALID, text("%s: kind %d", caller, static_cast<int>(copy.kind)));
    }
    if (copy.dst == nullptr || copy.src == nullptr || copy.count == 0 || copy.count > copy.dst_max) {
        return fail(ACL_ERROR_RT_PARAM_INVALID,
                    text("%s: dst %p (%zu bytes), src %p, count %zu; neither may be null, and count is to be between 1 "
                         "and the size of dst",
                         caller, copy.dst, copy.dst_max, copy.src, copy.count));
    }
    const DeviceMemory &memory = DeviceMemory::instance();
    const bool dst_on_device = memory.owns(copy.dst);
    const bool src_on_device = memory.owns(copy.src);
    if (dst_on_device != kind_has_device(copy.kind, false, dst_on_device)
        || src_on_device != kind_has_device(copy.kind, true, src_on_device)) {
        return fail(ACL_ERROR_RT_PARAM_INVALID,
                    text("%s: kind %d, but dst %p is %s and src %p is %s", caller, static_cast<int>(copy.kind),
                         copy.dst, dst_on_device ? "a device address" : "a host address", copy.src,
                         src_on_device ? "a device address" : "a host address"));
    }
    return ACL_SUCCESS;
}

aclError perform(const Copy &copy, const char *caller)
{
    const DeviceMemory &memory = DeviceMemory::instance();
    Span dst;
    Span src;
    if (memory.owns(copy.dst)) {
        dst = memory.find(copy.dst, copy.count);
    }
    if (memory.owns(copy.src)) {
        src = memory.find(copy.src, copy.count);
    }
    if ((memory.owns(copy.dst) && dst.bytes == nullptr) || (memory.owns(copy.src) && src.bytes == nullptr)) {
        return fail(ACL_ERROR_RT_PARAM_INVALID, text("%s: %zu bytes from %p to %p reach outside an allocation", caller,
                                                     copy.count, copy.src, copy.dst));
    }
    std::memmove(dst.bytes != nullptr ? static_cast<void *>(dst.bytes) : copy.dst,
                 src.bytes != nullptr ? static_cast<const void *>(src.bytes) : copy.src, copy.count);
    return ACL_SUCCESS;
}

// What every call that works on a device needs: a context, and a device that no fault has made unfit.
aclError check_device(const char *caller)
{
    const std::shared_ptr<Context> context = current_context(caller);
    if (context == nullptr) {
        return fail(ACL_ERROR_RT_CONTEXT_NULL, std::string(caller) + ": no context");
    }
    return context->device->fault();
}

aclError check_set(const void *address, size_t max_count, size_t count, const char *caller)
{
    if (address == nullptr || count == 0 || count > max_count || !DeviceMemory::instance().owns(address)) {
        return fail(ACL_ERROR_RT_PARAM_INVALID,
                    text("%s: %zu of %zu bytes at %p; expected a device address and a count between 1 and its size",
                         caller, count, max_count, address));
    }
    return ACL_SUCCESS;
}

aclError perform_set(void *address, int32_t value, size_t count, const char *caller)
{
    const Span span = DeviceMemory::instance().find(address, count);
    if (span.bytes == nullptr) {
        return fail(ACL_ERROR_RT_PARAM_INVALID,
                    text("%s: %zu bytes at %p reach outside an allocation", caller, count, address));
    }
    std::memset(span.bytes, value, count);
    return ACL_SUCCESS;
}

// Work for a stream that reports through a code makes the device unfit, as a kernel's fault does.
void raise_on_failure(aclError error, const char *what)
{
    if (error != ACL_SUCCESS) {
        throw Fault{ACL_ERROR_RT_AICORE_EXCEPTION, text("%s in a stream failed with %d", what, error)};
    }
}

}  // namespace
}  // namespace loopback

using namespace loopback;

extern "C" {

aclError aclrtMalloc(void **address, size_t size, aclrtMemMallocPolicy)
{
    const aclError unfit = check_device("aclrtMalloc");
    if (unfit != ACL_SUCCESS) {
        return unfit;
    }
    if (address == nullptr || size == 0) {
        return fail(ACL_ERROR_RT_PARAM_INVALID,
                    text("aclrtMalloc: %zu bytes; expected at least one, and a place for the address", size));
    }
    return DeviceMemory::instance().allocate(size, current_context("aclrtMalloc")->device->id(), address);
}

aclError aclrtFree(void *address)
{
    if (address == nullptr) {
        return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtFree: a null pointer");
    }
    const aclError released = DeviceMemory::instance().release(address);
    State &state = State::instance();
    const std::lock_guard<std::mutex> lock(state.mutex);
    for (const State::Slot &slot : state.slots) {
        slot.device->come_to(Device::Poison::after_free);
    }
    return released;
}

aclError aclrtMallocHost(void **address, size_t size)
{
    const std::shared_ptr<Context> context = current_context("aclrtMallocHost");
    if (context == nullptr || address == nullptr || size == 0) {
        return fail(context == nullptr ? ACL_ERROR_RT_CONTEXT_NULL : ACL_ERROR_RT_PARAM_INVALID, "aclrtMallocHost");
    }
    *address = std::malloc(size);
    return *address != nullptr ? ACL_SUCCESS : fail(ACL_ERROR_BAD_ALLOC, text("aclrtMallocHost: %zu bytes", size));
}

aclError aclrtFreeHost(void *address)
{
    if (address == nullptr || DeviceMemory::instance().owns(address)) {
        return fail(ACL_ERROR_RT_PARAM_INVALID, text("aclrtFreeHost: %p is not host memory", address));
    }
    std::free(address);
    return ACL_SUCCESS;
}

aclError aclrtMemcpy(void *dst, size_t dst_max, const void *src, size_t count, aclrtMemcpyKind kind)
{
    const Copy copy{dst, dst_max, src, count, kind};
    const aclError unfit = check_device("aclrtMemcpy");
    if (unfit != ACL_SUCCESS) {
        return unfit;
    }
    const aclError wrong = check_copy(copy, "aclrtMemcpy");
    return wrong != ACL_SUCCESS ? wrong : perform(copy, "aclrtMemcpy");
}

aclError aclrtMemcpyAsync(void *dst, size_t dst_max, const void *src, size_t count, aclrtMemcpyKind kind,
                          aclrtStream handle)
{
    const Copy copy{dst, dst_max, src, count, kind};
    const aclError wrong = check_copy(copy, "aclrtMemcpyAsync");
    if (wrong != ACL_SUCCESS) {
        return wrong;
    }
    const std::shared_ptr<Stream> stream = find_stream(handle, "aclrtMemcpyAsync");
    if (stream == nullptr) {
        return fail(ACL_ERROR_RT_STREAM_CONTEXT, "aclrtMemcpyAsync: no such stream");
    }
    stream->enqueue([copy] { raise_on_failure(perform(copy, "aclrtMemcpyAsync"), "a copy"); });
    return ACL_SUCCESS;
}

aclError aclrtMemset(void *address, size_t max_count, int32_t value, size_t count)
{
    const aclError unfit = check_device("aclrtMemset");
    if (unfit != ACL_SUCCESS) {
        return unfit;
    }
    const aclError wrong = check_set(address, max_count, count, "aclrtMemset");
    return wrong != ACL_SUCCESS ? wrong : perform_set(address, value, count, "aclrtMemset");
}

aclError aclrtMemsetAsync(void *address, size_t max_count, int32_t value, size_t count, aclrtStream handle)
{
    const aclError wrong = check_set(address, max_count, count, "aclrtMemsetAsync");
    if (wrong != ACL_SUCCESS) {
        return wrong;
    }
    const std::shared_ptr<Stream> stream = find_stream(handle, "aclrtMemsetAsync");
    if (stream == nullptr) {
        return fail(ACL_ERROR_RT_STREAM_CONTEXT, "aclrtMemsetAsync: no such stream");
    }
    stream->enqueue([=] { raise_on_failure(perform_set(address, value, count, "aclrtMemsetAsync"), "a memset"); });
    return ACL_SUCCESS;
}

aclError aclrtGetMemInfo(aclrtMemAttr, size_t *free_bytes, size_t *total)
{
    const std::shared_ptr<Context> context = current_context("aclrtGetMemInfo");
    if (context == nullptr || free_bytes == nullptr || total == nullptr) {
        return fail(context == nullptr ? ACL_ERROR_RT_CONTEXT_NULL : ACL_ERROR_RT_PARAM_INVALID, "aclrtGetMemInfo");
    }
    const DeviceMemory &memory = DeviceMemory::instance();
    *total = memory.total();
    *free_bytes = memory.total() - memory.used();
    return ACL_SUCCESS;
}
}
