// Streams: each has a thread of its own that works its queue off in order.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "device.h"

namespace loopback {

// Work for a stream. It may throw Fault, which makes the device unfit.
using Task = std::function<void()>;

class Stream {
public:
    Stream(std::shared_ptr<Device> device, bool saturates);
    ~Stream();
    Stream(const Stream &) = delete;
    Stream &operator=(const Stream &) = delete;

    void enqueue(Task task);
    // Waits until the queue is empty and nothing runs; false where the time limit (ms, negative: none) came first.
    bool wait(int32_t limit);
    bool idle() const;
    // Drops what has not begun.
    void abort();
    // Ends the thread, after the rest of the queue unless it was dropped.
    void close();

    Device &device() const { return *device_; }
    // Whether results overflow to the largest finite number; settled when the stream is made.
    bool saturates() const { return saturates_; }

private:
    void work();
    void run(const Task &task);

    const std::shared_ptr<Device> device_;
    const bool saturates_;
    mutable std::mutex mutex_;
    std::condition_variable wake_;
    std::condition_variable done_;
    std::deque<Task> queue_;
    std::thread thread_;
    int waiting_ = 0;
    bool running_ = false;
    bool closing_ = false;
};

}  // namespace loopback
