"""aclnnMoeTokenPermuteGrad: the gradient of a token is the sum of those of its copies, one for each of K experts."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._routing import added_up, repeated, rows_at, rows_put
from aclnn_cts.oracles._windows import Numbers


def _backward(f: F, permutedOutputGrad: Array, sortedIndices: Numbers, numTopk: int) -> Outputs:
    return {"out": added_up(rows_at(f, permutedOutputGrad, sortedIndices), numTopk)}


def _forward(f: F, tokens: Array, sortedIndices: Numbers, numTopk: int) -> Outputs:
    return {"permutedTokens": rows_put(f, repeated(f, tokens, numTopk), sortedIndices, sortedIndices.size)}


_DERIVATIVE = Derivative(forward=_forward, gradients={"permutedOutputGrad": "permutedTokens"}, wrt={"out": "tokens"})
FORMULA = Operator.of(_backward, derivative=_DERIVATIVE)
