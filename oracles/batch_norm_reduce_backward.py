"""aclnnBatchNormReduceBackward: the sums over each channel that the gradients of a batch normalisation are made of.

With d = input - mean they are sumDy = gradBias = sum(gradOut), sumDyXmu = sum(gradOut d) and gradWeight = sumDyXmu
invstd. A channel without elements has outputs that should be empty, and have a length: they are open.
"""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._normalisation import by_channel


def _backward(f: F, gradOut: Array, input: Array, mean: Array, invstd: Array) -> Outputs:
    axes = (0, *range(2, input.ndim))
    centred = f.as_written(input - by_channel(input, mean))
    sums, products = (f.undecided(term.sum(axes), where=input.size == 0) for term in (gradOut, gradOut * centred))
    return {"sumDy": sums, "sumDyXmu": products, "gradWeight": products * invstd, "gradBias": sums}


def _forward(f: F, input: Array, mean: Array, invstd: Array, weight: Array | None) -> Outputs:
    normal = (input - by_channel(input, mean)) * by_channel(input, invstd)
    return {"y": normal if weight is None else normal * by_channel(input, weight)}


FORMULA = Operator.of(
    _backward, derivative=Derivative(forward=_forward, gradients={"gradOut": "y"}, wrt={"gradWeight": "weight"})
)
