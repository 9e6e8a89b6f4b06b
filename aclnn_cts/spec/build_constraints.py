"""From a constraint's entry in the file to a `Constraint` with its rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from aclnn_cts.core.dtypes import DTYPES
from aclnn_cts.core.formats import FORMATS
from aclnn_cts.core.statuses import ANY_ERROR, STATUSES
from aclnn_cts.spec.expression import Compiled
from aclnn_cts.spec.kinds import Constraint, Rule, Strength
from aclnn_cts.spec.kinds_data import Elements, Finite
from aclnn_cts.spec.kinds_size import Dims, Holds, Length, Range, ShapeIs, SizeIs
from aclnn_cts.spec.kinds_tensor import (
    CallPresent,
    Contiguous,
    DtypeIn,
    DtypeRows,
    FormatIn,
    ModeSupported,
    NotEmpty,
    Present,
    Rank,
    SameDtype,
    SameFormat,
)
from aclnn_cts.spec.model import Modes
from aclnn_cts.spec.problems import Problems
from aclnn_cts.spec.schema import ConstraintModel

__all__ = ["KINDS", "ConstraintContext", "build_constraint", "product_table"]

MAX_ITEMS = 1024
"""Of an int array: a break makes one of four times as many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstraintContext:
    """What the entries of one file may refer to."""

    problems: Problems
    kinds: Mapping[str, str]
    """Kind of argument (`tensor`, `int`, ...) of each parameter."""
    products: tuple[str, ...]
    tables: Mapping[str, Mapping[str, tuple[str, ...]]]
    draws: tuple[str, ...]
    models: tuple[ConstraintModel, ...]
    clauses: Mapping[str, tuple[str, ...]]
    """Clause addresses by constraint id."""
    modes: Modes | None = None
    rows: Mapping[str, tuple[tuple[str, ...], ...]] | None = None
    row_parameters: tuple[str, ...] = ()
    call_level: frozenset[str] = field(default_factory=frozenset)
    """Names that stand for pointers of the interface itself."""


_Path: TypeAlias = tuple[str | int, ...]
_Builder: TypeAlias = Callable[[ConstraintModel, _Path, ConstraintContext], Rule]


def product_table(
    value: object, path: _Path, context: ConstraintContext, known: Mapping[str, Any], what: str
) -> dict[str, tuple[str, ...]]:
    """A list, a list by product or a table's name, as a list for each product of the operator."""
    if isinstance(value, str):
        if context.problems.known(value, context.tables, path, "table"):
            return dict(context.tables[value])
        return dict.fromkeys(context.products, ())
    by_product = value if isinstance(value, Mapping) else dict.fromkeys(context.products, value)
    table: dict[str, tuple[str, ...]] = dict.fromkeys(context.products, ())
    for product, names in by_product.items():
        if not context.problems.known(product, context.products, path, "product"):
            continue
        if not isinstance(names, (list, tuple)):
            context.problems.add(path, f"{names!r}; expected a list of {what}s")
            continue
        for name in names:
            context.problems.known(str(name), known, path, what)
        table[product] = tuple(str(name) for name in names)
    return table


def _of(model: ConstraintModel, path: _Path, context: ConstraintContext, *kinds: str) -> str:
    if not isinstance(model.of, str):
        context.problems.add(path, f"of: {model.of!r}; expected the name of a parameter")
        return next(iter(context.kinds), "")
    if context.problems.known(model.of, context.kinds, (*path, "of"), "parameter") and kinds:
        kind = context.kinds[model.of]
        if kind not in kinds:
            context.problems.add(
                (*path, "of"), f"{model.of} is of kind {kind}; {model.kind} takes {' or '.join(kinds)}"
            )
    return model.of


def _other(model: ConstraintModel, path: _Path, context: ConstraintContext) -> str:
    if model.as_ is None:
        context.problems.add(path, f"as: missing; {model.kind} compares with another parameter")
        return next(iter(context.kinds), "")
    context.problems.known(model.as_, context.kinds, (*path, "as"), "parameter")
    return model.as_


def _bounds(model: ConstraintModel, path: _Path, context: ConstraintContext) -> tuple[Any, Any]:
    if not isinstance(model.in_, list) or len(model.in_) != 2:
        context.problems.add(path, f"in: {model.in_!r}; expected [low, high]")
        return 0, 0
    for bound in model.in_:
        if bound is not None:
            context.problems.node(bound, (*path, "in"), context.kinds)
    return model.in_[0], model.in_[1]


def _integers(model: ConstraintModel, path: _Path, context: ConstraintContext) -> tuple[int, int]:
    low, high = _bounds(model, path, context)
    if type(low) is int and type(high) is int and low <= high:
        return low, high
    context.problems.add((*path, "in"), f"{model.in_!r}; expected two integers in ascending order")
    return 0, 0


