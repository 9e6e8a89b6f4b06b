#include "registry.h"

namespace loopback {

Registry &Registry::instance()
{
    static Registry *const registry = new Registry;
    return *registry;
}

uint64_t Registry::add(const void *handle)
{
    const std::lock_guard<std::mutex> lock(mutex_);
    alive_[handle] = ++last_;
    return last_;
}

bool Registry::remove(const void *handle)
{
    const std::lock_guard<std::mutex> lock(mutex_);
    return alive_.erase(handle) != 0;
}

uint64_t Registry::find(const void *handle) const
{
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = alive_.find(handle);
    return found != alive_.end() ? found->second : 0;
}

}  // namespace loopback
