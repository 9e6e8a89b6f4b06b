"""From a parsed spec file to a `Spec`: names resolved, expressions compiled, every mistake reported with its line."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from aclnn_cts.core.case_json import argument_from_json
from aclnn_cts.core.dtypes import DTYPES
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.printable import shown
from aclnn_cts.speclang.build_claims import build_claims
from aclnn_cts.speclang.build_clauses import (
    build_clause,
    check_arithmetic,
    check_clauses,
    check_precision,
    clauses_by_constraint,
)
from aclnn_cts.speclang.build_constraints import ConstraintContext, build_constraint
from aclnn_cts.speclang.build_parameters import (
    build_atk,
    build_draws,
    build_modes,
    build_parameters,
    build_rows,
    draw_kinds,
    parameter_kinds,
)
from aclnn_cts.speclang.evaluate import compile_constraints, in_evaluation_order
from aclnn_cts.speclang.expand import expand, is_short
from aclnn_cts.speclang.kinds import Constraint, Strength
from aclnn_cts.speclang.kinds_tensor import CallPresent, Rank
from aclnn_cts.speclang.model import Clause, Example, Spec
from aclnn_cts.speclang.package import product_names
from aclnn_cts.speclang.problems import Problems
from aclnn_cts.speclang.schema import ConstraintModel, InterfaceModel, OperatorModel
from aclnn_cts.speclang.yaml_file import YamlFile

WORKSPACE = "workspace"
"""What a clause of the interface may be about, as one of an operator is about an output."""
CALL_POINTERS = ("workspaceSize", "executor", WORKSPACE)
_SILENCING = {Strength.LIMIT: "limit", Strength.ACCURACY: "loss of accuracy"}
"""What a listed constraint may not require, in words: where it is broken, success conforms."""


@dataclass(frozen=True, slots=True)
class Interface:
    """What `interface.yaml` says of every operator: clauses, and constraints on the pointers of the call itself."""

    models: tuple[ConstraintModel, ...] = ()
    clauses: tuple[Clause, ...] = ()


def build_interface(file: YamlFile) -> tuple[Interface, Problems]:
    """Build `interface.yaml`."""
    problems = Problems(file)
    try:
        model = InterfaceModel.model_validate(file.content)
    except ValidationError as error:
        problems.validation(error, InterfaceModel)
        return Interface(), problems
    clauses = [build_clause(entry, ("clauses", number), problems, ()) for number, entry in enumerate(model.clauses)]
    check_clauses(
        model.clauses,
        model.constraints,
        problems,
        interface=None,
        examples=(),
        outputs=(WORKSPACE,),
        products=product_names(),
    )
    return Interface(tuple(model.constraints), tuple(clauses)), problems


def build_spec(file: YamlFile, *, stem: str, interface: Interface) -> tuple[Spec | None, Problems]:
    """Build one operator file. The spec is None where its form is wrong; see the problems in either case."""
    problems = Problems(file)
    if is_short(file.content) and expand(file, problems) is None:
        return None, problems
    try:
        model = OperatorModel.model_validate(problems.file.content)
    except ValidationError as error:
        problems.validation(error, OperatorModel)
        return None, problems
    for number, place in enumerate(model.open_):
        problems.leave_open(number, place.at, place.read, [item.name for item in model.parameters])
    products = tuple(model.products)
    for number, product in enumerate(products):
        if problems.known(product, product_names(), ("products", number), "product") and product in products[:number]:
            problems.add(("products", number), f"product {shown(product)} is listed twice; keep one")
    tables = {
        name: {product: tuple(entry.get(product, ())) for product in products} for name, entry in model.tables.items()
    }
    for name, entry in model.tables.items():
        for product, dtypes in entry.items():
            problems.known(product, products, ("tables", name, product), "product")
            problems.all_known(dtypes, DTYPES, ("tables", name, product), "dtype")
    kinds = parameter_kinds(model, problems)
    modes = build_modes(model, problems, kinds)
    rows, row_parameters = build_rows(model, problems, kinds)
    draws = build_draws(model, problems)
    context = ConstraintContext(
        problems=problems,
        kinds=kinds,
        products=products,
        tables=tables,
        draws=draw_kinds(draws),
        models=tuple(model.constraints),
        clauses=clauses_by_constraint(model.clauses),
        modes=modes,
        rows=rows,
        row_parameters=row_parameters,
        optional=frozenset(item.name for item in model.parameters if item.optional or item.present is not None),
    )
    constraints = _constraints(model, context, interface)
    check_clauses(
        model.clauses,
        model.constraints,
        problems,
        interface=interface.clauses,
        examples=[item.name for item in model.examples],
        outputs=[item.name for item in model.parameters if item.role in ("output", "inout")],
        products=products,
    )
    _check_groups(model, problems)
    parameters = build_parameters(model, problems, context, draws)
    check_arithmetic(model, problems, parameters)
    check_precision(model, problems, parameters)
    spec = Spec(
        operator=model.operator,
        stem=stem,
        path=file.name,
        sha256=hashlib.sha256(file.text.encode()).hexdigest(),
        text=file.text,
        document=model.document.title,
        edition=model.document.edition or "",
        document_sha256=model.document.sha256 or "",
        products=products,
        parameters=parameters,
        draws=draws,
        constraints=constraints,
        clauses=tuple(
            build_clause(entry, ("clauses", number), problems, kinds) for number, entry in enumerate(model.clauses)
        ),
        examples=_examples(model, problems, kinds, products),
        modes=modes,
        rows=rows,
        row_parameters=row_parameters,
        precision=tuple(model.precision or ()),
        header=model.header,
        atk=build_atk(model.atk, problems, kinds) if model.atk is not None else None,
        open=tuple(place.at for place in model.open_),
        claims=build_claims(model.claims, model.clauses, problems),
        compiled=compile_constraints(constraints, products),
        pointers=tuple((item.rule.of, item) for item in constraints if isinstance(item.rule, CallPresent)),
    )
    return spec, problems


def _constraints(model: OperatorModel, context: ConstraintContext, interface: Interface) -> tuple[Constraint, ...]:
    problems = context.problems
    built: list[Constraint] = []
    seen: dict[str, None] = {}
    for number, entry in enumerate(model.constraints):
        problems.add_if(
            entry.id in seen,
            ("constraints", number, "id"),
            f"constraint {shown(entry.id)} stands twice; ids are unique",
        )
        seen[entry.id] = None
        constraint = build_constraint(entry, ("constraints", number), context)
        if constraint is not None:
            built.append(constraint)
    for number, entry in enumerate(model.constraints):
        for key in ("requires", "also"):
            problems.all_known(getattr(entry, key), sorted(seen), ("constraints", number, key), "constraint")
    shared = _interface_constraints(context, interface)
    ordered = in_evaluation_order((*built, *shared))
    if ordered is None:
        problems.add(("constraints",), "constraints require one another in a circle; break it")
        return tuple(built)
    _verify_checks(model, ordered, problems)
    return ordered


def _verify_checks(model: OperatorModel, ordered: Sequence[Constraint], problems: Problems) -> None:
    """A listed code holds whatever limit is broken beside it: no limit may take it away, and only limits go with it."""
    numbers = {entry.id: number for number, entry in enumerate(model.constraints)}
    known = {item.id: item for item in ordered}
    needed: dict[str, set[str]] = {}
    for item in ordered:
        names = [name for name in item.requires if name in known]
        needed[item.id] = {*names, *(further for name in names for further in needed[name])}
        if item.id not in numbers:
            continue
        for name in sorted(needed[item.id], key=list(known).index) if item.strength == Strength.LISTED else ():
            other = known[name]
            if other.strength in _SILENCING and _meet(item, other):
                problems.add(
                    ("constraints", numbers[item.id], "requires"),
                    f"constraint {shown(item.id)} is listed, and the {_SILENCING[other.strength]} {shown(name)} "
                    f"silences it: a call that breaks both would be free to succeed; {_advice(item, other)}",
                )
        for name in item.also:
            if name in known and (item.strength, known[name].strength) != (Strength.LISTED, Strength.LIMIT):
                problems.add(
                    ("constraints", numbers[item.id], "also"),
                    f"{shown(name)} has the strength {known[name].strength}, {shown(item.id)} {item.strength}; "
                    f"only a limit may "
                    "go with a listed constraint",
                )


def _advice(item: Constraint, other: Constraint) -> str:
    if isinstance(other.rule, Rank) and other.rule.of == getattr(item.rule, "of", None):
        return "list a code for the rank too, since sizes require it"
    return f"leave the {_SILENCING[other.strength]} out of `requires`"


def _meet(one: Constraint, other: Constraint) -> bool:
    """Whether both are stated for one product."""
    return one.products is None or other.products is None or bool(one.products & other.products)


def _interface_constraints(context: ConstraintContext, interface: Interface) -> list[Constraint]:
    constraints = []
    for entry in interface.models:
        identifier = f"interface.{entry.id}"
        shared = ConstraintContext(
            problems=Problems(context.problems.file),
            kinds=context.kinds,
            products=context.products,
            tables={},
            draws={},
            models=(),
            clauses={identifier: tuple(clause.at for clause in interface.clauses if entry.id in clause.constraints)},
            call_level=frozenset(CALL_POINTERS),
        )
        constraint = build_constraint(entry.model_copy(update={"id": identifier}), (), shared)
        if constraint is not None:
            constraints.append(constraint)
    return constraints


def _check_groups(model: OperatorModel, problems: Problems) -> None:
    promised: dict[str, tuple[str, object]] = {}
    for number, entry in enumerate(model.constraints):
        check = (entry.strength, entry.status)
        if entry.group is not None and promised.setdefault(entry.group, check) != check:
            problems.add(
                ("constraints", number),
                f"constraint {shown(entry.id)} checks {check}, its group {shown(entry.group)} "
                f"{promised[entry.group]}; "
                "a group shares one",
            )


def _examples(
    model: OperatorModel, problems: Problems, kinds: Mapping[str, str], products: Sequence[str]
) -> tuple[Example, ...]:
    examples: list[Example] = []
    for number, entry in enumerate(model.examples):
        path = ("examples", number)
        if entry.product is not None:
            problems.known(entry.product, products, (*path, "product"), "product")
        arguments: dict[str, Any] = {}
        for name in kinds:
            if name not in entry.arguments:
                problems.add((*path, "arguments"), f"argument {shown(name)} is missing; an example gives them all")
                continue
            where = problems.file.at((*path, "arguments", name))
            try:
                arguments[name] = argument_from_json(entry.arguments[name], where=where, path=name)
            except UsageError as error:
                problems.messages[str(error)] = None
        for name in entry.arguments:
            problems.known(name, kinds, (*path, "arguments", name), "parameter")
        examples.append(Example(name=entry.name, at=entry.at, product=entry.product, arguments=arguments))
    return tuple(examples)
