"""aclnnBatchNormElemtBackward: the gradient of a batch normalisation's input, from sums that are given.

With n = counter and d = input - mean it is (gradOut - sumDy / n - d invstd^2 sumDyXmu / n) invstd weight, channel by
channel. The three terms are the ways through the output itself, through the mean and through the variance.

What several counts stand for is not said: n is a number from the least of them to their sum, as each reading has it.
"""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._normalisation import by_channel


def _backward(  # noqa: PLR0913 - the parameters of the prototype
    f: F, gradOut: Array, input: Array, mean: Array, invstd: Array, weight: Array | None, *, sumDy: Array,
    sumDyXmu: Array, counter: Array,
) -> Outputs:  # fmt: skip
    counts, factor = f.lift(counter).reshape(-1), by_channel(input, invstd)

    # From the left, as below: an exact product of two factors rounds nothing, while the kernel's order may.
    along = f.as_written(input - by_channel(input, mean)) * factor * factor * by_channel(input, sumDyXmu)

    def gradient(n: Array) -> Array:
        found: Array = (gradOut - by_channel(input, sumDy) / n - along / n) * factor
        return found if weight is None else found * by_channel(input, weight)

    found = gradient(counts.sum())
    if counts.size > 1:
        found = f.either(found, gradient(-(-counts).max()))
    return {"gradInput": f.undecided(found, where=counts.size == 0)}


def _forward(f: F, input: Array, mean: Array, invstd: Array, weight: Array | None, *, counter: Array) -> Outputs:
    d, n = input - by_channel(input, mean), f.lift(counter).sum()
    slope = by_channel(input, invstd if weight is None else invstd * weight)
    axes = (0, *range(2, input.ndim))
    along_mean, along_variance = (input * -slope).sum(axes), (d * d * -0.5 * slope).sum(axes) * invstd * invstd
    return {"y": d * slope, "mean": along_mean / n, "variance": along_variance / n}


_GRADIENTS = {"gradOut": "y", "sumDy": "mean", "sumDyXmu": "variance"}
FORMULA = Operator.of(
    _backward, derivative=Derivative(forward=_forward, gradients=_GRADIENTS, wrt={"gradInput": "input"})
)
