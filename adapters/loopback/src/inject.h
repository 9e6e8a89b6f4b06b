// Misbehaviour on request, for tests of whoever calls this library: ACLNN_LOOPBACK_INJECT=<what>[/<place>]@<which>,...
//
//   what   segv, abort, exit, kill, hang or swallow (memory, until somebody ends the process), at any place;
//          refuse (the call, with an internal error), at a phase;
//          fault (of the device), lost (its heartbeat), poison (the fault shows only after the stream was waited for)
//          or poison-late (only after the call's memory was freed), at the kernel alone
//   place  one (phase one), two (phase two, the default) or kernel (on the stream's thread)
//   which  <n>: the n-th call of the process at that place; numel=<n>: each call whose first output has n elements
//
// As little of it as of a real fault shows beforehand: a call that is not chosen is what it is without the variable.
#pragma once

#include <cstdint>
#include <string>

#include "device.h"

namespace loopback {

enum class Place { phase_one, phase_two, kernel };

// Does what is asked for at this place of a call whose first output has so many elements. At a kernel it may throw
// Fault.
void inject(Place place, int64_t numel, Device *device = nullptr);

// What is wrong with the variable's text; empty where it can be read.
std::string injection_mistake();

}  // namespace loopback