def _group_members(model: ConstraintModel, context: ConstraintContext) -> tuple[str, ...]:
    if model.group is None:
        return ()
    return tuple(
        str(other.of)
        for other in context.models
        if other.group == model.group
        and other.kind == model.kind
        and other.id != model.id
        and isinstance(other.of, str)
    )


def _present(model: ConstraintModel, path: _Path, context: ConstraintContext) -> Rule:
    if isinstance(model.of, str) and model.of in context.call_level:
        return CallPresent(model.of)
    return Present(_of(model, path, context, "tensor", "int_array"))


def _dtype(model: ConstraintModel, path: _Path, context: ConstraintContext) -> Rule:
    table = product_table(model.in_, (*path, "in"), context, DTYPES, "dtype")
    return DtypeIn(of=_of(model, path, context, "tensor"), table=table, group=_group_members(model, context))


def _format(model: ConstraintModel, path: _Path, context: ConstraintContext) -> Rule:
    table = product_table(model.in_, (*path, "in"), context, FORMATS, "format")
    return FormatIn(of=_of(model, path, context, "tensor"), table=table, group=_group_members(model, context))


def _rows(model: ConstraintModel, path: _Path, context: ConstraintContext) -> Rule:
    if context.rows is None:
        context.problems.add(path, "dtype_rows needs the top-level table `rows`; add it")
    return DtypeRows(parameters=context.row_parameters, rows=context.rows or {})


def _mode(model: ConstraintModel, path: _Path, context: ConstraintContext) -> Rule:
    if context.modes is None:
        context.problems.add(path, "mode needs the top-level table `modes`; add it")
        return ModeSupported(attribute="", by="", operand={})
    return ModeSupported(attribute=context.modes.attribute, by=context.modes.by, operand=context.modes.operand)


def _rank(model: ConstraintModel, path: _Path, context: ConstraintContext) -> Rule:
    low, high = _integers(model, path, context)
    return Rank(of=_of(model, path, context, "tensor"), low=low, high=high)


def _length(model: ConstraintModel, path: _Path, context: ConstraintContext) -> Rule:
    count = model.is_
    if type(count) is not int or not 0 <= count <= MAX_ITEMS:
        context.problems.add(path, f"is: {count!r}; expected a number of items, at most {MAX_ITEMS}")
        count = 0
    return Length(of=_of(model, path, context, "int_array"), count=count)


def _dims(model: ConstraintModel, path: _Path, context: ConstraintContext) -> Rule:
    low, high = _bounds(model, path, context)
    for bound in (low, high):
        if bound is not None and type(bound) is not int:
            context.problems.add((*path, "in"), f"{bound!r}; expected an integer or null")
            low = high = None
    axes = tuple(model.axes) if model.axes is not None else None
    return Dims(of=_of(model, path, context, "tensor"), low=low, high=high, axes=axes)


def _shape(model: ConstraintModel, path: _Path, context: ConstraintContext) -> Rule:
    text = model.is_ if isinstance(model.is_, str) else "[]"
    if not isinstance(model.is_, str):
        context.problems.add(path, f"is: {model.is_!r}; expected a shape expression such as '[*input]'")
    return ShapeIs(
        of=_of(model, path, context, "tensor", "int_array"),
        shape=context.problems.shape(text, (*path, "is"), context.kinds),
    )


def _size(model: ConstraintModel, path: _Path, context: ConstraintContext) -> Rule:
    if model.axis is None or model.is_ is None:
        context.problems.add(path, "size needs `axis` and `is`; add them")
    node = context.problems.node(model.is_ if model.is_ is not None else 0, (*path, "is"), context.kinds)
    text = str(model.is_) if node is not None else "0"
    return SizeIs(of=_of(model, path, context, "tensor", "int_array"), axis=model.axis or 0, text=text)


def _range(model: ConstraintModel, path: _Path, context: ConstraintContext) -> Rule:
    low, high = _bounds(model, path, context)
    of = str(model.of)
    readable = context.problems.node(of, (*path, "of"), context.kinds) is not None
    if model.draw is not None:
        context.problems.known(model.draw, (*context.draws, *context.kinds), (*path, "draw"), "draw")
    elif readable and of not in context.kinds:
        context.problems.add(path, f"of: {of!r} is no attribute; name the `draw` that a break changes")
    return Range(of=of if readable else "0", low=low, high=high, draw=model.draw)


def _holds(model: ConstraintModel, path: _Path, context: ConstraintContext) -> Rule:
    text = model.that or "true"
    if model.that is None:
        context.problems.add(path, "holds needs `that`: a predicate over the arguments")
    if context.problems.node(text, (*path, "that"), context.kinds) is None:
        text = "true"
    if not model.breaks:
        context.problems.add(path, "holds needs `breaks`: assignments to draws that break it")
    return Holds(text)


