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
from aclnn_cts.formula.definition import Form, default_arithmetic, evaluate
from aclnn_cts.formula.emulator import Emulated, Emulator, Variant

__all__ = ["Settled", "settle"]

_DOUBLE = Arithmetic(accumulation=BINARY_FORMATS["DOUBLE"], flushes=False)


class Settled(NamedTuple):
    """One output on inputs that hold inf or nan, in its shape."""

    value: Float64
    """By the first form in float64."""
    open: NDArray[np.bool_]
    """Where nothing is required."""
    touched: NDArray[np.bool_]
    """Where the result depends on an element that is inf or nan."""


def settle(forms: Sequence[Form], call: OracleInput, outputs: Sequence[str]) -> dict[str, Settled]:
    """What every form gives of a call, and on what they agree. The caller sees to NumPy's warnings."""
    marked = _values(forms[0], _changed(call, _marked), outputs, Emulator(_DOUBLE, marks=True))
    found: dict[str, Settled] = {}
    for form in forms:
        for f in (Emulator(_DOUBLE), Emulator(default_arithmetic(), Variant(flushes=True))):
            for name, value in _values(form, call, outputs, f).items():
                first = found.get(name)
                if first is None:
                    touched = np.isnan(marked[name])
                    # A finite result that depends on inf or nan is a decision or a function's limit: not required.
                    unsettled = touched & (np.isfinite(value) if len(forms) > 1 else True)
                    found[name] = Settled(value, unsettled, touched)
                else:
                    first.open[...] |= first.touched & ~_alike(first.value, value)
    return found


def _values(form: Form, call: OracleInput, outputs: Sequence[str], f: Emulator) -> dict[str, Float64]:
    results = evaluate(form, f, call)
    found = {}
    for name in outputs:
        result = results[name]
        assert isinstance(result, Emulated)  # noqa: S101 - the backend's own class
        found[name] = result.v.astype(np.float64)
    return found


def _changed(call: OracleInput, change: np.ufunc) -> OracleInput:
    tensors = {name: change(array) if array.dtype == np.float64 else array for name, array in call.tensors.items()}
    return msgspec.structs.replace(call, tensors=tensors)


def _marked(array: Float64) -> Float64:
    return np.where(np.isfinite(array), array, np.nan)


def _alike(left: Float64, right: Float64) -> NDArray[np.bool_]:
    """Whether results are both finite, both nan, or the same infinity."""
    special = np.where(np.isfinite(left), 0.0, left), np.where(np.isfinite(right), 0.0, right)
    alike: NDArray[np.bool_] = (special[0] == special[1]) | (np.isnan(left) & np.isnan(right))
    return alike
