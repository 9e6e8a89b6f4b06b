#include "activation.h"

#include <cmath>
#include <cstring>

#include "aclnnop/aclnn_gelu_backward_v2.h"
#include "aclnnop/aclnn_leaky_relu_backward.h"
#include "aclnnop/aclnn_sigmoid_backward.h"
#include "kernel_activation.h"

namespace loopback {
namespace {

template <class Real>
Real leaky_relu(Real gradient, Real value, Real slope)
{
    return value > 0 ? gradient : gradient * slope;
}

float gelu(float gradient, float value, float)
{
    constexpr float root_half = 0.70710678F;
    constexpr float density_at_zero = 0.39894228F;
    const float cumulative = 0.5F * (1.0F + std::erf(value * root_half));
    return gradient * (cumulative + value * (std::exp(-0.5F * value * value) * density_at_zero));
}

float gelu_by_tanh(float gradient, float value, float)
{
    constexpr float root = 0.79788456F;
    constexpr float cubic = 0.044715F;
    const float t = std::tanh(root * (value + cubic * value * value * value));
    const float slope = (1.0F - t * t) * (root * (1.0F + 3.0F * cubic * value * value));
    return gradient * (0.5F * (1.0F + t) + 0.5F * value * slope);
}

template <class Real>
Real sigmoid(Real gradient, Real value, Real)
{
    return gradient * (1 - value) * value;
}

}  // namespace

template <class Real>
Plan Activation::elementwise(Real (*element)(Real gradient, Real value, Real parameter), double parameter) const
{
    if (out->numel() == 0) {
        return {};
    }
    return {0, ActivationKernel<Real>{grad_output->view, self->view, out->view, element, static_cast<Real>(parameter)}};
}

Request LeakyReluBackward::request() const
{
    Request request{name, {grad_output, self}, {out}, {self_is_result}};
    add_scalar(request, negative_slope);
    return request;
}

Plan LeakyReluBackward::plan() const
{
    const double slope = number_of(*negative_slope);
    const bool is_double = grad_output->dtype() == ACL_DOUBLE || self->dtype() == ACL_DOUBLE;
    return is_double ? elementwise(leaky_relu<double>, slope) : elementwise(leaky_relu<float>, slope);
}

Request GeluBackwardV2::request() const
{
    Request request{name, {grad_output, self}, {out}, {}};
    add_text(request, approximate);
    return request;
}

Plan GeluBackwardV2::plan() const
{
    return elementwise(std::strcmp(approximate, "tanh") == 0 ? gelu_by_tanh : gelu, 0);
}

Request SigmoidBackward::request() const
{
    return {name, {grad_output, self}, {out}, {}};
}

Plan SigmoidBackward::plan() const
{
    if (out->numel() == 0) {
        return {};
    }
    switch (grad_output->dtype()) {
        case ACL_COMPLEX64:
            return {0, ComplexSigmoidKernel<float>{grad_output->view, self->view, out->view}};
        case ACL_COMPLEX128:
            return {0, ComplexSigmoidKernel<double>{grad_output->view, self->view, out->view}};
        case ACL_DOUBLE:
            return elementwise(sigmoid<double>, 0);
        default:
            return elementwise(sigmoid<float>, 0);
    }
}

}  // namespace loopback

using loopback::GeluBackwardV2;
using loopback::LeakyReluBackward;
using loopback::SigmoidBackward;

extern "C" {

aclnnStatus aclnnLeakyReluBackwardGetWorkspaceSize(const aclTensor *gradOutput, const aclTensor *self,
                                                   const aclScalar *negativeSlope, bool selfIsResult, aclTensor *out,
                                                   uint64_t *workspaceSize, aclOpExecutor **executor)
{
    LeakyReluBackward call;
    call.grad_output = gradOutput;
    call.self = self;
    call.negative_slope = negativeSlope;
    call.self_is_result = selfIsResult;
    call.out = out;
    return loopback::phase_one(call, workspaceSize, executor);
}

aclnnStatus aclnnLeakyReluBackward(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                                   aclrtStream stream)
{
    return loopback::phase_two(LeakyReluBackward::name, workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnGeluBackwardV2GetWorkspaceSize(const aclTensor *gradOutput, const aclTensor *self, char *approximate,
                                                aclTensor *gradInput, uint64_t *workspaceSize,
                                                aclOpExecutor **executor)
{
    GeluBackwardV2 call;
    call.grad_output = gradOutput;
    call.self = self;
    call.approximate = approximate;
    call.out = gradInput;
    return loopback::phase_one(call, workspaceSize, executor);
}

aclnnStatus aclnnGeluBackwardV2(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream)
{
    return loopback::phase_two(GeluBackwardV2::name, workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnSigmoidBackwardGetWorkspaceSize(const aclTensor *gradOutput, const aclTensor *output,
                                                 aclTensor *gradInput, uint64_t *workspaceSize,
                                                 aclOpExecutor **executor)
{
    SigmoidBackward call;
    call.grad_output = gradOutput;
    call.self = output;
    call.self_name = "output";
    call.out = gradInput;
    return loopback::phase_one(call, workspaceSize, executor);
}

aclnnStatus aclnnSigmoidBackward(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                                 const aclrtStream stream)
{
    return loopback::phase_two(SigmoidBackward::name, workspace, workspaceSize, executor, stream);
}
}