def _contiguous(model: ConstraintModel, path: _Path, context: ConstraintContext) -> Rule:
    return Contiguous(_of(model, path, context, "tensor"))


def _not_empty(model: ConstraintModel, path: _Path, context: ConstraintContext) -> Rule:
    return NotEmpty(_of(model, path, context, "tensor"))


def _finite(model: ConstraintModel, path: _Path, context: ConstraintContext) -> Rule:
    names = [model.of] if isinstance(model.of, str) else model.of
    if not isinstance(names, list):
        context.problems.add(path, f"of: {model.of!r}; expected a list of parameters")
        names = []
    for name in names:
        context.problems.known(name, context.kinds, (*path, "of"), "parameter")
    return Finite(tuple(names))


def _elements(model: ConstraintModel, path: _Path, context: ConstraintContext) -> Rule:
    low, high = _bounds(model, path, context)
    return Elements(of=_of(model, path, context, "tensor"), low=low, high=high)


def _same_dtype(model: ConstraintModel, path: _Path, context: ConstraintContext) -> Rule:
    return SameDtype(of=_of(model, path, context, "tensor"), other=_other(model, path, context))


def _same_format(model: ConstraintModel, path: _Path, context: ConstraintContext) -> Rule:
    return SameFormat(of=_of(model, path, context, "tensor"), other=_other(model, path, context))


KINDS: Mapping[str, _Builder] = {
    "present": _present,
    "dtype": _dtype,
    "same_dtype": _same_dtype,
    "dtype_rows": _rows,
    "mode": _mode,
    "format": _format,
    "same_format": _same_format,
    "rank": _rank,
    "length": _length,
    "dims": _dims,
    "shape": _shape,
    "size": _size,
    "range": _range,
    "holds": _holds,
    "contiguous": _contiguous,
    "not_empty": _not_empty,
    "finite": _finite,
    "elements": _elements,
}


def build_constraint(model: ConstraintModel, path: _Path, context: ConstraintContext) -> Constraint | None:
    """One entry as a `Constraint`; its mistakes go to `context.problems`."""
    problems = context.problems
    if not problems.known(model.kind, KINDS, (*path, "kind"), "kind of constraint"):
        return None
    statuses = _statuses(model, path, context)
    for product in model.products or ():
        problems.known(product, context.products, (*path, "products"), "product")
    places = [*context.draws, *context.kinds]
    for key, entries in (("breaks", model.breaks), ("limits", model.limits)):
        for number, entry in enumerate(entries):
            for name in entry:
                problems.known(name.partition("[")[0], places, (*path, key, number, name), "draw or parameter")
    when = problems.expression(model.when, (*path, "when"), context.kinds) if model.when is not None else None
    return Constraint(
        id=model.id,
        kind=model.kind,
        rule=KINDS[model.kind](model, path, context),
        clauses=context.clauses.get(model.id, ()),
        strength=model.strength,
        statuses=statuses,
        products=frozenset(model.products) if model.products is not None else None,
        when=when,
        when_text=model.when,
        requires=tuple(model.requires),
        group=model.group,
        breaks=_assignments(model.breaks, (*path, "breaks"), context),
        near=_assignments(model.limits, (*path, "limits"), context),
        unsafe=model.unsafe,
    )


def _assignments(
    entries: Sequence[Mapping[str, Any]], path: _Path, context: ConstraintContext
) -> tuple[Mapping[str, Any], ...]:
    """Assignments whose expressions read the drawn names (and the arguments of the base case)."""
    names = [*context.draws, *context.kinds]
    return tuple(
        {name: _assigned(value, (*path, number, name), names, context) for name, value in entry.items()}
        for number, entry in enumerate(entries)
    )


def _assigned(value: object, path: _Path, names: list[str], context: ConstraintContext) -> Compiled:
    if not isinstance(value, list):
        return context.problems.expression(value, path, names)
    sizes = [context.problems.expression(size, path, names) for size in value]
    return lambda arguments, target: tuple([size(arguments, target) for size in sizes])


def _statuses(model: ConstraintModel, path: _Path, context: ConstraintContext) -> tuple[str, ...]:
    names = [model.status] if isinstance(model.status, str) else list(model.status or ())
    for name in names:
        context.problems.known(name, (*STATUSES, ANY_ERROR), (*path, "status"), "status")
    if model.strength == Strength.LISTED and not names:
        context.problems.add(path, "status: missing; a listed constraint names the code that the document promises")
    if model.strength == Strength.LIMIT and names not in ([], [ANY_ERROR]):
        context.problems.add(
            path, f"status: {names}; a limit names no code: leave it out, or {ANY_ERROR} where the document says error"
        )
    if model.strength == Strength.OPEN and names:
        context.problems.add(path, f"status: {names}; an open constraint promises none: leave it out")
    return tuple(names)
