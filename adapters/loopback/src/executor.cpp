#include "executor.h"

#include <chrono>
#include <cstdlib>
#include <mutex>
#include <new>
#include <thread>

#include "cache.h"
#include "dtype.h"
#include "fault.h"
#include "inject.h"
#include "message.h"
#include "product.h"
#include "registry.h"
#include "runtime.h"

namespace loopback {
namespace {

// Executors of the individual path are used again.
struct Pool {
    std::mutex mutex;
    std::vector<std::unique_ptr<aclOpExecutor>> idle;
};

Pool &pool()
{
    static Pool *const instance = new Pool;
    return *instance;
}

constexpr size_t pooled_executors = 64;

// The executor that was made last, for a seeded fault that takes it for every one.
std::mutex last_mutex;
std::shared_ptr<const Plan> last_plan;
std::vector<aclOpExecutor::Argument> last_arguments;

void keep_last(const aclOpExecutor &executor)
{
    const std::lock_guard<std::mutex> lock(last_mutex);
    last_plan = executor.plan;
    last_arguments = executor.arguments;
}

std::unique_ptr<aclOpExecutor> take_executor(Path path)
{
    if (path == Path::individual) {
        Pool &instance = pool();
        const std::lock_guard<std::mutex> lock(instance.mutex);
        if (!instance.idle.empty()) {
            std::unique_ptr<aclOpExecutor> executor = std::move(instance.idle.back());
            instance.idle.pop_back();
            return executor;
        }
    }
    return std::make_unique<aclOpExecutor>();
}

void add_arguments(aclOpExecutor &executor, const std::vector<const aclTensor *> &tensors)
{
    for (const aclTensor *tensor : tensors) {
        // A null tensor, where the operator takes one, keeps its place.
        executor.arguments.push_back(
            {tensor, Registry::instance().find(tensor), tensor != nullptr ? tensor->data : nullptr});
    }
}

// Elements of the first output; 0 where there is none.
int64_t first_numel(const Request &request)
{
    const aclTensor *output = request.outputs.empty() ? nullptr : request.outputs.front();
    return output != nullptr ? output->numel() : 0;
}

aclOpExecutor *make_executor(const Request &request, Path path, std::shared_ptr<const Plan> plan)
{
    std::unique_ptr<aclOpExecutor> executor = take_executor(path);
    executor->name = request.name;
    executor->path = path;
    executor->plan = std::move(plan);
    if (!FAULT("rms.pool-keeps-arguments")) {
        executor->arguments.clear();
    }
    add_arguments(*executor, request.inputs);
    add_arguments(*executor, request.outputs);
    executor->input_count = request.inputs.size();
    executor->numel = first_numel(request);
    executor->repeatable = false;
    executor->runs = 0;
    if (SHARED("last-executor")) {
        keep_last(*executor);
    }
    Registry::instance().add(executor.get());
    return executor.release();
}

aclnnStatus find_plan(const Operator &operation, const Request &request, std::shared_ptr<const Plan> &plan)
{
    const bool cached = operation.path() == Path::composite;
    const std::string key = cached ? cache_key(request) : std::string();
    plan = cached ? find_cached(key) : nullptr;
    if (plan != nullptr) {
        return success;
    }
    const aclnnStatus status = operation.check();
    if (status != success) {
        return status;
    }
    plan = std::make_shared<const Plan>(operation.plan());
    if (cached) {
        keep_cached(key, plan);
    }
    return success;
}

aclnnStatus check_workspace(const aclOpExecutor &executor, const void *workspace, uint64_t size)
{
    if (size > 0 && workspace == nullptr) {
        return fail(param_nullptr, text("%s: workspace is null and workspaceSize %llu", executor.name,
                                        static_cast<unsigned long long>(size)));
    }
    if (SHARED("workspace-must-match") && size != executor.plan->workspace) {
        return fail(param_invalid, text("%s: workspaceSize is not what phase one asked for", executor.name));
    }
    if (executor.path == Path::individual && size < executor.plan->workspace) {
        return fail(param_invalid, text("%s: workspaceSize is %llu, %llu are needed", executor.name,
                                        static_cast<unsigned long long>(size),
                                        static_cast<unsigned long long>(executor.plan->workspace)));
    }
    return success;
}

aclnnStatus check_tensors(const aclOpExecutor &executor)
{
    for (const aclOpExecutor::Argument &argument : executor.arguments) {
        if (Registry::instance().find(argument.tensor) != argument.number) {
            return fail(inner_nullptr, text("%s: a tensor was destroyed before phase two", executor.name));
        }
    }
    return success;
}

// Queues a kernel where a seeded fault wants it: so that nobody who waits for the stream waits for it.
void enqueue_astray(const std::shared_ptr<Stream> &stream, const Task &task)
{
    if (SHARED("nobody-waits")) {
        std::thread([task] {
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            try {
                task();
            } catch (const Fault &) {
                return;
            }
        }).detach();
        return;
    }
    static Stream *const other = new Stream(std::shared_ptr<Device>(stream, &stream->device()), stream->saturates());
    other->enqueue(task);
}

// Whether a seeded fault leaves this call waiting for ever.
bool waits_for_ever(const aclOpExecutor &executor)
{
    return SHARED("hang") && executor.numel > 0 && executor.numel % 64 == 0;
}

aclnnStatus launch(const aclOpExecutor &executor, void *workspace, aclrtStream handle)
{
    const std::shared_ptr<Stream> stream = find_stream(handle, executor.name);
    if (stream == nullptr) {
        return fail(runtime_error, text("%s: no such stream", executor.name));
    }
    if (stream->device().fault() != ACL_SUCCESS) {
        return fail(runtime_error, text("%s: nothing runs on an unfit device", executor.name));
    }
    if (!executor.plan->kernel) {
        return success;
    }
    std::vector<void *> addresses;
    for (const aclOpExecutor::Argument &argument : executor.arguments) {
        addresses.push_back(argument.address);
    }
    std::shared_ptr<const Plan> plan = executor.plan;
    if (SHARED("last-executor")) {
        const std::lock_guard<std::mutex> lock(last_mutex);
        plan = last_plan;
        addresses.clear();
        for (const aclOpExecutor::Argument &argument : last_arguments) {
            addresses.push_back(argument.address);
        }
    }
    const Launch run(std::move(addresses), workspace, stream->saturates(), stream->device());
    note_launch();
    if (waits_for_ever(executor)) {
        stream->enqueue([] { std::this_thread::sleep_for(std::chrono::hours(24)); });
    }
    if (SHARED("nobody-waits") || SHARED("other-stream")) {
        enqueue_astray(stream, [plan, run] { plan->kernel(run); });
        return success;
    }
    stream->enqueue([plan, run, numel = executor.numel, stream = stream.get()] {
        inject(Place::kernel, numel, &stream->device());
        plan->kernel(run);
    });
    return success;
}

aclnnStatus run_executor(aclOpExecutor &executor, void *workspace, uint64_t size, aclrtStream stream)
{
    if (++executor.runs > 1 && SHARED("repeat-does-nothing")) {
        return success;
    }
    aclnnStatus status = check_workspace(executor, workspace, size);
    if (status == success) {
        status = check_tensors(executor);
    }
    return status == success ? launch(executor, workspace, stream) : status;
}

bool is_alive(const aclOpExecutor *executor, const char *caller)
{
    if (Registry::instance().find(executor) == 0) {
        report(text("%s: %p is not an executor, or one that was used up or destroyed", caller,
                    static_cast<const void *>(executor)));
        return false;
    }
    return true;
}

}  // namespace

aclnnStatus check_executor(const aclOpExecutor *executor, const char *caller)
{
    if (executor == nullptr) {
        return fail(param_nullptr, std::string(caller) + ": a null pointer");
    }
    return is_alive(executor, caller) ? success : fail(inner_error, std::string(caller) + ": no such executor");
}

void release_executor(aclOpExecutor *executor)
{
    std::unique_ptr<aclOpExecutor> owned(executor);
    Registry::instance().remove(executor);
    if (owned->path == Path::individual) {
        Pool &instance = pool();
        const std::lock_guard<std::mutex> lock(instance.mutex);
        if (instance.idle.size() < pooled_executors) {
            owned->plan.reset();
            instance.idle.push_back(std::move(owned));
        }
    }
}

void add_array(Request &request, const aclIntArray *array)
{
    if (array == nullptr) {
        request.attributes.push_back(-1);
        return;
    }
    request.attributes.push_back(static_cast<int64_t>(array->values.size()));
    request.attributes.insert(request.attributes.end(), array->values.begin(), array->values.end());
}

void add_array(Request &request, const aclBoolArray *array)
{
    request.attributes.push_back(array == nullptr ? -1 : static_cast<int64_t>(array->values.size()));
    if (array != nullptr) {
        request.attributes.insert(request.attributes.end(), array->values.begin(), array->values.end());
    }
}

void add_scalar(Request &request, const aclScalar *scalar)
{
    request.attributes.push_back(scalar == nullptr ? -1 : scalar->dtype);
    if (scalar != nullptr) {
        for (const std::byte byte : scalar->value) {
            request.attributes.push_back(std::to_integer<int64_t>(byte));
        }
    }
}

void add_text(Request &request, const char *text)
{
    request.attributes.push_back(text == nullptr ? -1 : static_cast<int64_t>(std::strlen(text)));
    for (; text != nullptr && *text != '\0'; ++text) {
        request.attributes.push_back(*text);
    }
}

namespace {

// What seeded faults do in passing, whenever phase one is called and whenever it fails.
void count_call()
{
    if (SHARED("crash-now-and-then") && next_count() % 1000 == 0) {
        std::abort();
    }
}

void leave_behind()
{
    if (SHARED("leak")) {
        static std::vector<std::unique_ptr<std::vector<int64_t>>> *const kept =
            new std::vector<std::unique_ptr<std::vector<int64_t>>>;
        kept->push_back(std::make_unique<std::vector<int64_t>>(64, 1));
    }
}

// Outputs that a decoy fills although the call fails: no document says what they hold then.
void fill_outputs(const Request &request)
{
    for (const aclTensor *tensor : request.outputs) {
        if (tensor != nullptr && tensor->numel() > 0 && tensor->is_contiguous()) {
            const size_t bytes = static_cast<size_t>(tensor->numel()) * itemsize(tensor->dtype());
            const Span span = DeviceMemory::instance().find(tensor->data, bytes);
            if (span.bytes != nullptr && tensor->view.offset == 0 && tensor->numel() == count(tensor->storage)) {
                std::memset(span.bytes, 0, bytes);
            }
        }
    }
}

}  // namespace

aclnnStatus phase_one(const Operator &operation, uint64_t *workspace_size, aclOpExecutor **executor)
try {
    count_call();
    const Request request = operation.request();
    if (workspace_size == nullptr || executor == nullptr) {
        return fail(param_nullptr,
                    text("%s: %s is null", request.name, workspace_size == nullptr ? "workspaceSize" : "executor"));
    }
    if (soc() == nullptr || !fault_is_known(request.name)) {
        return fail(inner_find_kernel_error, text("%s: no known chip or fault is chosen", request.name));
    }
    const std::string mistake = injection_mistake();
    if (!mistake.empty()) {
        return fail(inner_error, mistake);
    }
    inject(Place::phase_one, first_numel(request));
    std::shared_ptr<const Plan> plan;
    const aclnnStatus status = find_plan(operation, request, plan);
    if (status != success) {
        leave_behind();
        if (SHARED("outputs-after-error")) {
            fill_outputs(request);
        }
        if (SHARED("other-messages")) {
            report("the call cannot be carried out");
        }
        return status;
    }
    *workspace_size = plan->workspace + (SHARED("roomy-workspace") ? 4096 : 0);
    if (SHARED("workspace-short") && *workspace_size > 32) {
        *workspace_size -= 32;
    }
    *executor = make_executor(request, operation.path(), std::move(plan));
    return success;
} catch (const std::exception &error) {
    return fail(inner_error, error.what());
}

aclnnStatus phase_two(const char *name, void *workspace, uint64_t workspace_size, aclOpExecutor *executor,
                      aclrtStream stream)
try {
    const aclnnStatus wrong = check_executor(executor, name);
    if (wrong != success) {
        return wrong;
    }
    if (std::string(executor->name) != name) {
        return fail(inner_error, text("%s: the executor was made by %s", name, executor->name));
    }
    inject(Place::phase_two, executor->numel);
    const aclnnStatus status = run_executor(*executor, workspace, workspace_size, stream);
    if (!executor->repeatable) {
        release_executor(executor);
    }
    return status;
} catch (const std::exception &error) {
    return fail(inner_error, error.what());
}

}  // namespace loopback
