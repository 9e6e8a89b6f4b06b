#include "inject.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "message.h"

namespace loopback {
namespace {

constexpr const char *variable = "ACLNN_LOOPBACK_INJECT";
constexpr int exit_code = 7;
constexpr size_t swallowed = size_t{32} << 20;

[[noreturn]] void wait_for_ever()
{
    for (;;) {
        pause();
    }
}

void say(const char *what)
{
    std::fprintf(stderr, "%s: %s\n", variable, what);
    std::fflush(stderr);
}

void read_null(Device *)
{
    const volatile uintptr_t nowhere = 0;
    static_cast<void>(*reinterpret_cast<const volatile int *>(nowhere));
}

void end_by_abort(Device *)
{
    std::abort();
}

void leave(Device *)
{
    _exit(exit_code);
}

void be_killed(Device *)
{
    raise(SIGKILL);
}

void hang(Device *)
{
    wait_for_ever();
}

// At a pace that leaves whoever watches the time to see it.
void swallow(Device *)
{
    static std::vector<void *> kept;
    for (int i = 0; i < 256; ++i) {
        void *bytes = std::malloc(swallowed);
        if (bytes == nullptr) {
            break;
        }
        std::memset(bytes, 1, swallowed);
        kept.push_back(bytes);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    wait_for_ever();
}

void refuse(Device *)
{
    throw std::runtime_error("an injected internal error");
}

void break_device(Device *)
{
    throw Fault{ACL_ERROR_RT_AICORE_EXCEPTION, "an injected exception of an AI core"};
}

void lose_device(Device *)
{
    throw Fault{ACL_ERROR_RT_LOST_HEARTBEAT, "an injected loss of the heartbeat"};
}

void poison(Device *device)
{
    device->poison(Device::Poison::after_wait);
}

void poison_late(Device *device)
{
    device->poison(Device::Poison::after_free);
}

struct Deed {
    const char *name;
    void (*act)(Device *);
    bool of_device;
};

constexpr Deed deeds[] = {
    {"segv", read_null, false},         {"abort", end_by_abort, false}, {"exit", leave, false},
    {"kill", be_killed, false},         {"hang", hang, false},          {"swallow", swallow, false},
    {"refuse", refuse, false},
    {"fault", break_device, true},      {"lost", lose_device, true},    {"poison", poison, true},
    {"poison-late", poison_late, true},
};

constexpr const char *places[] = {"one", "two", "kernel"};

struct Injection {
    const Deed *deed = nullptr;
    Place place = Place::phase_two;
    bool by_numel = false;
    int64_t which = 0;
};

struct Orders {
    std::vector<Injection> injections;
    std::string mistake;
};

bool read_number(const std::string &word, int64_t *number)
{
    char *end = nullptr;
    *number = std::strtoll(word.c_str(), &end, 10);
    return !word.empty() && *end == '\0' && *number > 0;
}

bool read_place(const std::string &word, Injection *injection)
{
    for (size_t i = 0; i < std::size(places); ++i) {
        if (word == places[i]) {
            injection->place = static_cast<Place>(i);
            return true;
        }
    }
    return false;
}

// `<what>[/<place>]@<which>`; false where that is not what it is.
bool read_injection(const std::string &word, Injection *injection)
{
    const size_t at = word.find('@');
    if (at == std::string::npos) {
        return false;
    }
    const std::string head = word.substr(0, at);
    const size_t slash = head.find('/');
    const std::string what = head.substr(0, slash);
    for (const Deed &deed : deeds) {
        if (what == deed.name) {
            injection->deed = &deed;
        }
    }
    if (injection->deed == nullptr) {
        return false;
    }
    if (injection->deed->of_device) {
        injection->place = Place::kernel;
    }
    if (slash != std::string::npos && !read_place(head.substr(slash + 1), injection)) {
        return false;
    }
    std::string which = word.substr(at + 1);
    const std::string prefix = "numel=";
    injection->by_numel = which.compare(0, prefix.size(), prefix) == 0;
    if (injection->by_numel) {
        which.erase(0, prefix.size());
    }
    const bool at_kernel = injection->place == Place::kernel;
    const bool fits = injection->deed->of_device ? at_kernel : injection->deed->act != refuse || !at_kernel;
    return fits && read_number(which, &injection->which);
}

Orders read_orders()
{
    Orders orders;
    const char *value = std::getenv(variable);
    std::string rest = value != nullptr ? value : "";
    while (!rest.empty()) {
        const size_t comma = rest.find(',');
        const std::string word = rest.substr(0, comma);
        rest = comma != std::string::npos ? rest.substr(comma + 1) : "";
        Injection injection;
        if (!read_injection(word, &injection)) {
            orders.mistake = text("%s: %s; expected <what>[/<place>]@<which>, such as abort@3 or fault@numel=12",
                                  variable, word.c_str());
            return orders;
        }
        orders.injections.push_back(injection);
    }
    return orders;
}

const Orders &orders()
{
    static const Orders *const read = new Orders(read_orders());
    return *read;
}

// Counts the calls at a place, and gives which one this is.
int64_t number_of(Place place)
{
    static std::mutex mutex;
    static std::array<int64_t, std::size(places)> passed{};
    const std::lock_guard<std::mutex> lock(mutex);
    return ++passed[static_cast<size_t>(place)];
}

}  // namespace

void inject(Place place, int64_t numel, Device *device)
{
    if (orders().injections.empty()) {
        return;
    }
    const int64_t number = number_of(place);
    for (const Injection &injection : orders().injections) {
        if (injection.place == place && injection.which == (injection.by_numel ? numel : number)) {
            say(injection.deed->name);
            injection.deed->act(device);
        }
    }
}

std::string injection_mistake()
{
    return orders().mistake;
}

}  // namespace loopback
