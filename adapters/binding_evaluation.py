"""Evaluates the values of bindings: what they say becomes functions, once, with the library's calls and conversions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

from aclnn_cts.adapters.bindings import Binding, Call, Choose, Conversion, Convert, Items, Literal, Name, Value
from aclnn_cts.adapters.protocol import Inexpressible
from aclnn_cts.core.case import BoolArray, Case, FloatArray, Scalar, Tensor
from aclnn_cts.core.dtypes import PRIVATE_FORMATS
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.printable import ECHO_LIMIT, printable, shown
from aclnn_cts.core.scalars import number

Evaluate: TypeAlias = Callable[[Any], Any]
"""Of a scope: a value in it."""

_INT64_LIMIT = 2**63

_PLAIN: Mapping[type, Callable[[Any], object]] = MappingProxyType(
    {
        bool: lambda value: value,
        int: lambda value: value,
        float: lambda value: value,
        str: lambda value: value,
        tuple: lambda value: value,
        type(None): lambda value: value,
        Scalar: number,
        BoolArray: lambda value: value.items,
        FloatArray: lambda value: value.items,
    }
)
"""By the class of an argument of a case that is no tensor: what a library in Python takes for it."""


class UnboundError(UsageError):
    """A binding names a function, or an argument of one, that this version of its library does not have."""


class Scope(Protocol):
    """One call while its binding is evaluated."""

    @property
    def case(self) -> Case:
        """The call."""
        ...

    def value(self, name: str) -> Any:  # noqa: ANN401 - a tensor of the library, or a plain value
        """What a name means in it."""
        ...


class Library(Protocol):
    """What is the library's own."""

    def function(self, call: Call, arguments: Mapping[str, Evaluate], binding: Binding) -> Evaluate:
        """A call of one of its functions. Raises UnboundError where there is no such function or argument."""
        ...

    def conversion(self, value: Convert, operands: Sequence[Evaluate]) -> Evaluate:
        """A conversion of tensors."""
        ...


def plain(case: Case, name: str) -> object:
    """An argument that is no tensor, as Python has it. Raises Inexpressible for what Python has no value for."""
    value = case.arguments.get(name)
    try:
        return _PLAIN[type(value)](value)
    except KeyError:
        raise Inexpressible(f"{name} is {shown(str(value))}, for which there is no value in Python") from None


def demand_expressible(case: Case, binding: Binding, names: frozenset[str]) -> None:
    """Raise Inexpressible for a call that a library in Python has no words for.

    `names`: the parameters that the binding names. A spec of another edition, or a user's, may have others.
    """
    if not names <= case.arguments.keys():
        missing = ", ".join(sorted(names - case.arguments.keys()))
        raise Inexpressible(f"{binding.where} names {missing}, which the operator's spec does not have")
    if case.call.null:
        raise Inexpressible(f"Python functions have no {', '.join(case.call.null)} that could be a null pointer")
    if not binding.wanted:
        for name in binding.outputs:
            if not name.isdecimal() and case.arguments.get(name) is None:
                raise Inexpressible(f"results are returned, so that {name} cannot be a null pointer")
    for name, tensor in case.tensors():
        if tensor.format in PRIVATE_FORMATS:
            raise Inexpressible(f"there is no tensor in the format {tensor.format} ({name})")
    for name, values in binding.unused.items():
        value = case.arguments.get(name)
        if values is not None and (isinstance(value, Tensor) or value not in values):
            listed = ", ".join(str(item) for item in values)
            raise Inexpressible(
                f"{name} {printable(str(value), ECHO_LIMIT)} has no counterpart; expected one of {listed}"
            )


def asked_for(binding: Binding, wanted: Sequence[Evaluate], scope: Scope, case: Case) -> list[str]:
    """The outputs that a call asks for. Raises Inexpressible where one of them is a null pointer."""
    names = [name for name in binding.outputs if not name.isdecimal()]
    if not wanted:
        return names
    flags = [flag(scope) for flag in wanted]
    if len(flags) == 1 and not isinstance(flags[0], bool):
        flags = list(flags[0] or ())
    names = [name for name, flag in zip(names, flags, strict=False) if flag]
    for name in names:
        if case.arguments.get(name) is None:
            raise Inexpressible(f"results are returned, so that {name} cannot be a null pointer")
    return names


def compiled(value: Value, library: Library, binding: Binding) -> Evaluate:
    """A function of a scope that evaluates a value. Raises UnboundError."""
    if isinstance(value, Literal):
        literal = value.value
        return lambda _scope: literal
    if isinstance(value, Name):
        name = value.name
        return lambda scope: scope.value(name)
    if isinstance(value, Items):
        items = [compiled(item, library, binding) for item in value.items]
        return lambda scope: [item(scope) for item in items]
    if isinstance(value, Choose):
        return _chosen(value, library, binding)
    if isinstance(value, Call):
        arguments = {name: compiled(item, library, binding) for name, item in value.arguments.items()}
        return library.function(value, arguments, binding)
    if value.kind is Conversion.FORMAT:
        parameter = value.operands[0]
        return lambda scope: _format(scope, parameter)
    return _converted(value, [compiled(item, library, binding) for item in value.operands], library)


def _format(scope: Scope, parameter: Value) -> str | None:
    tensor = scope.case.arguments.get(parameter.name) if isinstance(parameter, Name) else None
    return tensor.format if isinstance(tensor, Tensor) else None


def _chosen(value: Choose, library: Library, binding: Binding) -> Evaluate:
    by = compiled(value.by, library, binding)
    name = value.by.name if isinstance(value.by, Name) else "the value"
    if isinstance(value.by, Convert) and value.by.kind is Conversion.FORMAT:
        name = "the format"
    options = {key: compiled(option, library, binding) for key, option in value.options.items()}

    def choose(scope: Scope) -> object:
        found = by(scope)
        key = str(found).lower() if isinstance(found, bool) or found is None else str(found)
        if key not in options:
            raise Inexpressible(f"{name} is {shown(key)}, which has no counterpart; expected {', '.join(options)}")
        return options[key](scope)

    return choose


def _converted(value: Convert, operands: Sequence[Evaluate], library: Library) -> Evaluate:
    first = operands[0]
    if value.kind is Conversion.DEFAULT:
        other = operands[1]
        return lambda scope: other(scope) if (found := first(scope)) is None else found
    if value.kind is Conversion.ITEM:
        number = operands[1]
        # Of a null array no item can be taken; what needs one refuses null.
        return lambda scope: None if (found := first(scope)) is None else found[number(scope)]
    if value.kind in _OF_NUMBERS:
        convert = _OF_NUMBERS[value.kind]
        return lambda scope: convert(first(scope))
    return library.conversion(value, operands)


def _signed(value: int) -> int:
    return -1 if value >= _INT64_LIMIT else value


_OF_NUMBERS: Mapping[Conversion, Callable[[Any], object]] = MappingProxyType(
    {
        Conversion.NONZERO: lambda value: value or None,
        Conversion.SIGNED: _signed,
        Conversion.NEGATIVE: lambda value: -value,
    }
)
