"""aclnnRoiPoolingGradWithArgMax: each gradient is added to the element that was the largest of its part of a region."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._windows import Numbers, Shape, within_planes


def _cells(rois: Numbers, argmax: Numbers, shape: Shape) -> Numbers:
    batches = rois[:, :1, None, None].astype(argmax.dtype)
    return within_planes(batches * (shape[1] * shape[2] * shape[3]) + argmax, shape[1:])


def _backward(f: F, gradOutput: Array, gradInputRef: Numbers, rois: Numbers, argmax: Numbers) -> Outputs:
    cells, unclear = _cells(rois, argmax, gradInputRef.shape), gradInputRef != 0
    unclear.reshape(-1)[cells[argmax == 0]] = True  # whether the index 0 counts is not said, nor whether contents do
    return {"gradInputRef": f.undecided(f.scatter_add(gradOutput, cells, gradInputRef.shape), where=unclear)}


def _forward(f: F, self: Array, rois: Numbers, argmax: Numbers) -> Outputs:
    return {"y": f.take(self.reshape(-1), _cells(rois, argmax, self.shape))}


DERIVATIVE = Derivative(forward=_forward, gradients={"gradOutput": "y"}, wrt={"gradInputRef": "self"})
FORMULA = Operator.of(_backward, derivative=DERIVATIVE, raw=("rois", "gradInputRef"))
