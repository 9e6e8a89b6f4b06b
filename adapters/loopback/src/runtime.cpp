#include "runtime.h"

#include <cstdlib>

#include "message.h"
#include "product.h"
#include "state.h"

namespace loopback {
namespace {

thread_local aclrtContext current = nullptr;

size_t device_count()
{
    const char *value = std::getenv("ACLNN_LOOPBACK_DEVICES");
    const long count = value != nullptr && *value != '\0' ? std::strtol(value, nullptr, 10) : 1;
    return count < 1 || count > 64 ? 1 : static_cast<size_t>(count);
}

// The caller holds the mutex.
aclrtContext add_context(State &state, const std::shared_ptr<Device> &device)
{
    auto context = std::make_shared<Context>();
    context->device = device;
    aclrtContext handle = context.get();
    state.contexts.emplace(handle, std::move(context));
    return handle;
}

bool is_initialised(const State &state, const char *caller)
{
    if (state.initialised == 0 && !state.operators_initialised) {
        report(std::string(caller) + ": called before aclInit");
        return false;
    }
    return true;
}

}  // namespace

State &State::instance()
{
    static State *const state = new State;
    return *state;
}

State::State()
{
    const Soc *chip = soc();
    for (size_t id = 0; id < device_count(); ++id) {
        Slot slot;
        slot.device = std::make_shared<Device>(static_cast<int32_t>(id));
        slot.saturates = chip != nullptr && chip->saturates_only();
        slots.push_back(std::move(slot));
    }
}

State::Slot *find_slot(int64_t id, const char *caller)
{
    State &state = State::instance();
    if (id < 0 || static_cast<size_t>(id) >= state.slots.size()) {
        report(text("%s: device %lld does not exist; there are %zu", caller, static_cast<long long>(id),
                    state.slots.size()));
        return nullptr;
    }
    return &state.slots[static_cast<size_t>(id)];
}

void clear_device(int32_t id)
{
    State &state = State::instance();
    std::vector<std::shared_ptr<Stream>> streams;
    {
        const std::lock_guard<std::mutex> lock(state.mutex);
        State::Slot &slot = state.slots[static_cast<size_t>(id)];
        for (auto at = state.streams.begin(); at != state.streams.end();) {
            const bool ours = at->second->device().id() == id;
            if (ours) {
                streams.push_back(at->second);
            }
            at = ours ? state.streams.erase(at) : std::next(at);
        }
        for (auto at = state.contexts.begin(); at != state.contexts.end();) {
            const bool ours = at->second->device->id() == id;
            if (ours && at->second->default_stream) {
                streams.push_back(at->second->default_stream);
            }
            at = ours ? state.contexts.erase(at) : std::next(at);
        }
        slot.primary.reset();
        slot.references = 0;
        slot.device = std::make_shared<Device>(id);
        slot.saturates = soc() != nullptr && soc()->saturates_only();
    }
    for (const std::shared_ptr<Stream> &stream : streams) {
        stream->abort();
        stream->close();
    }
    DeviceMemory::instance().release_all(id);
}

std::shared_ptr<Context> current_context(const char *caller)
{
    State &state = State::instance();
    const std::lock_guard<std::mutex> lock(state.mutex);
    const auto found = state.contexts.find(current);
    if (found == state.contexts.end()) {
        report(std::string(caller)
               + ": this thread has no context; call aclrtSetDevice or aclrtSetCurrentContext in it");
        return nullptr;
    }
    return found->second;
}

}  // namespace loopback

using namespace loopback;

