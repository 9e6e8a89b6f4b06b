"""An operator as its oracle file states it: formulas over tracked arrays, bound to the arguments of a call."""

from __future__ import annotations

import functools
import inspect
import keyword
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, TypeAlias, cast

import numpy as np

from aclnn_cts.core.case import (
    Argument,
    BoolArray,
    Case,
    FloatArray,
    Scalar,
    Tensor,
    TensorList,
    number,
    real_view,
    tensor_of,
)
from aclnn_cts.core.dtypes import COMPONENTS
from aclnn_cts.core.expected import Arithmetic, OracleInput
from aclnn_cts.formula.array import Array, Backend, Outputs
from aclnn_cts.formula.complex import Complex, ComplexBackend, combined, separated
from aclnn_cts.formula.mistakes import Results, is_signal, mistake, raised
from aclnn_cts.judgement.model import load_precision

Formula: TypeAlias = Callable[..., Outputs]
"""`backward(f, …)`: the parameters after the backend carry the names of the C prototype, in any order.

A floating or complex tensor arrives as an array of the backend, another tensor as a NumPy array (int64 or bool), a null
tensor as None, an output parameter as its shape, a scalar as the number that its dtype holds, an array as a tuple, a
list of tensors as a list, and everything else as the case holds it. `formats` and `dtypes` hold those of each tensor by
its name, and `stored` the contents of each input tensor as a NumPy array, for places that follow from floating numbers.
A name that Python reserves is written with an underscore behind it.
"""

