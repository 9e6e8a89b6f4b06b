"""aclnnModulateBackward: the gradients of input scale + shift, where scale and shift repeat along the sequence."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator


def _backward(f: F, grad_output: Array, input: Array, scale: Array | None) -> Outputs:
    return {
        "grad_input": grad_output if scale is None else grad_output * scale.reshape(scale.shape[0], 1, scale.shape[1]),
        "grad_scale": (grad_output * input).sum(1),
        "grad_shift": grad_output.sum(1),
    }


def _forward(f: F, input: Array, scale: Array | None, shift: Array | None) -> Outputs:
    y = input if scale is None else input * scale.reshape(scale.shape[0], 1, scale.shape[1])
    return {"y": y if shift is None else y + shift.reshape(shift.shape[0], 1, shift.shape[1])}


_WRT = {"grad_input": "input", "grad_scale": "scale", "grad_shift": "shift"}
FORMULA = Operator.of(_backward, derivative=Derivative(forward=_forward, gradients={"grad_output": "y"}, wrt=_WRT))
