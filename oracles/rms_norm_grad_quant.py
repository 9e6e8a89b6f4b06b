"""aclnnRmsNormGradQuant: the gradients of RMS normalisation, that of x scaled and shifted before it is rounded."""

from __future__ import annotations

from collections.abc import Mapping

from aclnn_cts.core.rounding import BINARY_FORMATS
from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._windows import Numbers
from aclnn_cts.oracles.rms_norm_grad import factored_formula, rms_norm


def _backward(  # noqa: PLR0913 - the parameters of the prototype
    f: F, dy: Array, x: Array, rstd: Array, gamma: Array, scalesX: Array, offsetXOptional: Numbers | None,
    *, divMode: bool, dtypes: Mapping[str, str],
) -> Outputs:  # fmt: skip
    results = factored_formula(f, dy, x, rstd, gamma)
    # Whether the gradient is rounded to the dtype of dy first is not said.
    near = BINARY_FORMATS[dtypes["dy"]].unit_roundoff
    gradient = f.either(results["dxOut"] * (1.0 - near), results["dxOut"] * (1.0 + near))
    gradient = f.narrowed(gradient, dtypes["dy"], normal=False)
    scaled = gradient / scalesX if divMode else gradient * scalesX
    results["dxOut"] = scaled if offsetXOptional is None else scaled + float(offsetXOptional[0])
    return results


_DERIVATIVE = Derivative(forward=rms_norm, gradients={"dy": "y"}, wrt={"dgammaOut": "gamma"}, saved=("rstd",))
FORMULA = Operator.of(_backward, derivative=_DERIVATIVE)