_OF_TENSORS: Mapping[str, Callable[[Tensor], str]] = MappingProxyType(
    {"formats": lambda tensor: tensor.format, "dtypes": lambda tensor: tensor.dtype}
)
"""What a formula may ask of all tensors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Derivative:
    """How `backward` is the derivative of `forward`: what differences of `forward` are held against.

    `forward(f, …)` gives results by name, and takes what `backward` takes: inputs and attributes under their names. Of
    an incoming gradient, a saved tensor and an output it gets the shape.
    """

    forward: Formula
    gradients: Mapping[str, str]
    """By parameter of `backward` that holds an incoming gradient: the result of `forward` that it belongs to."""
    wrt: Mapping[str, str]
    """By output of `backward`: the parameter of `forward` that it is the gradient of."""
    saved: tuple[str, ...] = ()
    """Results of `forward` that `backward` takes under the same name; they are computed anew for a check."""

    def by_tensor(self, call: OracleInput) -> Derivative:
        """The same with each list replaced by its tensors in a call: `name[0]` belongs to `other[0]`."""
        lengths = {name: len(value) for name, value in call.arguments.items() if isinstance(value, TensorList)}
        if not lengths:
            return self

        def named(pairs: Mapping[str, str]) -> dict[str, str]:
            found: dict[str, str] = {}
            for name, other in pairs.items():
                places = [""] if name not in lengths else [f"[{place}]" for place in range(lengths[name])]
                found.update((name + place, other + place) for place in places)
            return found

        saved = tuple(named(dict.fromkeys(self.saved, "")))
        return replace(self, gradients=named(self.gradients), wrt=named(self.wrt), saved=saved)


@dataclass(frozen=True, slots=True)
class Form:
    """One way to write the formula, with the names of its parameters."""

    name: str
    function: Formula
    parameters: tuple[str, ...]

    @classmethod
    def of(cls, function: Formula) -> Form:
        """A form that is named as its function is. TypeError for a function without a parameter for the backend."""
        parameters = [
            name
            for name, parameter in inspect.signature(function).parameters.items()
            if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        ]
        if not parameters:
            raise TypeError(f"{function.__name__}: expected a formula `{function.__name__}(f, …)` with a backend first")
        return cls(function.__name__.strip("_"), function, tuple(parameters[1:]))

    def __call__(self, f: Backend[Any], arguments: Mapping[str, Any]) -> Outputs:
        """The results, with the arguments that the formula has parameters for."""
        return self.function(f, **{name: arguments[_plain(name)] for name in self.parameters})


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """What one oracle file states. The first form judges; the others explain failures and decide inf and nan.

    With `any_form` all of them judge: what conforms to one of them conforms.
    """

    forms: tuple[Form, ...]
    any_order: bool = True
    """Whether sums and products may be computed in any order; False: as written."""
    any_form: bool = False
    """Whether an implementation may evaluate any of the forms."""
    derivative: Derivative | str = ""
    """How differences check it, or why it is no derivative."""
    raw: frozenset[str] = frozenset()
    """Floating inputs that are no numbers to compute with, such as indices: they arrive as NumPy arrays."""
    flags: frozenset[str] = frozenset()
    """Inputs of UINT8 that a formula tests and does not compute with: they arrive as they are stored."""
    adds_zeros: bool = False
    """Whether an implementation may add products with zeros that the judging form leaves out: inf times 0 is nan."""

    @property
    def judging(self) -> Form:
        """The form that values come from."""
        return self.forms[0]

    @classmethod
    def of(
        cls,
        *formulas: Formula,
        any_order: bool = True,
        any_form: bool = False,
        derivative: Derivative | str = "",
        raw: Iterable[str] = (),
        flags: Iterable[str] = (),
        adds_zeros: bool = False,
    ) -> Operator:
        """An operator from its formulas, the one that judges first.

        TypeError where there is none, and for a derivative by parameters that its functions do not have.
        """
        if not formulas:
            raise TypeError("Operator.of(): expected a formula `backward(f, …)` first")
        forms = tuple(map(Form.of, formulas))
        if isinstance(derivative, Derivative):
            _check_names("gradients", derivative.gradients, forms[0])
            _check_names("wrt", derivative.wrt.values(), Form.of(derivative.forward))
        return cls(
            forms=forms,
            any_order=any_order,
            any_form=any_form,
            derivative=derivative,
            raw=frozenset(raw),
            flags=frozenset(flags),
            adds_zeros=adds_zeros,
        )

    def evaluate(self, form: Form, f: Backend[Any], call: OracleInput) -> Results[Array]:
        """The results of a form on a call, by output; those of a list are `name[0]`, `name[1]`, ...

        Of a complex output re and im are in a last dimension.

        OracleError for a mistake of the formula: an exception, a parameter that the operator does not have, or results
        that are no arrays.
        """
        unknown = [name for name in map(_plain, form.parameters) if not _is_known(call, name)]
        if unknown:
            what = f"asks for {', '.join(unknown)}; the operator has {', '.join(call.arguments)}"
            raise mistake(form.function, what, call.arguments)
        return self.results(form, f, call, self.bound(f, call, form.parameters))

    @staticmethod
    def results(form: Form, f: Backend[Any], call: OracleInput, arguments: Mapping[str, Any]) -> Results[Array]:
        """The same from arguments that are bound already."""
        if any(is_complex(call, name) for name in call.tensors):
            f = cast("Backend[Any]", ComplexBackend(f))
        try:
            given: object = form(f, arguments)
        except (Exception, SystemExit) as error:
            if is_signal(error):
                raise
            raise mistake(form.function, raised(error), call.arguments, error) from error
        if not isinstance(given, Mapping):
            what = f"returned {type(given).__name__}, expected a dict of results by output"
            raise mistake(form.function, what, call.arguments)
        try:
            found = dict(_by_tensor(call, given))
        except TypeError as error:
            raise mistake(form.function, str(error), call.arguments) from error
        return Results(found, function=form.function, arguments=call.arguments)

    def bound(self, f: Backend[Any], call: OracleInput, parameters: Sequence[str]) -> dict[str, Any]:
        """The arguments of a formula, by their names in the prototype."""
        found: dict[str, Any] = {}
        for parameter in parameters:
            name = _plain(parameter)
            if name in call.tensors:
                found[name] = self._input(f, call, name)
            elif name in _OF_TENSORS and name not in call.arguments:
                of = _OF_TENSORS[name]
                found[name] = {key: of(value) for key, value in call.arguments.items() if isinstance(value, Tensor)}
            elif name == "stored" and name not in call.arguments:
                found[name] = call.tensors
            elif isinstance(argument := call.arguments[name], TensorList) and f"{name}[0]" in call.tensors:
                found[name] = [self._input(f, call, f"{name}[{place}]") for place in range(len(argument))]
            else:
                found[name] = _plain_argument(argument)
        return found

    def _input(self, f: Backend[Any], call: OracleInput, name: str) -> Any:  # noqa: ANN401 - an array of the backend
        tensor, owner = call.tensors[name], name.partition("[")[0]
        if tensor.dtype == np.uint8 and owner not in self.flags:
            return tensor.astype(np.int64)
        if tensor.dtype != np.float64 or owner in self.raw:
            return tensor
        leaf = f.leaf(name, tensor)
        return separated(leaf) if is_complex(call, name) else leaf


def _check_names(field: str, names: Iterable[str], form: Form) -> None:
    known = [_plain(name) for name in form.parameters]
    if unknown := [name for name in names if name.partition("[")[0] not in known]:
        raise TypeError(
            f"{field} of the derivative: {form.name} has no {', '.join(unknown)}; it has {', '.join(known)}"
        )


def _is_known(call: OracleInput, name: str) -> bool:
    return name in call.tensors or name in call.arguments or name in _OF_TENSORS or name == "stored"


def _by_tensor(call: OracleInput, results: Mapping[str, Any]) -> Iterator[tuple[str, Array]]:
    """Each result by its name, complex ones in their real view; those of a list are `name[0]`, `name[1]`, ..."""
    for whole, given in results.items():
        listed = isinstance(given, (list, tuple))
        for place, result in enumerate(given if listed else [given]):
            name = f"{whole}[{place}]" if listed else whole
            if not isinstance(result, Array):
                raise TypeError(f"{name} is {type(result).__name__}, not an array of the backend nor a list of them")
            of_complex = is_complex(call, name)
            if isinstance(result, Complex) and not of_complex:
                raise TypeError(f"{name} is complex, and its output is not")
            yield name, combined(result) if of_complex else result


def _plain_argument(argument: Argument) -> Any:  # noqa: ANN401 - any plain value
    """What a formula gets for an argument that is no input tensor."""
    if isinstance(argument, Tensor):
        return argument.shape
    if isinstance(argument, Scalar):
        return number(argument)
    if isinstance(argument, TensorList):
        return [tensor.shape for tensor in argument.items]
    return argument.items if isinstance(argument, (BoolArray, FloatArray)) else argument


@functools.cache
def _plain(name: str) -> str:
    """The name in the prototype."""
    shorter = name.removesuffix("_")
    return shorter if keyword.iskeyword(shorter) else name


def is_complex(call: OracleInput, name: str) -> bool:
    """Whether an argument of a call is a complex tensor."""
    tensor = tensor_of(call.arguments, name)
    return tensor is not None and tensor.dtype in COMPONENTS


def output_shapes(call: OracleInput) -> dict[str, tuple[int, ...]]:
    """The shapes of the outputs of a call, those that are inputs too among them; of complex ones in their real view."""
    named = Case("", call.arguments).tensors()
    return {name: real_view(tensor).shape for name, tensor in named if name not in call.tensors or name in call.updated}


@functools.cache
def default_arithmetic() -> Arithmetic:
    """FLOAT, as the compute models have it for an operator of which they say nothing."""
    return load_precision().model(operator="", output="", dtype="FLOAT").arithmetic
