// What the runtime tells about itself and the device, and the settings of process and device.
#include <array>
#include <atomic>
#include <cstring>

#include "message.h"
#include "product.h"
#include "state.h"

namespace loopback {
namespace {

constexpr size_t option_count = 4;
constexpr int64_t l2_bytes = int64_t{192} << 20;
constexpr size_t overflow_status_bytes = 64;

struct Option {
    std::atomic<bool> is_set{false};
    std::atomic<int64_t> value{0};
};
std::array<Option, option_count> options;

Option *find_option(aclSysParamOpt option)
{
    const auto index = static_cast<int64_t>(option);
    return index >= 0 && index < static_cast<int64_t>(option_count) ? &options[static_cast<size_t>(index)] : nullptr;
}

aclError set_option(aclSysParamOpt option, int64_t value, const char *caller)
{
    Option *found = find_option(option);
    if (found == nullptr || (option == ACL_OPT_DETERMINISTIC && value != 0 && value != 1)) {
        return fail(ACL_ERROR_RT_PARAM_INVALID,
                    text("%s: option %d = %lld", caller, static_cast<int>(option), static_cast<long long>(value)));
    }
    found->value = value;
    found->is_set = true;
    return ACL_SUCCESS;
}

aclError get_option(aclSysParamOpt option, int64_t *value, const char *caller)
{
    const Option *found = find_option(option);
    if (found == nullptr || value == nullptr) {
        return fail(ACL_ERROR_RT_PARAM_INVALID, text("%s: option %d", caller, static_cast<int>(option)));
    }
    if (!found->is_set) {
        return fail(ACL_ERROR_RT_SYSPARAMOPT_NOT_SET,
                    text("%s: option %d was never set", caller, static_cast<int>(option)));
    }
    *value = found->value;
    return ACL_SUCCESS;
}

aclError give(int64_t known, int64_t *value)
{
    if (known == 0) {
        return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "this chip does not count that");
    }
    *value = known;
    return ACL_SUCCESS;
}

aclError check_query(uint32_t device, const void *value, const char *caller)
{
    State &state = State::instance();
    const std::lock_guard<std::mutex> lock(state.mutex);
    if (find_slot(device, caller) == nullptr) {
        return fail(ACL_ERROR_RT_INVALID_DEVICEID, std::string(caller) + ": no such device");
    }
    if (value == nullptr || soc() == nullptr) {
        return fail(ACL_ERROR_RT_PARAM_INVALID, std::string(caller) + ": a null pointer or no known chip");
    }
    return ACL_SUCCESS;
}

void copy_overflow_status(const Device &device, void *address)
{
    const Span span = DeviceMemory::instance().resolve(address, overflow_status_bytes, "aclrtGetOverflowStatus");
    const uint64_t count = device.overflows;
    std::memset(span.bytes, 0, overflow_status_bytes);
    std::memcpy(span.bytes, &count, sizeof count);
}

}  // namespace

int64_t determinism()
{
    return options[ACL_OPT_DETERMINISTIC].value;
}

}  // namespace loopback

using namespace loopback;

