#include "fault.h"

#include <atomic>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>

#include "acl/acl_loopback.h"
#include "message.h"

namespace loopback {
namespace {

constexpr const char *variable = "ACLNN_LOOPBACK_FAULT";

int known_number(std::string_view id)
{
    for (int number = 0; number < static_cast<int>(std::size(fault_ids)); ++number) {
        if (fault_ids[number] == id) {
            return number;
        }
    }
    return -1;
}

ChosenFaults choose()
{
    ChosenFaults chosen;
    const char *value = std::getenv(variable);
    std::string_view rest = value == nullptr ? "" : value;
    while (!rest.empty()) {
        const std::string_view id = rest.substr(0, rest.find(','));
        rest.remove_prefix(id.size() < rest.size() ? id.size() + 1 : id.size());
        const int number = known_number(id);
        if (number < 0) {
            chosen.unknown = id.empty() ? "," : id;
            return chosen;
        }
        chosen.own.set(static_cast<size_t>(number));
        chosen.shared.set(static_cast<size_t>(shared_number(last_part(id))));
    }
    return chosen;
}

}  // namespace

const ChosenFaults chosen_faults = choose();

bool fault_is_known(const char *caller)
{
    if (!chosen_faults.unknown.empty()) {
        report(text("%s: %s=%s: not a fault or decoy of this library; aclnn-cts faults --list names them", caller,
                    variable, chosen_faults.unknown.c_str()));
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