extern "C" {

aclError aclrtSetDevice(int32_t id)
{
    State &state = State::instance();
    const std::lock_guard<std::mutex> lock(state.mutex);
    if (!is_initialised(state, "aclrtSetDevice")) {
        return fail(ACL_ERROR_UNINITIALIZE, "aclrtSetDevice: the runtime is not initialised");
    }
    State::Slot *slot = find_slot(id, "aclrtSetDevice");
    if (slot == nullptr) {
        return fail(ACL_ERROR_RT_INVALID_DEVICEID, "aclrtSetDevice: no such device");
    }
    ++slot->references;
    if (!slot->primary) {
        slot->primary = state.contexts.at(add_context(state, slot->device));
    }
    current = slot->primary.get();
    return ACL_SUCCESS;
}

aclError aclrtGetDevice(int32_t *id)
{
    const std::shared_ptr<Context> context = current_context("aclrtGetDevice");
    if (context == nullptr || id == nullptr) {
        return fail(context == nullptr ? ACL_ERROR_RT_CONTEXT_NULL : ACL_ERROR_RT_PARAM_INVALID, "aclrtGetDevice");
    }
    *id = context->device->id();
    return ACL_SUCCESS;
}

aclError aclrtResetDevice(int32_t id)
{
    State &state = State::instance();
    {
        const std::lock_guard<std::mutex> lock(state.mutex);
        State::Slot *slot = find_slot(id, "aclrtResetDevice");
        if (slot == nullptr) {
            return fail(ACL_ERROR_RT_INVALID_DEVICEID, "aclrtResetDevice: no such device");
        }
        if (slot->references == 0) {
            return fail(ACL_ERROR_RT_CONTEXT_NULL, "aclrtResetDevice: the device is not set");
        }
        if (--slot->references > 0) {
            return ACL_SUCCESS;
        }
    }
    clear_device(id);
    return ACL_SUCCESS;
}

aclError aclrtResetDeviceForce(int32_t id)
{
    State &state = State::instance();
    {
        const std::lock_guard<std::mutex> lock(state.mutex);
        if (find_slot(id, "aclrtResetDeviceForce") == nullptr) {
            return fail(ACL_ERROR_RT_INVALID_DEVICEID, "aclrtResetDeviceForce: no such device");
        }
    }
    clear_device(id);
    return ACL_SUCCESS;
}

aclError aclrtCreateContext(aclrtContext *context, int32_t id)
{
    State &state = State::instance();
    const std::lock_guard<std::mutex> lock(state.mutex);
    State::Slot *slot = find_slot(id, "aclrtCreateContext");
    if (slot == nullptr || context == nullptr) {
        return fail(context == nullptr ? ACL_ERROR_RT_PARAM_INVALID : ACL_ERROR_RT_INVALID_DEVICEID,
                    "aclrtCreateContext: a null pointer or no such device");
    }
    *context = add_context(state, slot->device);
    current = *context;
    return ACL_SUCCESS;
}

aclError aclrtDestroyContext(aclrtContext context)
{
    State &state = State::instance();
    std::shared_ptr<Context> gone;
    {
        const std::lock_guard<std::mutex> lock(state.mutex);
        const auto found = state.contexts.find(context);
        if (found == state.contexts.end()) {
            return fail(ACL_ERROR_RT_CONTEXT_NULL, "aclrtDestroyContext: not a context");
        }
        gone = found->second;
        for (const State::Slot &slot : state.slots) {
            if (slot.primary == gone) {
                return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtDestroyContext: the device's own context");
            }
        }
        state.contexts.erase(found);
    }
    if (gone->default_stream) {
        gone->default_stream->close();
    }
    return ACL_SUCCESS;
}

aclError aclrtSetCurrentContext(aclrtContext context)
{
    State &state = State::instance();
    const std::lock_guard<std::mutex> lock(state.mutex);
    if (state.contexts.count(context) == 0) {
        return fail(ACL_ERROR_RT_CONTEXT_NULL, "aclrtSetCurrentContext: not a context");
    }
    current = context;
    return ACL_SUCCESS;
}

aclError aclrtGetCurrentContext(aclrtContext *context)
{
    const std::shared_ptr<Context> found = current_context("aclrtGetCurrentContext");
    if (found == nullptr || context == nullptr) {
        return fail(found == nullptr ? ACL_ERROR_RT_CONTEXT_NULL : ACL_ERROR_RT_PARAM_INVALID,
                    "aclrtGetCurrentContext");
    }
    *context = found.get();
    return ACL_SUCCESS;
}
}
