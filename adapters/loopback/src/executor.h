// The two phases, whatever the operator.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "aclnn/acl_meta.h"
#include "plan.h"
#include "status.h"

namespace loopback {

// The arguments of a phase one, as far as the machinery needs them.
struct Request {
    const char *name;
    std::vector<const aclTensor *> inputs;
    std::vector<const aclTensor *> outputs;
    // Attributes and arrays: part of the key by which the cache knows a call.
    std::vector<int64_t> attributes;
    // Outputs that a mask excludes: checked, never written.
    std::vector<const aclTensor *> excluded = {};
};

// An attribute's bits, for a request.
inline int64_t bits_of(double value)
{
    int64_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

// Append an array, a scalar or a text, or the lack of one, to a request's attributes.
void add_array(Request &request, const aclIntArray *array);
void add_array(Request &request, const aclBoolArray *array);
void add_scalar(Request &request, const aclScalar *scalar);
void add_text(Request &request, const char *text);

// Which of the two ways an operator's entry points are made in.
enum class Path {
    // Checked, planned and kept in the cache by the operator's own code; executors are made anew.
    composite,
    // Generated from a definition: no cache, executors from a pool, a workspace that is too small is refused.
    individual
};

// An operator's own part of phase one.
class Operator {
public:
    virtual ~Operator() = default;
    virtual Path path() const { return Path::composite; }
    virtual Request request() const = 0;
    virtual aclnnStatus check() const = 0;
    // Called only for arguments that were accepted.
    virtual Plan plan() const = 0;
};

aclnnStatus phase_one(const Operator &operation, uint64_t *workspace_size, aclOpExecutor **executor);
// Whether it is an executor that is neither used up nor destroyed.
aclnnStatus check_executor(const aclOpExecutor *executor, const char *caller);
// Destroys it, or gives it back to the pool.
void release_executor(aclOpExecutor *executor);
aclnnStatus phase_two(const char *name, void *workspace, uint64_t workspace_size, aclOpExecutor *executor,
                      aclrtStream stream);

}  // namespace loopback

struct aclOpExecutor {
    const char *name;
    loopback::Path path;
    std::shared_ptr<const loopback::Plan> plan;

    struct Argument {
        const aclTensor *tensor;
        // The tensor's number in the registry: it must be the same one still when phase two runs.
        uint64_t number;
        void *address;
    };
    // Inputs, then outputs.
    std::vector<Argument> arguments;
    size_t input_count;
    // Elements of the first output when phase one was called.
    int64_t numel;
    bool repeatable;
    // How often it was run.
    int64_t runs;
};
