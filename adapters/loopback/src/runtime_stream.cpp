// The runtime's calls on streams.
#include "message.h"
#include "state.h"

namespace loopback {
namespace {

constexpr int32_t no_limit = -1;

// The caller holds the mutex.
std::shared_ptr<Stream> make_stream(State &state, const std::shared_ptr<Device> &device)
{
    return std::make_shared<Stream>(device, state.slots[static_cast<size_t>(device->id())].saturates);
}

std::shared_ptr<Stream> default_stream(const char *caller)
{
    const std::shared_ptr<Context> context = current_context(caller);
    if (context == nullptr) {
        return nullptr;
    }
    State &state = State::instance();
    const std::lock_guard<std::mutex> lock(state.mutex);
    if (!context->default_stream) {
        context->default_stream = make_stream(state, context->device);
    }
    return context->default_stream;
}

std::shared_ptr<Stream> take_stream(aclrtStream handle)
{
    State &state = State::instance();
    const std::lock_guard<std::mutex> lock(state.mutex);
    const auto found = state.streams.find(handle);
    if (found == state.streams.end()) {
        return nullptr;
    }
    std::shared_ptr<Stream> stream = std::move(found->second);
    state.streams.erase(found);
    return stream;
}

aclError synchronize(aclrtStream handle, int32_t limit, const char *caller)
{
    const std::shared_ptr<Stream> stream = find_stream(handle, caller);
    if (stream == nullptr) {
        return fail(ACL_ERROR_RT_STREAM_CONTEXT, std::string(caller) + ": no such stream");
    }
    if (!stream->wait(limit)) {
        return fail(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, text("%s: not finished after %d ms", caller, limit));
    }
    const aclError fault = stream->device().fault();
    stream->device().come_to(Device::Poison::after_wait);
    return fault;
}

aclError destroy(aclrtStream handle, bool drop, const char *caller)
{
    const std::shared_ptr<Stream> stream = take_stream(handle);
    if (stream == nullptr) {
        return fail(ACL_ERROR_RT_STREAM_CONTEXT, std::string(caller) + ": no such stream");
    }
    if (drop) {
        stream->abort();
    }
    stream->close();
    return ACL_SUCCESS;
}

}  // namespace

std::shared_ptr<Stream> find_stream(aclrtStream handle, const char *caller)
{
    if (handle == nullptr) {
        return default_stream(caller);
    }
    State &state = State::instance();
    const std::lock_guard<std::mutex> lock(state.mutex);
    const auto found = state.streams.find(handle);
    if (found == state.streams.end()) {
        report(text("%s: %p is not a stream, or one that was destroyed", caller, handle));
        return nullptr;
    }
    return found->second;
}

}  // namespace loopback

using namespace loopback;

extern "C" {

aclError aclrtCreateStream(aclrtStream *handle)
{
    const std::shared_ptr<Context> context = current_context("aclrtCreateStream");
    if (context == nullptr || handle == nullptr) {
        return fail(context == nullptr ? ACL_ERROR_RT_CONTEXT_NULL : ACL_ERROR_RT_PARAM_INVALID, "aclrtCreateStream");
    }
    State &state = State::instance();
    const std::lock_guard<std::mutex> lock(state.mutex);
    std::shared_ptr<Stream> stream = make_stream(state, context->device);
    *handle = stream.get();
    state.streams.emplace(*handle, std::move(stream));
    return ACL_SUCCESS;
}

aclError aclrtDestroyStream(aclrtStream handle)
{
    return destroy(handle, false, "aclrtDestroyStream");
}

aclError aclrtDestroyStreamForce(aclrtStream handle)
{
    return destroy(handle, true, "aclrtDestroyStreamForce");
}

aclError aclrtSynchronizeStream(aclrtStream handle)
{
    return synchronize(handle, no_limit, "aclrtSynchronizeStream");
}

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream handle, int32_t limit)
{
    return synchronize(handle, limit, "aclrtSynchronizeStreamWithTimeout");
}

aclError aclrtSynchronizeDevice(void)
{
    const std::shared_ptr<Context> context = current_context("aclrtSynchronizeDevice");
    if (context == nullptr) {
        return fail(ACL_ERROR_RT_CONTEXT_NULL, "aclrtSynchronizeDevice");
    }
    std::vector<std::shared_ptr<Stream>> streams;
    {
        State &state = State::instance();
        const std::lock_guard<std::mutex> lock(state.mutex);
        for (const auto &[handle, stream] : state.streams) {
            streams.push_back(stream);
        }
        for (const auto &[handle, other] : state.contexts) {
            if (other->default_stream) {
                streams.push_back(other->default_stream);
            }
        }
    }
    for (const std::shared_ptr<Stream> &stream : streams) {
        if (&stream->device() == context->device.get()) {
            stream->wait(no_limit);
        }
    }
    return context->device->fault();
}

aclError aclrtStreamQuery(aclrtStream handle, aclrtStreamStatus *status)
{
    const std::shared_ptr<Stream> stream = find_stream(handle, "aclrtStreamQuery");
    if (stream == nullptr || status == nullptr) {
        return fail(stream == nullptr ? ACL_ERROR_RT_STREAM_CONTEXT : ACL_ERROR_RT_PARAM_INVALID, "aclrtStreamQuery");
    }
    *status = stream->idle() ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
    return ACL_SUCCESS;
}

aclError aclrtStreamAbort(aclrtStream handle)
{
    const std::shared_ptr<Stream> stream = find_stream(handle, "aclrtStreamAbort");
    if (stream == nullptr) {
        return fail(ACL_ERROR_RT_STREAM_CONTEXT, "aclrtStreamAbort: no such stream");
    }
    stream->abort();
    return ACL_SUCCESS;
}
}
