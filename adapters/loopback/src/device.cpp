#include "device.h"

#include "message.h"

namespace loopback {

void Device::set_fault(const Fault &fault)
{
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!unfit_) {
        fault_ = fault;
        unfit_ = true;
    }
}

void Device::come_to(Poison when)
{
    if (poison_ == when) {
        poison_ = Poison::none;
        set_fault({ACL_ERROR_RT_AICORE_EXCEPTION, "a fault of work that had seemed to be done"});
    }
}

aclError Device::fault() const
{
    if (!unfit_) {
        return ACL_SUCCESS;
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    return fail(fault_.code, text("device %d is unfit: ", id_) + fault_.message);
}

}  // namespace loopback
