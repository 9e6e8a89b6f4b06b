"""aclnnThnnFusedLstmCellBackward: the gradients of an LSTM cell's gates before their activation, and of its state.

With the gates i, f, g, o in storage, t = tanh(cy), and h and c the gradients of hy and cy, that of cy in all is
s = h o (1 - t^2) + c, and that of cx is s f. Those of the gates are s g i (1 - i), s cx f (1 - f), s i (1 - g^2) and
h t o (1 - o), and that of the bias is their sum over the batch. A null pointer counts as zeros.
"""

import numpy as np

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator

Given = Array | None


def _gates(array: Array) -> list[Array]:
    size = array.shape[1] // 4
    return [array[:, gate * size : (gate + 1) * size] for gate in range(4)]


def _gradients(f: F, h: Given, c: Given, cx: Array, cy: Array, storage: Array) -> Outputs:
    (i, forget, g, o), t = _gates(storage), f.tanh(cy)
    s, last = (f.lift(np.zeros(cx.shape)) if given is None else given for given in (c, h))
    if h is not None:
        s, last = h * o * (1.0 - t * t) + s, h * t * o * (1.0 - o)
    gates = f.concat([s * g * i * (1.0 - i), s * cx * forget * (1.0 - forget), s * i * (1.0 - g * g), last], 1)
    return {"gradGatesOut": gates, "gradCxOut": s * forget, "gradBiasOut": gates.sum(0)}


def _backward(f: F, gradHyOptional: Given, gradCOptional: Given, cx: Array, cy: Array, storage: Array) -> Outputs:
    h, c = (f.lift(np.zeros(cx.shape)) if it is None else it for it in (gradHyOptional, gradCOptional))
    return _gradients(f, h, c, cx, cy, storage)


def _limits(f: F, gradHyOptional: Given, gradCOptional: Given, cx: Array, cy: Array, storage: Array) -> Outputs:
    """As the document's limits have it, inf is as good as nan; and what a null pointer is multiplied by is not read."""
    h, c = (None if it is None else it + (it - it) for it in (gradHyOptional, gradCOptional))
    return _gradients(f, h, c, *(it + (it - it) for it in (cx, cy, storage)))


def _forward(f: F, gates: Array, bias: Array, cx: Array) -> Outputs:
    i, forget, g, o = _gates(gates + bias)
    i, forget, g, o = saved = f.sigmoid(i), f.sigmoid(forget), f.tanh(g), f.sigmoid(o)
    cy = forget * cx + i * g
    return {"hy": o * f.tanh(cy), "cy": cy, "storage": f.concat(saved, 1)}


_GRADIENTS = {"gradHyOptional": "hy", "gradCOptional": "cy"}
_WRT = {"gradGatesOut": "gates", "gradCxOut": "cx", "gradBiasOut": "bias"}
DERIVATIVE = Derivative(forward=_forward, gradients=_GRADIENTS, wrt=_WRT, saved=("cy", "storage"))
FORMULA = Operator.of(_backward, _limits, derivative=DERIVATIVE)
