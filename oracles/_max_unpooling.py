"""The backward pass of max unpooling: each element takes the gradient at the place that its index names."""

from __future__ import annotations

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._windows import Numbers, Shape, within_planes


def max_unpooling(dimensions: int) -> Operator:
    """Its operator over the last dimensions; `indices` has positions among them."""

    def taken(f: F, gradOutput: Array, indices: Numbers) -> Outputs:
        """Integers are lifted, so that they go the way of other numbers."""
        return {"out": f.take(f.lift(gradOutput).reshape(-1), within_planes(indices, gradOutput.shape, dimensions))}

    def forward(f: F, self: Array, indices: Numbers, gradOutput: Shape) -> Outputs:
        """Of indices that occur twice the last would win; a sum has the same slopes."""
        return {"y": f.scatter_add(f.lift(self), within_planes(indices, gradOutput, dimensions), gradOutput)}

    return Operator.of(
        taken, derivative=Derivative(forward=forward, gradients={"gradOutput": "y"}, wrt={"out": "self"})
    )
