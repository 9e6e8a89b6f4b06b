"""Evaluates the values of bindings: what they say becomes functions, once, with the library's calls and conversions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

from aclnn_cts.adapters.bindings import (
    Binding,
    Choose,
    Conversion,
    Convert,
    Items,
    LibraryCall,
    Literal,
    Name,
    Value,
    parameters_of,
)
from aclnn_cts.adapters.protocol import Inexpressible
from aclnn_cts.core.case import BoolArray, Case, FloatArray, Scalar, Tensor, number
from aclnn_cts.core.dtypes import PRIVATE_FORMATS
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.printable import ECHO_LIMIT, printable, quote

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


@dataclass(slots=True)
class BindingScope:
    """One call while its binding is evaluated: its tensors as the library has them, and what `let` named so far."""

    case: Case
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]
    named: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)

    def value(self, name: str) -> Any:  # noqa: ANN401 - a tensor of the library, or a plain value
        """What is named so, else the tensor, the tensors of a list, or the argument as Python has it."""
        for known in (self.named, self.inputs, self.outputs):
            if name in known:
                return known[name]
        return items_of(self.inputs, name) or _plain(self.case, name)


Evaluate: TypeAlias = Callable[[BindingScope], Any]
"""Of a scope: a value in it."""


class BindingLibrary(Protocol):
    """What is the library's own."""

    @property
    def conversions(self) -> Mapping[Conversion, Callable[..., Any]]:
        """Those of tensors, of the operands' values."""
        ...

    def function(self, call: LibraryCall, arguments: Mapping[str, Evaluate], binding: Binding) -> Evaluate:
        """A call of one of its functions. Raises UnboundError where there is no such function or argument."""
        ...

    def dtype(self, name: str) -> Any:  # noqa: ANN401 - of the library
        """Its dtype for an aclDataType; None where it has none."""
        ...

    def cast(self, tensor: Any, dtype: Any, *, name: str, facts: dict[str, str]) -> Any:  # noqa: ANN401 - of the library
        """A tensor in another dtype; `facts` may say so of what has this name."""
        ...


def items_of(tensors: Mapping[str, Any], name: str) -> list[Any]:
    """The tensors of a list, whose names are `name[0]`, `name[1]`, ...; empty for what is no list."""
    names = itertools.takewhile(tensors.__contains__, (f"{name}[{place}]" for place in itertools.count()))
    return [tensors[item] for item in names]


def _plain(case: Case, name: str) -> object:
    """An argument that is no tensor, as Python has it. Raises Inexpressible for what Python has no value for."""
    value = case.arguments.get(name)
    try:
        return _PLAIN[type(value)](value)
    except KeyError:
        raise Inexpressible(f"{name} is {quote(str(value))}, for which there is no value in Python") from None


_CONVERSIONS: Mapping[Conversion, Callable[..., Any]] = MappingProxyType(
    {
        # Of a null array no item can be taken; what needs one refuses null.
        Conversion.ITEM: lambda items, place: None if items is None else items[place],
        Conversion.NEGATIVE: lambda value: -value,
        Conversion.NONZERO: lambda value: value or None,
        Conversion.NUMEL: lambda tensor: None if tensor is None else math.prod(tensor.shape),
        Conversion.SHAPE: lambda tensor: None if tensor is None else tuple(tensor.shape),
        Conversion.SIGNED: lambda value: -1 if value >= _INT64_LIMIT else value,
        Conversion.SIZE: lambda tensor, axis: tensor.shape[axis],
    }
)
"""Those that are the same in every library, of the operands' values."""

_PICKS = frozenset({Conversion.ITEM, Conversion.SIZE})
"""Those that take one of several."""


