"""The backward pass of a maximum pooling: each gradient is added to the element that was the largest of its window."""

from __future__ import annotations

import math

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._windows import Numbers, Shape, naming, within_planes


def max_pooling(dimensions: int) -> Operator:
    """Its operator over the last dimensions; `indices` has positions among them."""

    def scattered(f: F, gradOutput: Array, indices: Numbers, gradInput: Shape) -> Outputs:
        return {"gradInput": f.scatter_add(gradOutput, within_planes(indices, gradInput, dimensions), gradInput)}

    def gathered(f: F, gradOutput: Array, indices: Numbers, gradInput: Shape) -> Outputs:
        named = naming(within_planes(indices, gradInput, dimensions), math.prod(gradInput))
        return {"gradInput": f.take(gradOutput.reshape(-1), named).sum(-1).reshape(*gradInput)}

    def forward(f: F, self: Array, indices: Numbers) -> Outputs:
        return {"y": f.take(self.reshape(-1), within_planes(indices, self.shape, dimensions))}

    derivative = Derivative(forward=forward, gradients={"gradOutput": "y"}, wrt={"gradInput": "self"})
    return Operator.of(scattered, gathered, derivative=derivative)
