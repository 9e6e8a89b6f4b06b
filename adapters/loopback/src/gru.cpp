#include "gru.h"

#include "aclnnop/aclnn_gru_backward.h"
#include "kernel_gru.h"

namespace loopback {
namespace {

// The tensors of a list as arguments of their own, and how many they are.
void add_list(Request &request, std::vector<const aclTensor *> &tensors, const aclTensorList *list)
{
    request.attributes.push_back(list == nullptr ? -1 : static_cast<int64_t>(list->values.size()));
    if (list != nullptr) {
        tensors.insert(tensors.end(), list->values.begin(), list->values.end());
    }
}

// Numbers the arguments in the order of the request.
class Numbering {
public:
    Slot one(const aclTensor *tensor) { return {next_++, tensor->view}; }

    std::vector<Slot> all(const aclTensorList *list)
    {
        std::vector<Slot> slots;
        for (const aclTensor *tensor : list->values) {
            slots.push_back(one(tensor));
        }
        return slots;
    }

    void skip() { ++next_; }

private:
    size_t next_ = 0;
};

}  // namespace

Request GruBackward::request() const
{
    Request request{name, {input, dy, dh, batch_sizes}, {dx, dh_prev}, {has_bias, layers, bidirectional, batch_first}};
    add_list(request, request.inputs, params);
    add_list(request, request.inputs, hx);
    for (const aclTensorList *list : saved) {
        add_list(request, request.inputs, list);
    }
    add_list(request, request.outputs, dparams);
    return request;
}

Plan GruBackward::plan() const
{
    GruKernel kernel;
    Numbering numbers;
    kernel.input = numbers.one(input);
    kernel.dy = numbers.one(dy);
    kernel.dh = numbers.one(dh);
    numbers.skip();
    kernel.params = numbers.all(params);
    kernel.hx = numbers.all(hx).front();
    for (size_t number = 0; number < 5; ++number) {
        kernel.saved[number] = numbers.all(saved[number]);
    }
    kernel.dx = numbers.one(dx);
    kernel.dh_prev = numbers.one(dh_prev);
    kernel.dparams = numbers.all(dparams);
    kernel.each = static_cast<size_t>(each());
    kernel.layers = layers;
    kernel.directions = directions();
    kernel.batch_first = batch_first;
    kernel.steps = input->dim(batch_first ? 1 : 0);
    kernel.batch = input->dim(batch_first ? 0 : 1);
    kernel.features = input->dim(2);
    kernel.hidden = dh->dim(2);
    return {0, kernel};
}

}  // namespace loopback

using loopback::GruBackward;

extern "C" {

aclnnStatus aclnnGRUBackwardGetWorkspaceSize(const aclTensor *input, const aclTensorList *params,
                                             const aclTensorList *hx, const aclTensor *dy, const aclTensor *dh,
                                             const aclTensorList *r, const aclTensorList *z, const aclTensorList *n,
                                             const aclTensorList *h_n, const aclTensorList *h,
                                             const aclTensor *batchSizesOptional, bool hasBias, int64_t numLayers,
                                             bool bidirectional, bool batchFirst, aclTensor *dxOut,
                                             aclTensor *dhPrevOut, aclTensorList *dparamsOut, uint64_t *workspaceSize,
                                             aclOpExecutor **executor)
{
    GruBackward call;
    call.input = input;
    call.params = params;
    call.hx = hx;
    call.dy = dy;
    call.dh = dh;
    call.saved[0] = r;
    call.saved[1] = z;
    call.saved[2] = n;
    call.saved[3] = h_n;
    call.saved[4] = h;
    call.batch_sizes = batchSizesOptional;
    call.has_bias = hasBias;
    call.layers = numLayers;
    call.bidirectional = bidirectional;
    call.batch_first = batchFirst;
    call.dx = dxOut;
    call.dh_prev = dhPrevOut;
    call.dparams = dparamsOut;
    return loopback::phase_one(call, workspaceSize, executor);
}

aclnnStatus aclnnGRUBackward(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream)
{
    return loopback::phase_two(GruBackward::name, workspace, workspaceSize, executor, stream);
}
}
