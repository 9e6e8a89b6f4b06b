#include "cache.h"

#include <cstdlib>
#include <deque>
#include <mutex>
#include <unordered_map>

#include "fault.h"
#include "product.h"
#include "runtime.h"

namespace loopback {
namespace {

constexpr size_t default_limit = 10000;

size_t limit()
{
    const char *value = std::getenv("ACLNN_CACHE_LIMIT");
    return value != nullptr && *value != '\0' ? static_cast<size_t>(std::strtoull(value, nullptr, 10)) : default_limit;
}

struct Cache {
    std::mutex mutex;
    std::unordered_map<std::string, std::shared_ptr<const Plan>> plans;
    std::deque<std::string> order;
};

Cache &cache()
{
    static Cache *const instance = new Cache;
    return *instance;
}

void append(std::string &key, int64_t value)
{
    key.append(reinterpret_cast<const char *>(&value), sizeof value);
}

void append(std::string &key, const Dims &values)
{
    append(key, static_cast<int64_t>(values.size()));
    key.append(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(int64_t));
}

void append(std::string &key, const aclTensor *tensor)
{
    append(key, int64_t{tensor != nullptr});
    if (tensor != nullptr) {
        append(key, tensor->dims());
        append(key, tensor->view.strides);
        append(key, tensor->storage);
        append(key, tensor->view.offset);
        append(key, SHARED("cache-without-dtype") ? 0 : int64_t{tensor->dtype()});
        append(key, int64_t{tensor->format});
    }
}

}  // namespace

std::string cache_key(const Request &request)
{
    std::string key = request.name;
    for (const auto *tensors : {&request.inputs, &request.outputs, &request.excluded}) {
        for (const aclTensor *tensor : *tensors) {
            append(key, tensor);
        }
    }
    if (!SHARED("cache-without-attributes")) {
        append(key, request.attributes);
    }
    append(key, determinism());
    if (const Soc *chip = soc()) {
        append(key, chip->cube_cores);
        append(key, chip->vector_cores);
    }
    return key;
}

std::shared_ptr<const Plan> find_cached(const std::string &key)
{
    Cache &instance = cache();
    const std::lock_guard<std::mutex> lock(instance.mutex);
    const auto found = instance.plans.find(key);
    return found != instance.plans.end() ? found->second : nullptr;
}

void keep_cached(const std::string &key, const std::shared_ptr<const Plan> &plan)
{
    Cache &instance = cache();
    const std::lock_guard<std::mutex> lock(instance.mutex);
    if (instance.plans.emplace(key, plan).second) {
        instance.order.push_back(key);
    }
    while (instance.order.size() > limit()) {
        instance.plans.erase(instance.order.front());
        instance.order.pop_front();
    }
}

}  // namespace loopback
