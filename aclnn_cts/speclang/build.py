"""From a parsed spec file to a `Spec`: names resolved, expressions compiled, every mistake reported with its line."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from aclnn_cts.core.dtypes import DTYPES
from aclnn_cts.core.printable import quote
from aclnn_cts.speclang.build_claims import build_claims
from aclnn_cts.speclang.build_clauses import (
    Clauses,
    Constraints,
    build_clause,
    check_arithmetic,
    check_clauses,
    check_codes_of_ends,
    check_precision,
    clauses_by_constraint,
)
from aclnn_cts.speclang.build_constraints import ConstraintContext, build_constraint
from aclnn_cts.speclang.build_examples import build_examples
from aclnn_cts.speclang.build_parameters import (
    build_atk,
    build_draws,
    build_modes,
    build_parameters,
    build_rows,
    draw_kinds,
    parameter_kinds,
    with_implied_draws,
)
from aclnn_cts.speclang.evaluate import ConstraintTests
from aclnn_cts.speclang.kinds import Strength
from aclnn_cts.speclang.kinds_size import BroadcastRule, DimensionsRule, ShapeRule, SizeRule
from aclnn_cts.speclang.kinds_tensor import CallPointerRule, EachItemRule, NotEmptyRule, RankRangeRule, RankRule
from aclnn_cts.speclang.model import Clause, Constraint, Draw, Rule, Spec
from aclnn_cts.speclang.operator_file import read_operator
from aclnn_cts.speclang.package import product_names
from aclnn_cts.speclang.properties import imply_constraints, order_rules, written_rule
from aclnn_cts.speclang.schema import ConstraintModel, InterfaceModel, OperatorModel, ParameterModel
from aclnn_cts.speclang.spec_problems import SpecProblems
from aclnn_cts.speclang.stock_clauses import StockClauses, StockSentences
from aclnn_cts.speclang.yaml_file import YamlFile

WORKSPACE = "workspace"
"""What a clause of the interface may be about, as one of an operator is about an output."""
CALL_POINTERS = ("workspaceSize", "executor", WORKSPACE)
_LARGE_CALLS = 64
"""Large calls of an operator, each of which takes seconds."""
_SILENCING = {Strength.LIMIT: "limit", Strength.ACCURACY: "loss of accuracy"}
"""What a listed constraint may not require, in words: where it is broken, success conforms."""


@dataclass(frozen=True, slots=True)
class Interface:
    """What `interface.yaml` says of every operator: clauses, and constraints on the pointers of the call itself."""

    models: tuple[ConstraintModel, ...] = ()
    clauses: tuple[Clause, ...] = ()


def build_interface(file: YamlFile) -> tuple[Interface, SpecProblems]:
    """Build `interface.yaml`."""
    problems = SpecProblems(file)
    model = problems.read(InterfaceModel, file.content)
    if model is None:
        return Interface(), problems
    clauses: Clauses = [(entry, ("clauses", number)) for number, entry in enumerate(model.clauses)]
    check_clauses(
        clauses,
        [(entry, ("constraints", number)) for number, entry in enumerate(model.constraints)],
        problems,
        interface=None,
        examples=(),
        outputs=(WORKSPACE,),
        products=product_names(),
    )
    built = tuple(build_clause(entry, path, problems, ()) for entry, path in clauses)
    return Interface(tuple(model.constraints), built), problems


def build_spec(file: YamlFile, *, stem: str, interface: Interface) -> tuple[Spec | None, SpecProblems]:
    """Build one operator file. The spec is None where its form is wrong; see the problems in either case."""
    problems = SpecProblems(file)
    operator = read_operator(problems)
    if operator is None:
        return None, problems
    for number, place in enumerate(operator.open_):
        problems.leave_open(number, place.at, place.read, [item.name for item in operator.parameters])
    products = _products(operator, problems)
    kinds = parameter_kinds(operator.parameters, problems)
    rows = build_rows(operator.rows or {}, problems, kinds, products)
    written, implied_draws = with_implied_draws(operator.parameters, kinds, operator.draws)
    drawn, rules = _rules(operator, written, kinds, rows.parameters, problems)
    if drawn is None:
        return None, problems
    draws = build_draws(implied_draws, operator.draws, problems, kinds)
    stock = StockClauses(
        problems=problems,
        operator=operator,
        parameters=drawn,
        rows=rows,
        kinds=kinds,
        constraints=[rule for rule, _ in rules],
        sentences=StockSentences(products, operator.tables),
    )
    clauses = list(stock.clauses())
    context = ConstraintContext(
        problems=problems,
        kinds=kinds,
        products=products,
        tables={
            name: {product: tuple(entry.get(product, ())) for product in products}
            for name, entry in operator.tables.items()
        },
        draws=draw_kinds(draws),
        models=tuple(rule for rule, _ in rules),
        clauses=clauses_by_constraint(clause for clause, _ in clauses),
        modes=build_modes(operator.modes, problems, kinds, products) if operator.modes is not None else None,
        rows=rows if operator.rows is not None else None,
        optional=frozenset(item.name for item in drawn if item.optional or item.present is not None),
    )
    constraints = _constraints(rules, context, interface)
    check_clauses(
        clauses,
        rules,
        problems,
        interface=interface.clauses,
        examples=[item.name for item in operator.examples],
        outputs=[item.name for item in drawn if item.role in ("output", "inout")],
        products=products,
    )
    check_codes_of_ends(clauses, rules, problems)
    _check_groups(rules, problems)
    parameters = build_parameters(drawn, context, draws)
    check_arithmetic(drawn, parameters, context)
    check_precision(operator.precision or (), drawn, parameters, context)
    spec = Spec(
        operator=operator.operator,
        stem=stem,
        path=file.name,
        sha256=hashlib.sha256(file.text.encode()).hexdigest(),
        text=file.text,
        document=operator.document.title or operator.operator,
        edition=operator.document.edition or "",
        document_sha256=operator.document.sha256 or "",
        products=products,
        parameters=parameters,
        draws=draws,
        constraints=constraints,
        clauses=tuple(build_clause(entry, path, problems, kinds) for entry, path in clauses),
        examples=build_examples(operator.examples, problems, kinds, products),
        modes=context.modes,
        rows=rows.by_product if operator.rows is not None else None,
        row_parameters=rows.parameters,
        precision=tuple(problems.file.content.get("precision") or ()),
        header=operator.header,
        elementwise=bool(operator.elementwise),
        large_calls=tuple(_large_calls(operator, draws, problems)),
        atk=build_atk(operator.atk, problems, kinds) if operator.atk is not None else None,
        open=tuple(place.at for place in operator.open_),
        claims=build_claims(operator.claims, [clause for clause, _ in clauses], problems),
        tests=ConstraintTests(constraints, products),
        pointers=tuple((item.rule.of, item) for item in constraints if isinstance(item.rule, CallPointerRule)),
    )
    problems.places = {
        **{("clauses", entry.at): path for entry, path in clauses},
        **{("constraints", rule.id): path for rule, path in rules},
        **{("parameters", item.name): ("parameters", number) for number, item in enumerate(parameters)},
        **{("draws", item.name or item.run or ""): ("draws", number) for number, item in enumerate(operator.draws)},
    }
    return spec, problems


def _large_calls(operator: OperatorModel, draws: Sequence[Draw], problems: SpecProblems) -> Iterator[Mapping[str, int]]:
    """One call for each combination of what the entries list."""
    drawn = [draw.name for draw in draws if draw.kind in ("integer", "choice")]
    for number, entry in enumerate(operator.large_calls):
        problems.all_known(entry, drawn, ("large_calls", number), "draw of a number")
        listed = [value if isinstance(value, list) else [value] for value in entry.values()]
        count = math.prod(map(len, listed))
        if count > _LARGE_CALLS:
            problems.add(("large_calls", number), f"{count} calls; list sizes of at most {_LARGE_CALLS}")
            return
        for values in itertools.product(*listed):
            yield dict(zip(entry, values, strict=True))


def _products(operator: OperatorModel, problems: SpecProblems) -> tuple[str, ...]:
    products = tuple(operator.products)
    for number, product in enumerate(products):
        if problems.known(product, product_names(), ("products", number), "product") and product in products[:number]:
            problems.add(("products", number), f"product {quote(product)} is listed twice; keep one")
    for name, entry in operator.tables.items():
        for product, dtypes in entry.items():
            problems.known(product, products, ("tables", name, product), "product")
            problems.all_known(dtypes, DTYPES, ("tables", name, product), "dtype")
    return products


def _rules(
    operator: OperatorModel,
    written: Sequence[ParameterModel],
    kinds: Mapping[str, str],
    columns: Sequence[str],
    problems: SpecProblems,
) -> tuple[list[ParameterModel] | None, Constraints]:
    """The parameters as valid calls draw them, and the rules, implied and written; no parameters after a mistake."""
    names = [*kinds, *(str(item.name or item.run) for item in operator.draws)]
    own = [
        (written_rule(entry, names, columns), ("constraints", number))
        for number, entry in enumerate(operator.constraints)
    ]
    drawn, implied = imply_constraints(
        written, kinds, operator.defaults, [str(entry.get("id")) for entry, _ in own], problems
    )
    entries = [
        *zip(implied.constraints, implied.origins, strict=True),
        *zip(order_rules(own, implied.constraints, problems), [path for _, path in own], strict=True),
    ]
    read = [(problems.read(ConstraintModel, entry, path), path) for entry, path in entries]
    rules = [(rule, path) for rule, path in read if rule is not None]
    return drawn if len(rules) == len(read) else None, rules


def _constraints(rules: Constraints, context: ConstraintContext, interface: Interface) -> tuple[Constraint, ...]:
    problems = context.problems
    built: list[Constraint] = []
    seen: dict[str, None] = {}
    for entry, path in rules:
        problems.add_if(entry.id in seen, (*path, "id"), f"constraint {quote(entry.id)} stands twice; ids are unique")
        seen[entry.id] = None
        constraint = build_constraint(entry, path, context)
        if constraint is not None:
            built.append(constraint)
    for entry, path in rules:
        for key in ("requires", "also"):
            problems.all_known(getattr(entry, key), sorted(seen), (*path, key), "constraint")
    shared = _interface_constraints(context, interface)
    ordered = _in_evaluation_order((*built, *shared))
    if ordered is None:
        problems.add(("constraints",), "constraints require one another in a circle; break it")
        return tuple(built)
    _verify_checks(rules, ordered, problems)
    return ordered


def _verify_checks(rules: Constraints, ordered: Sequence[Constraint], problems: SpecProblems) -> None:
    """A listed code holds whatever limit is broken beside it: no limit may take it away, and only limits go with it."""
    paths = {entry.id: path for entry, path in rules}
    known = {item.id: item for item in ordered}
    needed: dict[str, set[str]] = {}
    for item in ordered:
        names = [name for name in item.requires if name in known]
        needed[item.id] = {*names, *(further for name in names for further in needed[name])}
        if item.id not in paths:
            continue
        for name in sorted(needed[item.id], key=list(known).index) if item.strength == Strength.LISTED else ():
            other = known[name]
            if other.strength in _SILENCING and _meet(item, other):
                problems.add(
                    (*paths[item.id], "requires"),
                    f"constraint {quote(item.id)} is listed, and the {_SILENCING[other.strength]} {quote(name)} "
                    f"silences it: a call that breaks both would be free to succeed; {_advice(item, other)}",
                )
        for name in item.also:
            if name in known and (item.strength, known[name].strength) != (Strength.LISTED, Strength.LIMIT):
                problems.add(
                    (*paths[item.id], "also"),
                    f"{quote(name)} has the strength {known[name].strength}, {quote(item.id)} {item.strength}; "
                    f"only a limit may "
                    "go with a listed constraint",
                )


def _advice(item: Constraint, other: Constraint) -> str:
    if isinstance(other.rule, (RankRangeRule, RankRule)) and other.rule.of == getattr(item.rule, "of", None):
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
            problems=SpecProblems(context.problems.file),
            kinds=context.kinds,
            products=context.products,
            tables={},
            draws={},
            models=(),
            clauses={identifier: tuple(clause.at for clause in interface.clauses if entry.id in clause.constraints)},
            call_level=frozenset(CALL_POINTERS),
        )
        constraint = build_constraint(msgspec.structs.replace(entry, id=identifier), (), shared)
        if constraint is not None:
            constraints.append(constraint)
    return constraints


def _check_groups(rules: Constraints, problems: SpecProblems) -> None:
    promised: dict[str, tuple[str, object]] = {}
    for entry, path in rules:
        check = (entry.strength, entry.status)
        if entry.group is not None and promised.setdefault(entry.group, check) != check:
            problems.add(
                path,
                f"constraint {quote(entry.id)} checks {check}, its group {quote(entry.group)} "
                f"{promised[entry.group]}; "
                "a group shares one",
            )


def _in_evaluation_order(constraints: Sequence[Constraint]) -> tuple[Constraint, ...] | None:
    """What a constraint requires stands before it; else the file's order. None where they require in a circle.

    A rule about the sizes of a tensor says nothing of a tensor of another rank: it requires that tensor's rank.
    """
    ranks: dict[str, list[str]] = {}
    for item in constraints:
        if isinstance(rule := _on_a_tensor(item), (RankRangeRule, RankRule)):
            ranks.setdefault(rule.of, []).append(item.id)
    completed = []
    for item in constraints:
        rule = _on_a_tensor(item)
        implied = (
            ranks.get(rule.of, [])
            if isinstance(rule, (BroadcastRule, DimensionsRule, ShapeRule, SizeRule, NotEmptyRule))
            else []
        )
        completed.append(replace(item, requires=tuple(dict.fromkeys((*item.requires, *implied)))))
    waiting = {item.id: item for item in completed}
    ordered: list[Constraint] = []
    while waiting:
        ready = [item for item in waiting.values() if not any(name in waiting for name in item.requires)]
        if not ready:
            return None
        for item in ready:
            del waiting[item.id]
        ordered.extend(ready)
    return tuple(ordered)


def _on_a_tensor(item: Constraint) -> Rule:
    """The rule, or what each tensor of a list keeps."""
    return item.rule.rule if isinstance(item.rule, EachItemRule) else item.rule
