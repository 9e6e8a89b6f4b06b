r"""Elementary functions: their values, how far an error of the argument carries, and their exact counterparts.

With |d| <= e, |f(x + d) - f(x)| is at most e times the supremum of |f'| over [x - e, x + e]; exp, log and sqrt have
sharper forms. Where the interval leaves the domain the result is inf: nothing can be said.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Real: TypeAlias = NDArray[Any]

_FAR = 350.0
"""Beyond it cosh is larger than any number here can show."""
_TWO_OVER_ROOT_PI = 2.0 / math.sqrt(math.pi)


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """One function. Arrays are float64 or longer; callers see to NumPy's warnings."""

    value: Callable[[Real], Real]
    spread: Callable[[Real, Real, Real], Real]
    """Of the argument, the value there and a bound of the argument's error: how far the value may move."""
    exact: Callable[[Any, Any], Any]
    """Of mpmath's context and a number in it."""


def _spread_exp(x: Real, value: Real, error: Real) -> Real:
    # An argument in doubt by more than 1 leaves more than the value itself in doubt.
    return np.where(error <= 1.0, value * np.expm1(error), np.inf)


def _spread_log(x: Real, value: Real, error: Real) -> Real:
    rho = error / np.abs(x)
    return np.where(rho < 1.0, -np.log1p(-np.minimum(rho, 1.0 - 2.0**-40)), np.where(error == 0.0, 0.0, np.inf))


def _spread_sqrt(x: Real, value: Real, error: Real) -> Real:
    # |sqrt(x + d) - sqrt(x)| = |d| / (sqrt(x + d) + sqrt(x)), which is at most either of these.
    return np.where(error <= x, error / np.maximum(value, 1e-300), np.where(error == 0.0, 0.0, np.inf))


def _nearest(x: Real, error: Real) -> Real:
    """The least magnitude in [x - e, x + e], where an even slope that falls with |x| is steepest."""
    nearest: Real = np.maximum(np.abs(x) - error, 0.0)
    return nearest


def _spread_tanh(x: Real, value: Real, error: Real) -> Real:
    slope: Real = error / np.cosh(np.minimum(_nearest(x, error), _FAR)) ** 2
    return slope


def _spread_erf(x: Real, value: Real, error: Real) -> Real:
    nearest = _nearest(x, error)
    spread: Real = error * (_TWO_OVER_ROOT_PI * np.exp(-nearest * nearest))
    return spread


def _spread_sigmoid(x: Real, value: Real, error: Real) -> Real:
    spread: Real = error / (2.0 + 2.0 * np.cosh(np.minimum(_nearest(x, error), _FAR)))
    return spread


def _spread_softplus(x: Real, value: Real, error: Real) -> Real:
    return error * _sigmoid(x + error)


def _sigmoid(x: Real) -> Real:
    small = np.exp(-np.abs(x))
    return np.where(x >= 0.0, 1.0, small) / (1.0 + small)


def _softplus(x: Real) -> Real:
    return np.asarray(np.logaddexp(np.zeros((), x.dtype), x))


def _by_element(function: Callable[[float], float]) -> Callable[[Real], Real]:
    """A function of the standard library, whose error is below 1 ulp of float64; NumPy has none."""
    elementwise = np.frompyfunc(function, 1, 1)

    def value(x: Real) -> Real:
        return np.asarray(elementwise(np.asarray(x, np.float64)), np.float64)

    return value


def _power(context: Any, x: Any) -> Any:  # noqa: ANN401 - mpmath has no types
    return context.exp(-abs(x))


def _exact_sigmoid(context: Any, x: Any) -> Any:  # noqa: ANN401 - mpmath has no types
    small = _power(context, x)
    return (1 if x >= 0 else small) / (1 + small)


def _exact_softplus(context: Any, x: Any) -> Any:  # noqa: ANN401 - mpmath has no types
    return max(x, context.mpf(0)) + context.log1p(_power(context, x))


FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        "exp": Function(value=np.exp, spread=_spread_exp, exact=lambda context, x: context.exp(x)),
        "log": Function(value=np.log, spread=_spread_log, exact=lambda context, x: context.log(x)),
        "tanh": Function(value=np.tanh, spread=_spread_tanh, exact=lambda context, x: context.tanh(x)),
        "erf": Function(value=_by_element(math.erf), spread=_spread_erf, exact=lambda context, x: context.erf(x)),
        "erfc": Function(value=_by_element(math.erfc), spread=_spread_erf, exact=lambda context, x: context.erfc(x)),
        "sqrt": Function(value=np.sqrt, spread=_spread_sqrt, exact=lambda context, x: context.sqrt(x)),
        "sigmoid": Function(value=_sigmoid, spread=_spread_sigmoid, exact=_exact_sigmoid),
        "softplus": Function(value=_softplus, spread=_spread_softplus, exact=_exact_softplus),
    }
)
"""By name."""
