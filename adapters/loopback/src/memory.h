// Device memory. A device address is a number in a reserved range that the host may not touch; the bytes lie elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "acl/acl_rt.h"

namespace loopback {

// A kernel or a copy met memory that it may not use: it ends the task, and the device is unfit from then on.
struct Fault {
    aclError code;
    std::string message;
};

struct HostBytes {
    void operator()(std::byte *bytes) const;
};

struct Block {
    uintptr_t address;
    size_t size;
    int32_t device;
    std::unique_ptr<std::byte, HostBytes> bytes;

    uintptr_t end() const { return address + size; }
};

// Bytes of a block that stay alive for as long as somebody works on them, whatever aclrtFree says meanwhile.
struct Span {
    std::shared_ptr<Block> block;
    std::byte *bytes = nullptr;
};

class DeviceMemory {
public:
    static DeviceMemory &instance();

    aclError allocate(size_t size, int32_t device, void **address);
    aclError release(void *address);
    void release_all(int32_t device);

    // Whether the address lies in the reserved range, allocated or not.
    bool owns(const void *address) const;
    // The bytes behind [address, address + count), which must lie in one allocation; an empty span where they do not.
    Span find(const void *address, size_t count) const;
    // The same, for kernels: throws Fault.
    Span resolve(const void *address, size_t count, const char *what) const;

    size_t total() const { return total_; }
    size_t used() const;

private:
    DeviceMemory();
    uintptr_t place(size_t reach) const;
    uintptr_t first_gap(uintptr_t from, uintptr_t limit, size_t reach) const;

    mutable std::mutex mutex_;
    std::map<uintptr_t, std::shared_ptr<Block>> blocks_;
    uintptr_t begin_ = 0;
    uintptr_t end_ = 0;
    uintptr_t cursor_ = 0;
    size_t total_ = 0;
    size_t used_ = 0;
};

}  // namespace loopback
