// Everything that the runtime calls of one process share.
#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "runtime.h"

namespace loopback {

struct State {
    static State &instance();

    std::mutex mutex;
    uint64_t initialised = 0;
    bool operators_initialised = false;

    struct Slot {
        std::shared_ptr<Device> device;
        std::shared_ptr<Context> primary;
        uint64_t references = 0;
        // Settled by aclrtSetDeviceSatMode for the streams that are made afterwards.
        bool saturates = false;
    };
    std::vector<Slot> slots;
    std::map<aclrtContext, std::shared_ptr<Context>> contexts;
    std::map<aclrtStream, std::shared_ptr<Stream>> streams;

private:
    State();
};

// The device's slot; null, with a message, for an id that does not exist. The caller holds the mutex.
State::Slot *find_slot(int64_t id, const char *caller);

// Forgets the device's streams, contexts and memory, and makes it fit again.
void clear_device(int32_t id);

}  // namespace loopback
