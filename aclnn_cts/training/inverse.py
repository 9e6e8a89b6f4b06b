"""Which operator a call of torch computes: the shipped bindings, read backwards."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from aclnn_cts.adapters.bindings import (
    Binding,
    BindingForm,
    Choose,
    Conversion,
    Convert,
    Items,
    LibraryCall,
    Literal,
    Name,
    Value,
    shipped_bindings,
)

_LIBRARY = "torch"
_TRANSPARENT = frozenset({"contiguous", "expand"})
"""Functions that give the elements of their `self` back, for who asks what is computed."""
_UNSIGNED = 2**64


@dataclass(frozen=True, slots=True)
class ArgumentSource:
    """The parameter that an argument of torch's function is made from, and its value there."""

    parameter: str
    restored: Callable[[Any], Any]
    """From the argument's value to the parameter's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InverseBinding:
    """A call of an ATen function as a call of an operator."""

    operator: str
    function: str
    """Without `aten::` and the overload."""
    arguments: Mapping[str, ArgumentSource]
    """By argument of the function; those that no parameter gives are left out."""
    outputs: Mapping[str, int]
    """By output, which of the function's results it is."""
    unused: Mapping[str, Any]
    """Values of the parameters that the function does without."""


@functools.cache
def inverse_bindings() -> Mapping[str, tuple[InverseBinding, ...]]:
    """By ATen function, the operators that it computes. Others have a binding by autograd or by a function of ours."""
    found: dict[str, list[InverseBinding]] = {}
    for binding in shipped_bindings(_LIBRARY).values():
        made = _stated(binding) or (_inverse(binding) if binding.form is BindingForm.DIRECT else None)
        if made is not None:
            found.setdefault(made.function, []).append(made)
    return MappingProxyType({name: tuple(items) for name, items in found.items()})


def _stated(binding: Binding) -> InverseBinding | None:
    """The call that a binding says it is called as."""
    if (called := binding.called_as) is None:
        return None
    named = called.call.arguments.items()
    return InverseBinding(
        operator=binding.operator,
        function=called.call.function,
        arguments={name: ArgumentSource(value.name, _same) for name, value in named if isinstance(value, Name)},
        outputs={name: place for place, name in enumerate(binding.outputs)},
        unused=called.unused,
    )


def _inverse(binding: Binding) -> InverseBinding | None:
    """The inverse of a binding whose outputs are results of one call; None for any other."""
    if binding.call is not None:
        call, outputs = binding.call, {name: place for place, name in enumerate(binding.outputs)}
    else:
        calls = {name: value for name, value in binding.let.items() if _is_main(value)}
        if len(calls) != 1:
            return None
        [(held, value)] = calls.items()
        assert isinstance(value, LibraryCall)  # noqa: S101 - as `_is_main` says
        call = value
        places = {name: _place(item, held, binding.let) for name, item in binding.outputs.items() if item is not None}
        outputs = {name: place for name, place in places.items() if place is not None}
        if len(outputs) != len(places):
            return None  # the call is a part of what the operator computes
    arguments = {
        name: source for name, value in call.arguments.items() if (source := _source(value, binding.let)) is not None
    }
    if not outputs or not arguments:
        return None
    sources = {source.parameter for source in arguments.values()}
    if any(not sources.issuperset(_read_by(value, binding.let)) for value in call.arguments.values()):
        return None  # it is called with what parameters are made into, and not with these
    unused = {name: values[0] for name, values in binding.unused.items() if values}
    return InverseBinding(
        operator=binding.operator, function=call.function, arguments=arguments, outputs=outputs, unused=unused
    )


def _is_main(value: Value) -> bool:
    """Whether it is the call of a gradient, and no step before or after it."""
    return isinstance(value, LibraryCall) and "backward" in value.function


def _read_by(value: Value, let: Mapping[str, Value]) -> frozenset[str]:
    """The parameters that the functions of the library in a value read."""
    if isinstance(value, Name):
        return _read_by(let[value.name], let) if value.name in let else frozenset()
    if not isinstance(value, LibraryCall):
        return frozenset()
    parts = value.arguments.values()
    names = {part.name for part in parts if isinstance(part, Name) and part.name not in let}
    converted = {source.parameter for part in parts if isinstance(part, Convert) for source in _sources(part, let)}
    return frozenset(names | converted).union(*(_read_by(part, let) for part in parts))


def _place(value: Value, held: str, let: Mapping[str, Value]) -> int | None:
    """Which result of the call `held` a value is."""
    if isinstance(value, Name):
        return 0 if value.name == held else _place(let[value.name], held, let) if value.name in let else None
    if isinstance(value, Choose):
        return next((place for item in value.options.values() if (place := _place(item, held, let)) is not None), None)
    if isinstance(value, Convert) and value.kind is Conversion.ITEM:
        source, item = value.operands
        number = item.value if isinstance(item, Literal) else None
        return number if isinstance(source, Name) and source.name == held and isinstance(number, int) else None
    return None


def _source(value: Value, let: Mapping[str, Value]) -> ArgumentSource | None:
    """The parameter behind a value; None where there is none, as for a constant."""
    return next(_sources(value, let), None)


def _sources(value: Value, let: Mapping[str, Value]) -> Iterator[ArgumentSource]:
    if isinstance(value, Name) and value.name not in let:
        yield ArgumentSource(value.name, _same)
    elif isinstance(value, Convert) and value.kind in _RESTORED:
        for source in _sources(value.operands[0], let):
            yield ArgumentSource(source.parameter, _RESTORED[value.kind])
    else:
        for item in _within(value, let):
            yield from _sources(item, let)


def _within(value: Value, let: Mapping[str, Value]) -> Iterator[Value]:
    """What a value hands on as it is."""
    if isinstance(value, Name):
        yield let[value.name]
    elif isinstance(value, Choose):
        # Frameworks have channels second: of the ways, one takes the parameter as it is.
        yield from (item for item in value.options.values() if isinstance(item, Name))
    elif isinstance(value, LibraryCall) and value.function in _TRANSPARENT:
        yield value.arguments["self"]
    elif isinstance(value, Items):
        yield from (
            item.operands[0] for item in value.items if isinstance(item, Convert) and item.kind is Conversion.ITEM
        )


def _same(value: Any) -> Any:  # noqa: ANN401 - any argument
    return value


_RESTORED: Mapping[Conversion, Callable[[Any], Any]] = MappingProxyType(
    {
        Conversion.CAST: _same,
        Conversion.DEFAULT: _same,
        Conversion.SIGNED: lambda value: value % _UNSIGNED,
        Conversion.NONZERO: lambda value: 0 if value is None else value,
        Conversion.NEGATIVE: lambda value: -value,
    }
)
"""By conversion: the parameter's value from the argument's."""
