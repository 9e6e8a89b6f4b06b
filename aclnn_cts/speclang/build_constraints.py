"""From a constraint's entry in the file to a `Constraint` with its rule, one function a kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from aclnn_cts.core.case import POINTERS
from aclnn_cts.core.dtypes import DTYPES, FORMATS
from aclnn_cts.core.outcome import ANY_ERROR, STATUSES
from aclnn_cts.core.printable import alternatives_text, quote
from aclnn_cts.speclang.evaluator import Evaluator
from aclnn_cts.speclang.kinds import Strength
from aclnn_cts.speclang.kinds_data import STRUCTURES, ElementsRule, FiniteRule, StructureRule
from aclnn_cts.speclang.kinds_dtype import (
    PROMOTE,
    CastRule,
    DtypeRowsRule,
    LayoutRule,
    ListedRule,
    PromotedDtypeRule,
    PromotionRule,
    SameDtypeRule,
    SameFormatRule,
    SupportedModeRule,
)
from aclnn_cts.speclang.kinds_number import PredicateRule, RangeRule
from aclnn_cts.speclang.kinds_size import (
    BroadcastRule,
    DimensionsRule,
    LengthRangeRule,
    LengthRule,
    ShapeRule,
    SizeRule,
)
from aclnn_cts.speclang.kinds_tensor import (
    CallPointerRule,
    ContiguousRule,
    EachItemRule,
    ListLengthRule,
    NotEmptyRule,
    PresentRule,
    RankRangeRule,
    RankRule,
    WordRule,
)
from aclnn_cts.speclang.model import Constraint, Modes, Rule
from aclnn_cts.speclang.schema import ConstraintModel
from aclnn_cts.speclang.shape import INDEX
from aclnn_cts.speclang.spec_problems import SpecProblems
from aclnn_cts.speclang.yaml_file import YamlPath


def build_constraint(model: ConstraintModel, path: YamlPath, context: ConstraintContext) -> Constraint | None:
    """One entry as a `Constraint`; its mistakes go to `context.problems`."""
    problems = context.problems
    if not problems.known(model.kind, KINDS, (*path, "kind"), "kind of constraint"):
        return None
    statuses = _statuses(model, path, context)
    problems.add_if(
        model.valued and model.strength != Strength.OPEN,
        (*path, "valued"),
        "valued: true belongs to an open rule: beyond a limit values are judged anyway; take it away",
    )
    problems.all_known(model.products or (), context.products, (*path, "products"), "product")
    places = [*context.draws, *context.kinds]
    for key, entries in (("breaks", model.breaks), ("limits", model.limits)):
        for number, entry in enumerate(entries):
            for name in entry:
                problems.known(name.partition("[")[0], places, (*path, key, number, name), "draw or parameter")
    when = problems.expression(model.when, (*path, "when"), context.kinds) if model.when is not None else None
    if isinstance(model.of, str) and model.of in context.optional and model.kind != "present":
        when = _where_given([model.of], when)
    if model.kind == "same_dtype" and isinstance(model.as_, str):
        others = model.as_.split(" or ")
        if context.optional.issuperset(others):
            when = _where_given(others, when)
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
        also=frozenset(model.also),
        group=model.group,
        breaks=_assignments(model.breaks, (*path, "breaks"), context),
        near=_assignments(model.limits, (*path, "limits"), context),
        unsafe=model.unsafe,
        valued=model.valued,
    )


def _where_given(names: Sequence[str], when: Evaluator | None) -> Evaluator:
    """The condition of a rule on what may be null pointers: it is for calls that give one of them."""
    given = " or ".join(f"given({name})" for name in names)
    return Evaluator(f"({given}) and ({when.text})" if when is not None else given)


def _assignments(
    entries: Sequence[Mapping[str, Any]], path: YamlPath, context: ConstraintContext
) -> tuple[Mapping[str, Any], ...]:
    """Assignments whose expressions read the drawn names (and the arguments of the base case)."""
    names = {**context.draws, **context.kinds}
    return tuple(
        {name: _assigned(value, (*path, number, name), names, context) for name, value in entry.items()}
        for number, entry in enumerate(entries)
    )


def _assigned(value: object, path: YamlPath, names: Mapping[str, str], context: ConstraintContext) -> Evaluator:
    if not isinstance(value, list):
        return context.problems.expression(value, path, names)
    sizes = [context.problems.expression(size, path, names).text for size in value]
    return Evaluator(f"[{', '.join(map(str, sizes))}]")


def _statuses(model: ConstraintModel, path: YamlPath, context: ConstraintContext) -> tuple[str, ...]:
    names = [model.status] if isinstance(model.status, str) else list(model.status or ())
    context.problems.all_known(names, (*STATUSES, ANY_ERROR), (*path, "status"), "status")
    context.problems.add_if(
        model.strength == Strength.LISTED and not names,
        path,
        "status: missing; a listed constraint names the code that the document promises",
    )
    context.problems.add_if(
        model.strength == Strength.LIMIT and names not in ([], [ANY_ERROR]),
        path,
        f"status: {names}; a limit names no code: leave it out, or {ANY_ERROR} where the document says error",
    )
    context.problems.add_if(
        model.strength == Strength.ACCURACY and names,
        path,
        f"status: {names}; where accuracy alone is withdrawn, success is promised: leave it out",
    )
    context.problems.add_if(
        model.strength == Strength.OPEN and names,
        path,
        f"status: {names}; an open constraint promises none: leave it out",
    )
    return tuple(names)


@dataclass(frozen=True, slots=True, kw_only=True)
class DtypeRows:
    """Combinations of dtypes that are listed as rows."""

    parameters: tuple[str, ...]
    """Those that a row gives dtypes, in the order of the prototype."""
    by_product: Mapping[str, tuple[tuple[str, ...], ...]]
    places: Mapping[str, tuple[int, ...]]
    """By product, the entry of the file that each row comes from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstraintContext:
    """What the entries of one file may refer to."""

    problems: SpecProblems
    kinds: Mapping[str, str]
    """Kind of argument (`tensor`, `int`, ...) of each parameter."""
    products: tuple[str, ...]
    tables: Mapping[str, Mapping[str, tuple[str, ...]]]
    draws: Mapping[str, str]
    """Kind of each draw: `run`, or `number`."""
    models: tuple[ConstraintModel, ...]
    clauses: Mapping[str, tuple[str, ...]]
    """Clause addresses by constraint id."""
    modes: Modes | None = None
    rows: DtypeRows | None = None
    optional: frozenset[str] = field(default_factory=frozenset)
    """Parameters that are null pointers in some valid calls: a rule on one of them is for calls that give it."""
    call_level: frozenset[str] = field(default_factory=frozenset)
    """Names that stand for pointers of the interface itself."""


