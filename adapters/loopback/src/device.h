// What the streams and contexts of one device share.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "memory.h"

namespace loopback {

class Device {
public:
    explicit Device(int32_t id) : id_(id) {}

    int32_t id() const { return id_; }

    // The first fault stays until the device is reset: nothing runs after it.
    void set_fault(const Fault &fault);
    bool is_unfit() const { return unfit_.load(); }

    // A fault that shows later than the work that caused it.
    enum class Poison { none, after_wait, after_free };
    void poison(Poison when) { poison_ = when; }
    // The moment has come: where such a fault waits for it, the device is unfit from now on.
    void come_to(Poison when);

    // The fault's code, with its message for the calling thread; ACL_SUCCESS where there is none.
    aclError fault() const;

    // Results that would have overflowed, in streams that saturate.
    std::atomic<uint64_t> overflows{0};

private:
    const int32_t id_;
    std::atomic<bool> unfit_{false};
    std::atomic<Poison> poison_{Poison::none};
    mutable std::mutex mutex_;
    Fault fault_{ACL_SUCCESS, {}};
};

}  // namespace loopback
