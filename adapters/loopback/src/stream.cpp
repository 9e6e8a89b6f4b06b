#include "stream.h"

#include <cstdlib>
#include <exception>
#include <new>

namespace loopback {
namespace {

// A queue that was empty starts after a pause unless somebody waits for it, so that a result that is read without
// waiting is missing, and a program that waits loses no time.
std::chrono::microseconds launch_latency()
{
    const char *value = std::getenv("ACLNN_LOOPBACK_LATENCY_US");
    const long given = value != nullptr && *value != '\0' ? std::strtol(value, nullptr, 10) : 500;
    return std::chrono::microseconds(given > 0 ? given : 0);
}

}  // namespace

Stream::Stream(std::shared_ptr<Device> device, bool saturates) : device_(std::move(device)), saturates_(saturates)
{
    thread_ = std::thread(&Stream::work, this);
}

Stream::~Stream()
{
    close();
}

void Stream::enqueue(Task task)
{
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        queue_.push_back(std::move(task));
    }
    wake_.notify_one();
}

bool Stream::wait(int32_t limit)
{
    if (limit == 0) {
        return idle();
    }
    std::unique_lock<std::mutex> lock(mutex_);
    ++waiting_;
    wake_.notify_one();
    const auto drained = [this] { return queue_.empty() && !running_; };
    bool finished = true;
    if (limit < 0) {
        done_.wait(lock, drained);
    } else {
        finished = done_.wait_for(lock, std::chrono::milliseconds(limit), drained);
    }
    --waiting_;
    return finished;
}

bool Stream::idle() const
{
    const std::lock_guard<std::mutex> lock(mutex_);
    return queue_.empty() && !running_;
}

void Stream::abort()
{
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        queue_.clear();
    }
    done_.notify_all();
}

void Stream::close()
{
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        closing_ = true;
    }
    wake_.notify_one();
    if (thread_.joinable()) {
        thread_.join();
    }
}

void Stream::run(const Task &task)
{
    if (device_->is_unfit()) {
        return;
    }
    try {
        task();
    } catch (const Fault &fault) {
        device_->set_fault(fault);
    } catch (const std::bad_alloc &) {
        device_->set_fault({ACL_ERROR_RT_MEMORY_ALLOCATION, "a kernel found no memory on this machine"});
    } catch (const std::exception &error) {
        device_->set_fault({ACL_ERROR_RT_AICORE_EXCEPTION, error.what()});
    }
}

void Stream::work()
{
    const std::chrono::microseconds latency = launch_latency();
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
        wake_.wait(lock, [this] { return !queue_.empty() || closing_; });
        wake_.wait_for(lock, latency, [this] { return waiting_ > 0 || closing_; });
        while (!queue_.empty()) {
            {
                const Task task = std::move(queue_.front());
                queue_.pop_front();
                running_ = true;
                lock.unlock();
                run(task);
            }
            lock.lock();
            running_ = false;
        }
        done_.notify_all();
        if (closing_) {
            return;
        }
    }
}

}  // namespace loopback
