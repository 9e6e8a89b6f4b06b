"""From a constraint's entry in the file to a `Constraint` with its rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aclnn_cts.core.statuses import ANY_ERROR, STATUSES
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.build_context import ConstraintContext
from aclnn_cts.speclang.build_rules import KINDS
from aclnn_cts.speclang.expression import Compiled
from aclnn_cts.speclang.kinds import Constraint, Strength
from aclnn_cts.speclang.schema import ConstraintModel
from aclnn_cts.speclang.yaml_file import YamlPath


def build_constraint(model: ConstraintModel, path: YamlPath, context: ConstraintContext) -> Constraint | None:
    """One entry as a `Constraint`; its mistakes go to `context.problems`."""
    problems = context.problems
    if not problems.known(model.kind, KINDS, (*path, "kind"), "kind of constraint"):
        return None
    statuses = _statuses(model, path, context)
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
    )


def _where_given(names: Sequence[str], when: Compiled | None) -> Compiled:
    """The condition of a rule on what may be null pointers: it is for calls that give one of them."""

    def given(arguments: Mapping[str, Any], target: Target) -> bool:
        return any(arguments[name] is not None for name in names) and (when is None or bool(when(arguments, target)))

    return given


def _assignments(
    entries: Sequence[Mapping[str, Any]], path: YamlPath, context: ConstraintContext
) -> tuple[Mapping[str, Any], ...]:
    """Assignments whose expressions read the drawn names (and the arguments of the base case)."""
    names = {**context.draws, **context.kinds}
    return tuple(
        {name: _assigned(value, (*path, number, name), names, context) for name, value in entry.items()}
        for number, entry in enumerate(entries)
    )


def _assigned(value: object, path: YamlPath, names: Mapping[str, str], context: ConstraintContext) -> Compiled:
    if not isinstance(value, list):
        return context.problems.expression(value, path, names)
    sizes = [context.problems.expression(size, path, names) for size in value]
    return lambda arguments, target: tuple([size(arguments, target) for size in sizes])


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
