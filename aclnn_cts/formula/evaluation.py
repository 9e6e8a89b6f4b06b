"""A formula evaluated step by step in one arithmetic: values alone, and what inf and nan in an input require."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.expected import Arithmetic, Float64, OracleInput
from aclnn_cts.core.rounding import BINARY_FORMATS
from aclnn_cts.formula.definition import Form, Operator, default_arithmetic, is_complex, output_shapes
from aclnn_cts.formula.emulator import FASTEST, Emulated, Emulator, TooManyTermsError, Variant

DOUBLE = Arithmetic(accumulation=BINARY_FORMATS["DOUBLE"], flushes=False)
_FAST = Variant(order=FASTEST)
_FLUSHED = Variant(order=FASTEST, flushes=True)
_DECLINED = Variant(order=FASTEST, undecided=np.nan)
_TILTED = Variant(order=FASTEST, tilt=1.0), Variant(order=FASTEST, tilt=-1.0)


def benchmark(operator: Operator, call: OracleInput) -> dict[str, NDArray[np.float32]]:
    """Every operation rounded to FLOAT, sums from the first term to the last, nothing fused.

    Nothing where a sum would have too many terms for that.
    """
    found: dict[str, NDArray[np.float32]] = {}
    with np.errstate(all="ignore"):
        try:
            results = operator.evaluate(operator.judging, Emulator(default_arithmetic()), call)
        except TooManyTermsError:
            return found
    for name in output_shapes(call):
        result = results[name]
        if isinstance(result, Emulated):
            found[name] = result.v.astype(np.float32, copy=False)
    return found


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

    marks = [Emulator(DOUBLE, _FAST, marks=True) for _ in (forms if operator.adds_zeros else forms[:1])]
    question = with_numbers(marking)
    reached = [
        {name: np.isnan(value) for name, value in values(form, question, f).items()}
        for form, f in zip(forms, marks, strict=False)
    ]
    reached += reached[:1] * (len(forms) - len(reached))
    stated = [call.arithmetics[name] for name in outputs if name in call.arithmetics] or [default_arithmetic()]
    ways = [(call, DOUBLE, _FAST), (with_numbers(least) if call.radii else call, stated[0], _FLUSHED)]
    if len(forms) > 1 and any(operation.name == "function" for operation in marks[0].operations):
        ways += [(call, stated[0], tilted) for tilted in _TILTED]
    found: dict[str, Settled] = {}
    for form, touched in zip(forms, reached, strict=True):
        for question, arithmetic, variant in ways:
            for name, value in values(form, question, Emulator(arithmetic, variant)).items():
                first = found.get(name)
                if first is None:
                    # A finite result that depends on inf or nan is a decision or a function's limit: not required.
                    decided = len(forms) > 1 and not is_complex(call, name)
                    unsettled = np.array(touched[name] & (np.isfinite(value) if decided else True))
                    found[name] = Settled(value, unsettled, touched[name])
                else:
                    # One form may multiply a zero where another adds nothing.
                    first.open[...] |= (first.touched | touched[name]) & ~alike(first.value, value)
    return found


def undecided(operator: Operator, finite: OracleInput, outputs: Sequence[str]) -> dict[str, NDArray[np.bool_]]:
    """The elements that depend on what the document leaves undecided; `finite`: no input holds inf or nan.

    Their error is infinite, as that of an overflow is, which means nothing beside an input of inf or nan.
    """
    f = Emulator(DOUBLE, _DECLINED, marks=True)
    results = operator.evaluate(operator.judging, f, finite)
    return {name: np.isnan(results[name].v) for name in outputs} if f.declined else {}  # type: ignore[attr-defined]


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
