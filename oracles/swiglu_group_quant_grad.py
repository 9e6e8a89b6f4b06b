"""aclnnSwigluGroupQuantGrad: that of aclnnSwigluGroupGrad, whose groups leave out rows of the gradient of w as well."""

from __future__ import annotations

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Operator
from aclnn_cts.oracles._windows import Numbers, Shape
from aclnn_cts.oracles.swiglu_group_grad import counted, of_weight, of_x


def _backward(
    f: F, gradY: Array, x: Array, weightOptional: Array | None, yOriginOptional: Array | None,
    groupIndexOptional: Numbers | None, *, clampLimit: float, gradWeightOutOptional: Shape | None,
) -> Outputs:  # fmt: skip
    weight = None if weightOptional is None else weightOptional.reshape(*x.shape[:-1], 1)
    results = {"gradXOut": of_x(f, gradY, x, weight, groupIndexOptional, clampLimit=clampLimit)}
    if gradWeightOutOptional is not None:
        kept = f.where(counted(x.shape, groupIndexOptional), of_weight(gradY, yOriginOptional), 0.0)
        results["gradWeightOutOptional"] = kept.reshape(*gradWeightOutOptional)
    return results


_REASON = "a row has 512 numbers at least, too many for differences; swiglu_group_grad has the same gradients of x"
FORMULA = Operator.of(_backward, derivative=_REASON)
