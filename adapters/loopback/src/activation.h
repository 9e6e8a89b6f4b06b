// aclnnLeakyReluBackward, aclnnGeluBackwardV2 and aclnnSigmoidBackward: elementwise on two tensors that broadcast.
#pragma once

#include "executor.h"
#include "tensor.h"

namespace loopback {

// The number that a scalar holds; 0 for a dtype that has none.
double number_of(const aclScalar &scalar);

// What both have: a gradient, the forward operator's argument or result, and the gradient of its argument.
class Activation : public Operator {
public:
    const aclTensor *grad_output;
    const aclTensor *self;
    const aclTensor *out;
    const char *self_name = "self";

protected:
    // `element` gives the result for one element of each.
    template <class Real>
    Plan elementwise(Real (*element)(Real gradient, Real value, Real parameter), double parameter) const;
    aclnnStatus check_tensors(const char *op, const char *out_name, const void *other, const char *other_name) const;
    aclnnStatus check_shapes(const char *op, const char *out_name) const;
};

class LeakyReluBackward final : public Activation {
public:
    static constexpr const char *name = "aclnnLeakyReluBackward";

    const aclScalar *negative_slope;
    bool self_is_result;

    Request request() const override;
    aclnnStatus check() const override;
    Plan plan() const override;
};

class GeluBackwardV2 final : public Activation {
public:
    static constexpr const char *name = "aclnnGeluBackwardV2";

    const char *approximate;

    Request request() const override;
    aclnnStatus check() const override;
    Plan plan() const override;
};

class SigmoidBackward final : public Activation {
public:
    static constexpr const char *name = "aclnnSigmoidBackward";

    Request request() const override;
    aclnnStatus check() const override;
    Plan plan() const override;
};

}  // namespace loopback
