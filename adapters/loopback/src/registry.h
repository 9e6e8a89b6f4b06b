// Which handles are alive. A handle that was released, or never was one, is told apart without reading its memory.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace loopback {

class Registry {
public:
    static Registry &instance();

    // The number by which a handle is known: another one each time, however often its address is used again.
    uint64_t add(const void *handle);
    // False where the handle is not alive.
    bool remove(const void *handle);
    // 0 where the handle is not alive.
    uint64_t find(const void *handle) const;

private:
    mutable std::mutex mutex_;
    std::unordered_map<const void *, uint64_t> alive_;
    uint64_t last_ = 0;
};

}  // namespace loopback
