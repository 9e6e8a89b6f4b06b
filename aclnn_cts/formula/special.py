"""What inf and nan in the inputs require of a result.

They are required only where every listed form of the formula gives them: in float64, and in the format of intermediates
with operands below the normal range flushed to zero, since the product of inf with a number that may be taken for zero
is inf or nan; and with functions off by their stated error, which may take a result away from zero. One
form agrees with itself about anything, so that it takes two to require something. Of complex results nothing is
required: C lets a product with an infinite factor be infinite where the definition gives nan (C17, annex G.5.1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.expected import Arithmetic, Float64, OracleInput
from aclnn_cts.core.rounding import BINARY_FORMATS
from aclnn_cts.formula.definition import Form, Operator, default_arithmetic, is_complex
from aclnn_cts.formula.emulator import FASTEST, Emulator, Variant

DOUBLE = Arithmetic(accumulation=BINARY_FORMATS["DOUBLE"], flushes=False)
_FAST = Variant(order=FASTEST)
_FLUSHED = Variant(order=FASTEST, flushes=True)
_TILTED = Variant(order=FASTEST, tilt=1.0), Variant(order=FASTEST, tilt=-1.0)


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
        return {name: np.asarray(results[name].v, np.float64) for name in outputs}  # type: ignore[attr-defined]

    def with_numbers(change: Callable[[str, Float64], Float64]) -> OracleInput:
        tensors = {
            name: change(name, array) if array.dtype == np.float64 and name not in operator.raw else array
            for name, array in call.tensors.items()
        }
        return msgspec.structs.replace(call, tensors=tensors)

    def marking(_name: str, array: Float64) -> Float64:
        return np.where(np.isfinite(array), array, np.nan)

    def least(name: str, array: Float64) -> Float64:
        """The number of the least magnitude that a mode may make of each."""
        size = np.abs(array) - call.radii.get(name, 0.0)
        return np.where(np.isfinite(array), np.copysign(np.maximum(size, 0.0), array), array)

    marks = Emulator(DOUBLE, _FAST, marks=True)
    marked = values(forms[0], with_numbers(marking), marks)
    stated = [call.arithmetics[name] for name in outputs if name in call.arithmetics] or [default_arithmetic()]
    ways = [(call, DOUBLE, _FAST), (with_numbers(least) if call.radii else call, stated[0], _FLUSHED)]
    if len(forms) > 1 and any(operation.name == "function" for operation in marks.operations):
        ways += [(call, stated[0], tilted) for tilted in _TILTED]
    found: dict[str, Settled] = {}
    for form in forms:
        for question, arithmetic, variant in ways:
            for name, value in values(form, question, Emulator(arithmetic, variant)).items():
                first = found.get(name)
                if first is None:
                    touched = np.asarray(np.isnan(marked[name]))
                    # A finite result that depends on inf or nan is a decision or a function's limit: not required.
                    decided = len(forms) > 1 and not is_complex(call, name)
                    unsettled = np.array(touched & (np.isfinite(value) if decided else True))
                    found[name] = Settled(value, unsettled, touched)
                else:
                    first.open[...] |= first.touched & ~alike(first.value, value)
    return found


def alike(left: Float64, right: Float64) -> NDArray[np.bool_]:
    """Whether results are both finite, both nan, or the same infinity."""
    special = np.where(np.isfinite(left), 0.0, left), np.where(np.isfinite(right), 0.0, right)
    alike: NDArray[np.bool_] = (special[0] == special[1]) | (np.isnan(left) & np.isnan(right))
    return alike


def plain_values(operator: Operator, call: OracleInput, outputs: Sequence[str]) -> dict[str, Float64]:
    """The outputs of the form that judges in float64, and nothing more; inf and nan as that form makes them."""
    with np.errstate(all="ignore"):
        results = operator.evaluate(operator.judging, Emulator(DOUBLE, _FAST), call)
    return {name: results[name].v for name in outputs}  # type: ignore[attr-defined]