class CompiledBinding:
    """One operator's binding as functions of a scope. Raises UnboundError for what the library does not have."""

    def __init__(self, binding: Binding, library: BindingLibrary) -> None:
        self.binding = binding
        self.library = library
        self._names = parameters_of(binding)
        self.let = {name: self.compiled(value) for name, value in binding.let.items()}
        self.gradients = {name: self.compiled(value) for name, value in binding.gradients.items()}
        self._wanted = [self.compiled(value) for value in binding.wanted]

    def demand_expressible(self, case: Case) -> None:
        """Raise Inexpressible for a call that a library in Python has no words for."""
        binding = self.binding
        # A spec of another edition, or a user's, may have other parameters.
        if not self._names <= case.arguments.keys():
            missing = ", ".join(sorted(self._names - case.arguments.keys()))
            raise Inexpressible(f"{binding.where} names {missing}, which the operator's spec does not have")
        if case.call.null:
            raise Inexpressible(f"Python functions have no {', '.join(case.call.null)} that could be a null pointer")
        if not binding.wanted:
            _demand_pointers(case, binding.filled)
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

    def asked_for(self, scope: BindingScope) -> list[str]:
        """The outputs that a call asks for. Raises Inexpressible where one of them is a null pointer."""
        if not self._wanted:
            return self.binding.filled
        flags = [flag(scope) for flag in self._wanted]
        if len(flags) == 1 and not isinstance(flags[0], bool):
            flags = list(flags[0] or ())
        names = [name for name, flag in zip(self.binding.filled, flags, strict=False) if _is_set(flag)]
        _demand_pointers(scope.case, names)
        return names

    def compiled(self, value: Value) -> Evaluate:
        """A function of a scope that evaluates a value."""
        if isinstance(value, Literal):
            literal = value.value
            return lambda _scope: literal
        if isinstance(value, Name):
            name = value.name
            return lambda scope: scope.value(name)
        if isinstance(value, Items):
            items = [self.compiled(item) for item in value.items]
            return lambda scope: [item(scope) for item in items]
        if isinstance(value, Choose):
            return self._chosen(value)
        if isinstance(value, LibraryCall):
            return self.library.function(value, self.arguments(value), self.binding)
        if value.kind is Conversion.FORMAT:
            parameter = value.operands[0]
            return lambda scope: _format(scope, parameter)
        return self._converted(value, [self.compiled(item) for item in value.operands])

    def arguments(self, call: LibraryCall) -> Mapping[str, Evaluate]:
        """The arguments of a call."""
        return {name: self.compiled(value) for name, value in call.arguments.items()}

    def _chosen(self, value: Choose) -> Evaluate:
        by = self.compiled(value.by)
        name = value.by.name if isinstance(value.by, Name) else "the value"
        if isinstance(value.by, Convert) and value.by.kind is Conversion.FORMAT:
            name = "the format"
        options = {key: self.compiled(option) for key, option in value.options.items()}

        def choose(scope: BindingScope) -> object:
            found = by(scope)
            key = str(found).lower() if isinstance(found, bool) or found is None else str(found)
            if key not in options:
                raise Inexpressible(f"{name} is {quote(key)}, which has no counterpart; expected {', '.join(options)}")
            return options[key](scope)

        return choose

    def _converted(self, value: Convert, operands: Sequence[Evaluate]) -> Evaluate:
        first, *rest = operands
        library = self.library
        if value.kind is Conversion.DEFAULT:
            return lambda scope: rest[0](scope) if (found := first(scope)) is None else found
        if value.kind is not Conversion.CAST:
            convert = _CONVERSIONS.get(value.kind) or library.conversions[value.kind]
            if value.kind in _PICKS:
                return self._picked(value, operands, convert)
            return lambda scope: convert(*[operand(scope) for operand in operands])
        name = value.operands[0].name if isinstance(value.operands[0], Name) else "value"

        def cast(scope: BindingScope) -> object:
            tensor, *wanted = [operand(scope) for operand in operands]
            dtypes = [library.dtype(item) if isinstance(item, str) else item for item in wanted]
            if tensor is None or tensor.dtype in dtypes:
                return tensor
            return library.cast(tensor, dtypes[-1], name=name, facts=scope.facts)

        return cast

    def _picked(self, value: Convert, operands: Sequence[Evaluate], convert: Callable[..., Any]) -> Evaluate:
        where = self.binding.at(value.path)
        is_size = value.kind is Conversion.SIZE

        def pick(scope: BindingScope) -> object:
            source, place = [operand(scope) for operand in operands]
            try:
                return convert(source, place)
            except IndexError:
                expected = f"a dimension of {len(source.shape)}" if is_size else f"an item of {len(source)}"
                raise Inexpressible(f"{where}: {place} is out of range; expected {expected}") from None

        return pick


def _is_set(flag: object) -> bool:
    """Whether a flag is true; a tensor is one that says whether it is given."""
    return flag is not None and (not isinstance(flag, (bool, int)) or bool(flag))


def _demand_pointers(case: Case, outputs: Sequence[str]) -> None:
    for name in outputs:
        if case.arguments.get(name) is None:
            raise Inexpressible(f"results are returned, so that {name} cannot be a null pointer")


def _format(scope: BindingScope, parameter: Value) -> str | None:
    tensor = scope.case.arguments.get(parameter.name) if isinstance(parameter, Name) else None
    return tensor.format if isinstance(tensor, Tensor) else None
