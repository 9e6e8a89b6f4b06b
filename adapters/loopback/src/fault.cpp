#include "fault.h"

#include <atomic>
#include <cstdlib>
#include <iterator>

#include "acl/acl_loopback.h"
#include "message.h"

namespace loopback {
namespace {

constexpr const char *variable = "ACLNN_LOOPBACK_FAULT";

ChosenFault choose()
{
    const char *value = std::getenv(variable);
    if (value == nullptr || *value == '\0') {
        return {};
    }
    for (int number = 0; number < static_cast<int>(std::size(fault_ids)); ++number) {
        if (fault_ids[number] == value) {
            return {number, shared_number(last_part(value)), nullptr};
        }
    }
    return {-1, -1, value};
}

}  // namespace

const ChosenFault chosen_fault = choose();

bool fault_is_known(const char *caller)
{
    if (chosen_fault.unknown != nullptr) {
        report(text("%s: %s=%s: not a fault or decoy of this library; aclnn-cts faults --list names them", caller,
                    variable, chosen_fault.unknown));
        return false;
    }
    return true;
}

int64_t next_count()
{
    static std::atomic<int64_t> count{0};
    return ++count;
}

namespace {

std::atomic<int64_t> launches{0};

}  // namespace

bool odd_launch()
{
    return launches.load() % 2 != 0;
}

void note_launch()
{
    ++launches;
}

}  // namespace loopback

extern "C" {

const char *aclLoopbackFaultId(size_t index)
{
    return index < std::size(loopback::fault_ids) ? loopback::fault_ids[index].data() : nullptr;
}
}
