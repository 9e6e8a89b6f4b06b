"""What inf and nan in the inputs require of a result.

They are required only where every listed form of the formula gives them: in float64, and in FLOAT with operands below
the normal range flushed to zero, since the product of inf with a number that may be taken for zero is inf or nan. One
form agrees with itself about anything, so that it takes two to require something.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.arithmetic import Arithmetic
from aclnn_cts.core.expected import Float64, OracleInput
from aclnn_cts.core.rounding import BINARY_FORMATS
from aclnn_cts.formula.definition import Form, Operator, default_arithmetic
from aclnn_cts.formula.emulator import FASTEST, Emulator, Variant

__all__ = ["DOUBLE", "Settled", "plain_values", "settle"]

DOUBLE = Arithmetic(accumulation=BINARY_FORMATS["DOUBLE"], flushes=False)
_FAST = Variant(order=FASTEST)


class Settled(NamedTuple):
    """One output on inputs that hold inf or nan, in its shape."""

    value: Float64
    """By the first form in float64."""
    open: NDArray[np.bool_]
    """Where nothing is required."""
    touched: NDArray[np.bool_]
    """Where the result depends on an element that is inf or nan."""


def settle(operator: Operator, call: OracleInput, outputs: Sequence[str]) -> dict[str, Settled]:
    """What every form gives of a call, and on what they agree. The caller sees to NumPy's warnings."""
    forms = operator.forms

    def values(form: Form, question: OracleInput, f: Emulator) -> dict[str, Float64]:
        results = operator.evaluate(form, f, question)
        return {name: results[name].v.astype(np.float64) for name in outputs}  # type: ignore[attr-defined]

    tensors = {
        name: np.where(np.isfinite(array), array, np.nan)
        if array.dtype == np.float64 and name not in operator.raw
        else array
        for name, array in call.tensors.items()
    }
    marked = values(forms[0], msgspec.structs.replace(call, tensors=tensors), Emulator(DOUBLE, _FAST, marks=True))
    found: dict[str, Settled] = {}
    for form in forms:
        for f in (Emulator(DOUBLE, _FAST), Emulator(default_arithmetic(), Variant(flushes=True))):
            for name, value in values(form, call, f).items():
                first = found.get(name)
                if first is None:
                    touched = np.isnan(marked[name])
                    # A finite result that depends on inf or nan is a decision or a function's limit: not required.
                    unsettled = touched & (np.isfinite(value) if len(forms) > 1 else True)
                    found[name] = Settled(value, unsettled, touched)
                else:
                    first.open[...] |= first.touched & ~_alike(first.value, value)
    return found


def _alike(left: Float64, right: Float64) -> NDArray[np.bool_]:
    """Whether results are both finite, both nan, or the same infinity."""
    special = np.where(np.isfinite(left), 0.0, left), np.where(np.isfinite(right), 0.0, right)
    alike: NDArray[np.bool_] = (special[0] == special[1]) | (np.isnan(left) & np.isnan(right))
    return alike


def plain_values(operator: Operator, call: OracleInput, outputs: Sequence[str]) -> dict[str, Float64]:
    """The outputs of the form that judges in float64, and nothing more; inf and nan as that form makes them."""
    with np.errstate(all="ignore"):
        results = operator.evaluate(operator.judging, Emulator(DOUBLE, _FAST), call)
    return {name: results[name].v for name in outputs}  # type: ignore[attr-defined]
