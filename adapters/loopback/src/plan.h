// What phase one settles and phase two runs.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "memory.h"
#include "stream.h"
#include "tensor.h"

namespace loopback {

// A tensor's memory as a kernel sees it: bytes of the element at an offset counted from the address.
class Region {
public:
    Region() = default;
    Region(Span span, int64_t low, size_t itemsize) : span_(std::move(span)), low_(low), itemsize_(itemsize) {}

    std::byte *at(int64_t offset) const { return span_.bytes + static_cast<size_t>(offset - low_) * itemsize_; }

    // The lowest offset that the tensor has.
    int64_t low() const { return low_; }

private:
    Span span_;
    int64_t low_ = 0;
    size_t itemsize_ = 1;
};

// One run of a plan.
class Launch {
public:
    Launch(std::vector<void *> addresses, void *workspace, bool saturates, Device &device)
        : addresses_(std::move(addresses)), workspace_(workspace), saturates_(saturates), device_(&device)
    {
    }

    // Both throw Fault where the memory is not there.
    Region region(size_t tensor, const View &view) const;
    Span workspace(uint64_t size) const;

    bool saturates() const { return saturates_; }
    void note_overflow() const { ++device_->overflows; }

private:
    std::vector<void *> addresses_;
    void *workspace_;
    bool saturates_;
    Device *device_;
};

using Kernel = std::function<void(const Launch &)>;

struct Plan {
    uint64_t workspace = 0;
    // Empty where there is nothing to compute.
    Kernel kernel;
};

// Cuts a workspace into parts that each begin at a multiple of 32 bytes.
class Layout {
public:
    // The offset of a new part.
    uint64_t add(int64_t elements, uint64_t bytes_each = sizeof(float));
    uint64_t size() const { return size_; }

private:
    uint64_t size_ = 0;
};

inline float *floats(const Span &workspace, uint64_t offset)
{
    return reinterpret_cast<float *>(workspace.bytes + offset);
}

}  // namespace loopback