def product_table(
    value: object, path: YamlPath, context: ConstraintContext, known: Mapping[str, Any], what: str
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
            context.problems.add(path, f"{quote(names)}; expected a list of {what}s")
            continue
        table[product] = tuple(str(name) for name in names)
        context.problems.all_known(table[product], known, path, what)
    return table


def rank_table(value: object, path: YamlPath, problems: SpecProblems) -> dict[int, tuple[str, ...]]:
    """Formats by number of dimensions."""
    table: dict[int, tuple[str, ...]] = {}
    if not isinstance(value, Mapping):
        problems.add(path, f"{quote(value)}; expected a list of formats for each number of dimensions, {{2: [NC]}}")
        return table
    for rank, names in value.items():
        if not (str(rank).isdecimal() and isinstance(names, list)):
            problems.add(path, f"{quote(rank)}: {quote(names)}; expected a number of dimensions and a list of formats")
            continue
        table[int(rank)] = tuple(map(str, names))
        problems.all_known(table[int(rank)], FORMATS, (*path, rank), "format")
    return table


MAX_ITEMS = 1024
"""Of an int array: a break makes one of four times as many."""

_Builder: TypeAlias = Callable[[ConstraintModel, YamlPath, ConstraintContext], Rule]


def _on_tensors(build: _Builder) -> _Builder:
    """A kind of rule on a tensor: of a list, every tensor keeps it."""

    def built(model: ConstraintModel, path: YamlPath, context: ConstraintContext) -> Rule:
        if not isinstance(model.of, str) or context.kinds.get(model.of) != "tensor_list":
            return build(model, path, context)
        kinds = {**context.kinds, model.of: "tensor", INDEX: "int"}
        return EachItemRule(model.of, build(model, path, replace(context, kinds=kinds)))

    return built


def _of_tensor(rule: Callable[[str], Rule]) -> _Builder:
    """A kind of rule that reads one tensor and nothing else."""
    return _on_tensors(lambda model, path, context: rule(_of(model, path, context, "tensor")))


def _of(model: ConstraintModel, path: YamlPath, context: ConstraintContext, *kinds: str) -> str:
    if not isinstance(model.of, str):
        context.problems.add(path, f"of: {quote(model.of)}; expected the name of a parameter")
        return next(iter(context.kinds), "")
    if context.problems.known(model.of, context.kinds, (*path, "of"), "parameter") and kinds:
        kind = context.kinds[model.of]
        context.problems.add_if(
            kind not in kinds,
            (*path, "of"),
            f"{model.of} is of kind {kind}; {model.kind} takes {alternatives_text(kinds)}",
        )
    return model.of


def _other(model: ConstraintModel, path: YamlPath, context: ConstraintContext) -> str:
    if model.as_ is None:
        context.problems.add(path, f"as: missing; {model.kind} compares with another parameter")
        return next(iter(context.kinds), "")
    context.problems.all_known(model.as_.split(" or "), context.kinds, (*path, "as"), "parameter")
    return model.as_


def _bounds(model: ConstraintModel, path: YamlPath, context: ConstraintContext) -> tuple[Any, Any]:
    if not isinstance(model.in_, list) or len(model.in_) != 2:
        context.problems.add(path, f"in: {quote(model.in_)}; expected [low, high]")
        return 0, 0
    for bound in model.in_:
        if bound is not None:
            context.problems.node(bound, (*path, "in"), context.kinds)
    return model.in_[0], model.in_[1]


def _integers(model: ConstraintModel, path: YamlPath, context: ConstraintContext) -> tuple[int, int]:
    low, high = _bounds(model, path, context)
    if type(low) is int and type(high) is int and low <= high:
        return low, high
    context.problems.add((*path, "in"), f"{quote(model.in_)}; expected two integers in ascending order")
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


def _present(model: ConstraintModel, path: YamlPath, context: ConstraintContext) -> Rule:
    if isinstance(model.of, str) and model.of in context.call_level:
        return CallPointerRule(model.of)
    return PresentRule(_of(model, path, context, *POINTERS))


def _listed(model: ConstraintModel, path: YamlPath, context: ConstraintContext) -> Rule:
    known, kinds = (DTYPES, ("tensor", "scalar")) if model.kind == "dtype" else (FORMATS, ("tensor",))
    table = product_table(model.in_, (*path, "in"), context, known, model.kind)
    of = _of(model, path, context, *kinds)
    return ListedRule(of=of, what=model.kind, table=table, group=_group_members(model, context))


def _layout(model: ConstraintModel, path: YamlPath, context: ConstraintContext) -> Rule:
    table = rank_table(model.in_, (*path, "in"), context.problems)
    return LayoutRule(of=_of(model, path, context, "tensor"), table=table)


def _rows(model: ConstraintModel, path: YamlPath, context: ConstraintContext) -> Rule:
    if context.rows is None:
        context.problems.add(path, "dtype_rows needs the top-level table `rows`; add it")
        return DtypeRowsRule(parameters=(), rows={})
    return DtypeRowsRule(parameters=context.rows.parameters, rows=context.rows.by_product)


def _mode(model: ConstraintModel, path: YamlPath, context: ConstraintContext) -> Rule:
    if context.modes is None:
        context.problems.add(path, "mode needs the top-level table `modes`; add it")
        return SupportedModeRule(Modes(attribute="", by="", sources=(), names={}, operand={}))
    return SupportedModeRule(context.modes)


def _rank(model: ConstraintModel, path: YamlPath, context: ConstraintContext) -> Rule:
    of = _of(model, path, context, "tensor")
    if model.is_ is not None:
        return RankRule(of, _expected(model, path, context))
    low, high = _integers(model, path, context)
    return RankRangeRule(of=of, low=low, high=high)


def _expected(model: ConstraintModel, path: YamlPath, context: ConstraintContext) -> str:
    """The expression `is`, or 0 where it is wrong."""
    node = context.problems.node(0 if model.is_ is None else model.is_, (*path, "is"), context.kinds)
    return "0" if node is None or model.is_ is None else str(model.is_)


def _length(model: ConstraintModel, path: YamlPath, context: ConstraintContext) -> Rule:
    if isinstance(model.of, str) and context.kinds.get(model.of) == "tensor_list":
        context.problems.add_if(model.is_ is None, path, "is: missing; say how many tensors the list has")
        return ListLengthRule(model.of, _expected(model, path, context))
    if isinstance(model.is_, str) and not context.kinds.keys().isdisjoint(re.findall(r"[A-Za-z_]\w*", model.is_)):
        of = _of(model, path, context, "int_array", "bool_array", "float_array")
        return LengthRule(of, _expected(model, path, context))
    low, high = _integers(model, path, context) if model.in_ is not None else (model.is_, model.is_)
    if type(low) is not int or type(high) is not int or low < 0 or high > MAX_ITEMS:
        context.problems.add(path, f"is: {quote(model.is_)}; expected a number of items, at most {MAX_ITEMS}")
        low = high = 0
    return LengthRangeRule(of=_of(model, path, context, "int_array", "bool_array", "float_array"), low=low, high=high)


def _word(model: ConstraintModel, path: YamlPath, context: ConstraintContext) -> Rule:
    words = model.in_
    if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
        context.problems.add(path, f"in: {quote(words)}; expected a list of words")
        words = [""]
    return WordRule(_of(model, path, context, "string"), tuple(words))


def _dims(model: ConstraintModel, path: YamlPath, context: ConstraintContext) -> Rule:
    low, high = _bounds(model, path, context)
    for bound in (low, high):
        if bound is not None and type(bound) is not int:
            context.problems.add((*path, "in"), f"{quote(bound)}; expected an integer or null")
            low = high = None
    axes = tuple(model.axes) if model.axes is not None else None
    return DimensionsRule(of=_of(model, path, context, "tensor", "int_array"), low=low, high=high, axes=axes)


def _shape(model: ConstraintModel, path: YamlPath, context: ConstraintContext) -> Rule:
    text = model.is_ if isinstance(model.is_, str) else "[]"
    context.problems.add_if(
        not isinstance(model.is_, str), path, f"is: {quote(model.is_)}; expected a shape expression such as '[*input]'"
    )
    return ShapeRule(
        of=_of(model, path, context, "tensor", "int_array"),
        shape=context.problems.shape(text, (*path, "is"), context.kinds),
    )


def _broadcast(model: ConstraintModel, path: YamlPath, context: ConstraintContext) -> Rule:
    return BroadcastRule(*_beside(model, path, context, "broadcasts({}, {})", "broadcast(a, b)"))


def _size(model: ConstraintModel, path: YamlPath, context: ConstraintContext) -> Rule:
    context.problems.add_if(model.axis is None or model.is_ is None, path, "size needs `axis` and `is`; add them")
    node = context.problems.node(model.is_ if model.is_ is not None else 0, (*path, "is"), context.kinds)
    text = str(model.is_) if node is not None else "0"
    return SizeRule(of=_of(model, path, context, "tensor", "int_array"), axis=model.axis or 0, text=text)


def _range(model: ConstraintModel, path: YamlPath, context: ConstraintContext) -> Rule:
    low, high = _bounds(model, path, context)
    of = str(model.of)
    readable = context.problems.node(of, (*path, "of"), context.kinds) is not None
    if model.draw is not None:
        context.problems.known(model.draw, (*context.draws, *context.kinds), (*path, "draw"), "draw")
    elif readable and of not in context.kinds:
        context.problems.add(path, f"of: {quote(of)} is no attribute; name the `draw` that a break changes")
    return RangeRule(of=of if readable else "0", low=low, high=high, draw=model.draw)


def _holds(model: ConstraintModel, path: YamlPath, context: ConstraintContext) -> Rule:
    text = model.that or "true"
    context.problems.add_if(model.that is None, path, "holds needs `that`: a predicate over the arguments")
    if context.problems.node(text, (*path, "that"), context.kinds) is None:
        text = "true"
    context.problems.add_if(not model.breaks, path, "holds needs `breaks`: assignments to draws that break it")
    return PredicateRule(text)


def _finite(model: ConstraintModel, path: YamlPath, context: ConstraintContext) -> Rule:
    names = [model.of] if isinstance(model.of, str) else model.of
    if not isinstance(names, list):
        context.problems.add(path, f"of: {quote(model.of)}; expected a list of parameters")
        names = []
    context.problems.all_known(names, context.kinds, (*path, "of"), "parameter")
    context.problems.add_if(
        model.in_ not in (None, ["inf"]), (*path, "in"), f"in: {quote(model.in_)}; expected [inf], or nothing"
    )
    return FiniteRule(tuple(names), infinite=model.in_ is not None)


def _elements(model: ConstraintModel, path: YamlPath, context: ConstraintContext) -> Rule:
    low, high = _bounds(model, path, context)
    besides = str(model.is_) if model.is_ is not None else None
    if besides is not None:
        integers = [name for name, kind in context.kinds.items() if kind == "int"]
        context.problems.known(besides, integers, (*path, "is"), "integer attribute")
    return ElementsRule(of=_of(model, path, context, "tensor"), low=low, high=high, besides=besides)


def _beside(
    model: ConstraintModel, path: YamlPath, context: ConstraintContext, test: str, several: str
) -> tuple[str, str]:
    """A tensor, and the one or the several that it is held against; `test` is an expression that reads both."""
    of = _of(model, path, context, "tensor")
    text = model.as_ or of
    context.problems.add_if(
        model.as_ is None, path, f"as: missing; {model.kind} compares with a tensor, or with {several}"
    )
    node = context.problems.node(test.format(of, text), (*path, "as"), context.kinds)
    return of, text if node is not None else of


def _promotable(model: ConstraintModel, path: YamlPath, context: ConstraintContext) -> tuple[str, str]:
    return _beside(model, path, context, "promote({}, {})", "promote(a, b)")


def _promotion(model: ConstraintModel, path: YamlPath, context: ConstraintContext) -> Rule:
    of, other = _promotable(model, path, context)
    table = None if model.in_ is None else product_table(model.in_, (*path, "in"), context, DTYPES, "dtype")
    return PromotionRule(of=of, other=other, table=table)


def _structure(model: ConstraintModel, path: YamlPath, context: ConstraintContext) -> Rule:
    structure = model.as_ or STRUCTURES[0]
    if model.as_ is None:
        context.problems.add(path, f"as: missing; expected one of {', '.join(STRUCTURES)}")
    else:
        context.problems.known(structure, STRUCTURES, (*path, "as"), "structure")
    if structure == "regions" and model.in_ is not None:
        return _corners(model, path, context)
    number = model.is_
    context.problems.add_if(
        number is None and structure != "permutation",
        path,
        f"is: missing; say what the lengths of {structure} add up to",
    )
    node = context.problems.node(0 if number is None else number, (*path, "is"), context.kinds)
    least = 0
    if model.in_ is not None:
        least = model.in_[0] if isinstance(model.in_, list) and len(model.in_) == 2 and model.in_[1] is None else -1
        if type(least) is not int or least < 0:
            context.problems.add((*path, "in"), f"{quote(model.in_)}; expected [LEAST, null]: the least length")
            least = 0
    return StructureRule(
        of=_of(model, path, context, "tensor", "int_array"),
        structure=structure if structure in STRUCTURES else STRUCTURES[0],
        number=0 if number is None or node is None else str(number),
        least=least,
        axis=model.axis,
    )


def _corners(model: ConstraintModel, path: YamlPath, context: ConstraintContext) -> Rule:
    sides = model.in_ if isinstance(model.in_, list) and len(model.in_) == 2 and None not in model.in_ else None
    context.problems.add_if(sides is None, (*path, "in"), f"{quote(model.in_)}; expected [HEIGHT, WIDTH] of the map")
    context.problems.add_if(model.is_ is not None, (*path, "is"), "expected nothing beside `in`; write two rules")
    for place, side in enumerate(sides or ()):
        context.problems.node(side, (*path, "in", place), context.kinds)
    return StructureRule(
        of=_of(model, path, context, "tensor"),
        structure="regions",
        number=0,
        least=0,
        axis=model.axis,
        sides=tuple(map(str, sides or (0, 0))),
    )


def _same_dtype(model: ConstraintModel, path: YamlPath, context: ConstraintContext) -> Rule:
    if model.as_ is not None and model.as_.startswith(PROMOTE):
        return PromotedDtypeRule(*_promotable(model, path, context))
    if isinstance(model.of, str) and context.kinds.get(model.of) == "scalar":
        # A scalar's dtype is drawn by itself, within the relations that name it.
        return PromotedDtypeRule(of=model.of, other=f"dtype({_other(model, path, context)})")
    others = tuple(_other(model, path, context).split(" or "))
    return SameDtypeRule(of=_of(model, path, context, "tensor"), others=others)


KINDS: Mapping[str, _Builder] = {
    "present": _present,
    "dtype": _on_tensors(_listed),
    "same_dtype": _on_tensors(_same_dtype),
    "promotion": _promotion,
    "cast": lambda model, path, context: CastRule(*_promotable(model, path, context)),
    "dtype_rows": _rows,
    "mode": _mode,
    "format": _on_tensors(_listed),
    "same_format": _on_tensors(
        lambda model, path, context: SameFormatRule(_of(model, path, context, "tensor"), _other(model, path, context))
    ),
    "layout": _on_tensors(_layout),
    "rank": _on_tensors(_rank),
    "length": _length,
    "word": _word,
    "dims": _on_tensors(_dims),
    "broadcast": _broadcast,
    "shape": _on_tensors(_shape),
    "size": _on_tensors(_size),
    "range": _range,
    "holds": _holds,
    "contiguous": _of_tensor(ContiguousRule),
    "not_empty": _of_tensor(NotEmptyRule),
    "finite": _finite,
    "elements": _elements,
    "structure": _structure,
}
