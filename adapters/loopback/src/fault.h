// Mistakes that are seeded on purpose, and correct ways of doing things differently (decoys): what measures whether a
// harness notices the one and lets the other pass. ACLNN_LOOPBACK_FAULT switches one on for a process, or several with
// commas between their ids.
//
// Each stands where a programmer would have made it, behind FAULT with its whole id, or behind SHARED with the part after
// the last dot where operators share the code; there the operator's name in the id only says on whose calls it is
// looked for. faults.yaml tells what each one is. Faults of values, indices and checks are mutants of the reference.
#pragma once

#include <bitset>
#include <iterator>
#include <string>
#include <type_traits>

#include "fault_ids.h"

namespace loopback {

// A mistyped id does not compile.
constexpr int fault_number(std::string_view id)
{
    for (int number = 0; number < static_cast<int>(std::size(fault_ids)); ++number) {
        if (fault_ids[number] == id) {
            return number;
        }
    }
    throw "no such id in fault_ids.h";
}

constexpr std::string_view last_part(std::string_view id)
{
    return id.substr(id.rfind('.') + 1);
}

// The first id that ends in this part stands for all that do.
constexpr int shared_number(std::string_view part)
{
    for (int number = 0; number < static_cast<int>(std::size(fault_ids)); ++number) {
        if (last_part(fault_ids[number]) == part) {
            return number;
        }
    }
    throw "no id in fault_ids.h ends like this";
}

struct ChosenFaults {
    // By the number of the id, and of the first id that ends in the same part.
    std::bitset<std::size(fault_ids)> own;
    std::bitset<std::size(fault_ids)> shared;
    // The first word of the variable that is no id.
    std::string unknown;
};

// Settled when the library is loaded.
extern const ChosenFaults chosen_faults;

// Whether the variable is unset, empty or holds ids alone; else keeps a message.
bool fault_is_known(const char *caller);

// How often it was called: for what goes wrong now and then.
int64_t next_count();

// Whether the kernel that was queued last is one of every other; for what comes out now so, now so.
bool odd_launch();
void note_launch();

}  // namespace loopback

#define FAULT(id) (::loopback::chosen_faults.own[std::integral_constant<int, ::loopback::fault_number(id)>::value])
#define SHARED(part) \
    (::loopback::chosen_faults.shared[std::integral_constant<int, ::loopback::shared_number(part)>::value])
