"""Laws that follow from a formula: of its incoming gradients, and of the forward operator where that is linear."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np

from aclnn_cts.core.expected import Float64, OracleInput
from aclnn_cts.core.law import Law, LawInput
from aclnn_cts.formula.bounds import Bounds
from aclnn_cts.formula.definition import Derivative, Form, Operator, default_arithmetic
from aclnn_cts.formula.reach import Inputs
from aclnn_cts.oracles import _laws


def laws_of_formula(operator: Operator) -> tuple[Law, ...]:
    """Linearity, zeros and scaling in the one incoming gradient, repetition, layouts, and the adjoint if it is known.

    Splitting and permuting need to know which dimensions belong together; an oracle file states them in a line each.
    """
    derivative = operator.derivative
    if isinstance(derivative, str) or len(derivative.gradients) != 1:
        return (_laws.layout(),)
    [gradient] = derivative.gradients
    found = [
        _laws.linear(gradient),
        _laws.zero(gradient, overflows=True),
        _laws.scaling(gradient),
        _laws.layout(),
        _laws.repeat(gradient),
    ]
    if derivative.linear:
        found.insert(0, _laws.adjoint(_forward(operator, derivative)))
    return tuple(found)


def _forward(operator: Operator, derivative: Derivative) -> Callable[[LawInput, str, Float64], tuple[float, float]]:
    """<F v, g> with F as `forward`, v in the place of what an output is the gradient of; the sum over magnitudes."""
    form = Form.of(derivative.forward)
    hidden = (*derivative.gradients, *derivative.wrt)

    def forward(base: LawInput, output: str, v: Float64) -> tuple[float, float]:
        parameter = derivative.wrt[output]
        tensors = {name: array for name, array in base.tensors.items() if name not in hidden} | {parameter: v}
        others = [name for name in derivative.wrt.values() if name != parameter and name in tensors]
        call = OracleInput(tensors=tensors, arguments=base.case.arguments)
        value = size = 0.0
        for sign, question in ((1.0, call), *((-1.0, _without(call, parameter)) for _ in others[:1])):
            f = Bounds(default_arithmetic(), inputs=Inputs.of(question, operator.raw))
            results = operator.evaluate(form, f, question)
            for name, result in derivative.gradients.items():
                gradient = base.tensors[name]
                found = results[result]
                value += sign * float((gradient * found.v).sum())  # type: ignore[attr-defined]
                size += float((np.abs(gradient) * found.m).sum())  # type: ignore[attr-defined]
        return value, size

    return forward


def _without(call: OracleInput, parameter: str) -> OracleInput:
    """The call with zeros for one input: what is left of an affine operator."""
    zeros = np.zeros(call.tensors[parameter].shape)
    return msgspec.structs.replace(call, tensors={**call.tensors, parameter: zeros})
