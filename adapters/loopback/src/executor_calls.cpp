// The interface's calls on executors, between the two phases.
#include "executor.h"
#include "message.h"
#include "registry.h"

namespace loopback {
namespace {

aclnnStatus set_address(aclOpExecutor *executor, size_t begin, size_t end, size_t index, const aclTensor *tensor,
                        void *address, const char *caller)
{
    if (tensor == nullptr) {
        return fail(param_nullptr, std::string(caller) + ": a null pointer");
    }
    if (index >= end - begin) {
        return fail(param_invalid, text("%s: index %zu of %zu", caller, index, end - begin));
    }
    aclOpExecutor::Argument &argument = executor->arguments[begin + index];
    argument.tensor = tensor;
    argument.number = Registry::instance().find(tensor);
    argument.address = address;
    return success;
}

// The tensors of lists keep their addresses here.
aclnnStatus refuse_list(const aclOpExecutor *executor, const aclTensorList *list, const char *caller)
{
    if (executor == nullptr || list == nullptr) {
        return fail(param_nullptr, std::string(caller) + ": a null pointer");
    }
    return fail(param_invalid, std::string(caller) + ": the tensors of a list keep their addresses");
}

}  // namespace
}  // namespace loopback

using namespace loopback;

extern "C" {

aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor *executor)
{
    if (executor == nullptr) {
        return fail(inner_nullptr, "aclSetAclOpExecutorRepeatable: a null pointer");
    }
    const aclnnStatus wrong = check_executor(executor, "aclSetAclOpExecutorRepeatable");
    if (wrong == success) {
        executor->repeatable = true;
    }
    return wrong;
}

aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor *executor)
{
    const aclnnStatus wrong = check_executor(executor, "aclDestroyAclOpExecutor");
    if (wrong == success) {
        release_executor(executor);
    }
    return wrong;
}

aclnnStatus aclSetInputTensorAddr(aclOpExecutor *executor, size_t index, aclTensor *tensor, void *address)
{
    const aclnnStatus wrong = check_executor(executor, "aclSetInputTensorAddr");
    return wrong != success
               ? wrong
               : set_address(executor, 0, executor->input_count, index, tensor, address, "aclSetInputTensorAddr");
}

aclnnStatus aclSetOutputTensorAddr(aclOpExecutor *executor, size_t index, aclTensor *tensor, void *address)
{
    const aclnnStatus wrong = check_executor(executor, "aclSetOutputTensorAddr");
    return wrong != success ? wrong
                            : set_address(executor, executor->input_count, executor->arguments.size(), index, tensor,
                                          address, "aclSetOutputTensorAddr");
}

aclnnStatus aclSetTensorAddr(aclOpExecutor *executor, size_t index, aclTensor *tensor, void *address)
{
    const aclnnStatus wrong = check_executor(executor, "aclSetTensorAddr");
    return wrong != success
               ? wrong
               : set_address(executor, 0, executor->arguments.size(), index, tensor, address, "aclSetTensorAddr");
}

aclnnStatus aclSetDynamicInputTensorAddr(aclOpExecutor *executor, size_t, size_t, aclTensorList *list, void *)
{
    return refuse_list(executor, list, "aclSetDynamicInputTensorAddr");
}

aclnnStatus aclSetDynamicOutputTensorAddr(aclOpExecutor *executor, size_t, size_t, aclTensorList *list, void *)
{
    return refuse_list(executor, list, "aclSetDynamicOutputTensorAddr");
}

aclnnStatus aclSetDynamicTensorAddr(aclOpExecutor *executor, size_t, size_t, aclTensorList *list, void *)
{
    return refuse_list(executor, list, "aclSetDynamicTensorAddr");
}
}
