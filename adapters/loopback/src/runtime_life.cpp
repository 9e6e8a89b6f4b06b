// The beginning and the end of the runtime and of the operator interface.
#include "aclnn/aclnn_base.h"
#include "fault.h"
#include "inject.h"
#include "message.h"
#include "product.h"
#include "state.h"
#include "status.h"

using namespace loopback;

extern "C" {

aclError aclInit(const char *)
{
    State &state = State::instance();
    const std::lock_guard<std::mutex> lock(state.mutex);
    if (soc() == nullptr) {
        return fail(ACL_ERROR_RT_SOC_VERSION, "aclInit: no known chip is chosen");
    }
    const std::string mistake = injection_mistake();
    if (!mistake.empty()) {
        return fail(ACL_ERROR_INVALID_PARAM, mistake);
    }
    if (!fault_is_known("aclInit")) {
        return fail(ACL_ERROR_INVALID_PARAM, "aclInit: no known fault is chosen");
    }
    if (++state.initialised > 1) {
        return fail(ACL_ERROR_REPEAT_INITIALIZE, "aclInit: called before");
    }
    state.operators_initialised = true;
    return ACL_SUCCESS;
}

aclError aclFinalizeReference(uint64_t *count)
{
    State &state = State::instance();
    uint64_t left = 0;
    {
        const std::lock_guard<std::mutex> lock(state.mutex);
        if (state.initialised == 0) {
            return fail(ACL_ERROR_REPEAT_FINALIZE, "aclFinalize: called before, or aclInit never was");
        }
        left = --state.initialised;
        if (left == 0) {
            state.operators_initialised = false;
        }
    }
    if (count != nullptr) {
        *count = left;
    }
    if (left == 0) {
        for (size_t id = 0; id < state.slots.size(); ++id) {
            clear_device(static_cast<int32_t>(id));
        }
    }
    return ACL_SUCCESS;
}

aclError aclFinalize(void)
{
    State &state = State::instance();
    {
        const std::lock_guard<std::mutex> lock(state.mutex);
        if (state.initialised > 1) {
            state.initialised = 1;
        }
    }
    return aclFinalizeReference(nullptr);
}

aclnnStatus aclnnInit(const char *)
{
    State &state = State::instance();
    const std::lock_guard<std::mutex> lock(state.mutex);
    if (soc() == nullptr || !fault_is_known("aclnnInit")) {
        return fail(runtime_error, "aclnnInit: no known chip or fault is chosen");
    }
    state.operators_initialised = true;
    return success;
}

aclnnStatus aclnnFinalize(void)
{
    State &state = State::instance();
    const std::lock_guard<std::mutex> lock(state.mutex);
    state.operators_initialised = state.initialised > 0;
    return success;
}
}