extern "C" {

aclError aclrtGetDeviceCount(uint32_t *count)
{
    if (count == nullptr) {
        return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtGetDeviceCount: a null pointer");
    }
    *count = static_cast<uint32_t>(State::instance().slots.size());
    return ACL_SUCCESS;
}

const char *aclrtGetSocName(void)
{
    const Soc *chip = soc();
    return chip != nullptr ? chip->name : nullptr;
}

aclError aclrtGetRunMode(aclrtRunMode *mode)
{
    if (mode == nullptr) {
        return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtGetRunMode: a null pointer");
    }
    *mode = ACL_HOST;
    return ACL_SUCCESS;
}

aclError aclrtGetVersion(int32_t *major, int32_t *minor, int32_t *patch)
{
    if (major == nullptr || minor == nullptr || patch == nullptr) {
        return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtGetVersion: a null pointer");
    }
    *major = 1;
    *minor = 0;
    *patch = 0;
    return ACL_SUCCESS;
}

aclError aclrtGetDeviceInfo(uint32_t device, aclrtDevAttr attribute, int64_t *value)
{
    const aclError wrong = check_query(device, value, "aclrtGetDeviceInfo");
    if (wrong != ACL_SUCCESS) {
        return wrong;
    }
    switch (attribute) {
        case ACL_DEV_ATTR_AICORE_CORE_NUM:
            return give(soc()->ai_cores, value);
        case ACL_DEV_ATTR_CUBE_CORE_NUM:
            return give(soc()->cube_cores, value);
        case ACL_DEV_ATTR_VECTOR_CORE_NUM:
            return give(soc()->vector_cores, value);
        case ACL_DEV_ATTR_NPU_ARCH:
            return give(soc()->arch, value);
        default:
            return fail(ACL_ERROR_RT_PARAM_INVALID,
                        text("aclrtGetDeviceInfo: attribute %d", static_cast<int>(attribute)));
    }
}

aclError aclGetDeviceCapability(uint32_t device, aclDeviceInfo info, int64_t *value)
{
    const aclError wrong = check_query(device, value, "aclGetDeviceCapability");
    if (wrong != ACL_SUCCESS) {
        return wrong;
    }
    switch (info) {
        case ACL_DEVICE_INFO_AI_CORE_NUM:
            return give(soc()->ai_cores, value);
        case ACL_DEVICE_INFO_VECTOR_CORE_NUM:
            return give(soc()->vector_cores, value);
        case ACL_DEVICE_INFO_L2_SIZE:
            return give(l2_bytes, value);
        default:
            return fail(ACL_ERROR_RT_PARAM_INVALID,
                        text("aclGetDeviceCapability: attribute %d", static_cast<int>(info)));
    }
}

aclError aclGetCannAttribute(aclCannAttr attribute, int32_t *value)
{
    if (value == nullptr || soc() == nullptr) {
        return fail(ACL_ERROR_INVALID_PARAM, "aclGetCannAttribute: a null pointer or no known chip");
    }
    switch (attribute) {
        case ACL_CANN_ATTR_INF_NAN:
            *value = soc()->saturates_only() ? 0 : 1;
            return ACL_SUCCESS;
        case ACL_CANN_ATTR_BF16:
            *value = soc()->has_bf16() ? 1 : 0;
            return ACL_SUCCESS;
        case ACL_CANN_ATTR_JIT_COMPILE:
            *value = 0;
            return ACL_SUCCESS;
        default:
            return fail(ACL_ERROR_INVALID_PARAM,
                        text("aclGetCannAttribute: attribute %d", static_cast<int>(attribute)));
    }
}

aclError aclrtQueryDeviceStatus(int32_t id, aclrtDeviceStatus *status)
{
    State &state = State::instance();
    const std::lock_guard<std::mutex> lock(state.mutex);
    const State::Slot *slot = find_slot(id, "aclrtQueryDeviceStatus");
    if (slot == nullptr || status == nullptr) {
        return fail(slot == nullptr ? ACL_ERROR_RT_INVALID_DEVICEID : ACL_ERROR_RT_PARAM_INVALID,
                    "aclrtQueryDeviceStatus");
    }
    *status = slot->device->is_unfit() ? ACL_RT_DEVICE_STATUS_ABNORMAL : ACL_RT_DEVICE_STATUS_NORMAL;
    return ACL_SUCCESS;
}

aclError aclrtSetOpExecuteTimeOut(uint32_t)
{
    return ACL_SUCCESS;
}

aclError aclrtSetSysParamOpt(aclSysParamOpt option, int64_t value)
{
    return set_option(option, value, "aclrtSetSysParamOpt");
}

aclError aclrtGetSysParamOpt(aclSysParamOpt option, int64_t *value)
{
    return get_option(option, value, "aclrtGetSysParamOpt");
}

aclError aclrtCtxSetSysParamOpt(aclSysParamOpt option, int64_t value)
{
    return set_option(option, value, "aclrtCtxSetSysParamOpt");
}

aclError aclrtCtxGetSysParamOpt(aclSysParamOpt option, int64_t *value)
{
    return get_option(option, value, "aclrtCtxGetSysParamOpt");
}

aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode)
{
    const std::shared_ptr<Context> context = current_context("aclrtSetDeviceSatMode");
    if (context == nullptr) {
        return fail(ACL_ERROR_RT_CONTEXT_NULL, "aclrtSetDeviceSatMode: no context");
    }
    if (mode != ACL_RT_OVERFLOW_MODE_SATURATION && mode != ACL_RT_OVERFLOW_MODE_INFNAN) {
        return fail(ACL_ERROR_RT_PARAM_INVALID, text("aclrtSetDeviceSatMode: mode %d", static_cast<int>(mode)));
    }
    const bool saturates = mode == ACL_RT_OVERFLOW_MODE_SATURATION;
    if (!saturates && soc()->saturates_only()) {
        return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "aclrtSetDeviceSatMode: this chip saturates and nothing else");
    }
    State &state = State::instance();
    const std::lock_guard<std::mutex> lock(state.mutex);
    state.slots[static_cast<size_t>(context->device->id())].saturates = saturates;
    return ACL_SUCCESS;
}

aclError aclrtGetDeviceSatMode(aclrtFloatOverflowMode *mode)
{
    const std::shared_ptr<Context> context = current_context("aclrtGetDeviceSatMode");
    if (context == nullptr || mode == nullptr) {
        return fail(context == nullptr ? ACL_ERROR_RT_CONTEXT_NULL : ACL_ERROR_RT_PARAM_INVALID,
                    "aclrtGetDeviceSatMode");
    }
    State &state = State::instance();
    const std::lock_guard<std::mutex> lock(state.mutex);
    const bool saturates = state.slots[static_cast<size_t>(context->device->id())].saturates;
    *mode = saturates ? ACL_RT_OVERFLOW_MODE_SATURATION : ACL_RT_OVERFLOW_MODE_INFNAN;
    return ACL_SUCCESS;
}

aclError aclrtGetOverflowStatus(void *address, size_t size, aclrtStream handle)
{
    const std::shared_ptr<Stream> stream = find_stream(handle, "aclrtGetOverflowStatus");
    if (stream == nullptr || size < overflow_status_bytes) {
        return fail(stream == nullptr ? ACL_ERROR_RT_STREAM_CONTEXT : ACL_ERROR_RT_PARAM_INVALID,
                    "aclrtGetOverflowStatus");
    }
    stream->enqueue([device = &stream->device(), address] { copy_overflow_status(*device, address); });
    return ACL_SUCCESS;
}

aclError aclrtResetOverflowStatus(aclrtStream handle)
{
    const std::shared_ptr<Stream> stream = find_stream(handle, "aclrtResetOverflowStatus");
    if (stream == nullptr) {
        return fail(ACL_ERROR_RT_STREAM_CONTEXT, "aclrtResetOverflowStatus: no such stream");
    }
    stream->enqueue([device = &stream->device()] { device->overflows = 0; });
    return ACL_SUCCESS;
}

aclError aclrtSetStreamOverflowSwitch(aclrtStream handle, uint32_t)
{
    const std::shared_ptr<Stream> stream = find_stream(handle, "aclrtSetStreamOverflowSwitch");
    return stream != nullptr ? ACL_SUCCESS
                             : fail(ACL_ERROR_RT_STREAM_CONTEXT, "aclrtSetStreamOverflowSwitch: no such stream");
}
}
