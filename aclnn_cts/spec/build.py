"""From a parsed spec file to a `Spec`: names resolved, expressions compiled, every mistake reported with its line."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from aclnn_cts.core.case_json import argument_from_json
from aclnn_cts.core.dtypes import DTYPES
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.formats import FORMATS
from aclnn_cts.spec.build_atk import build_atk
from aclnn_cts.spec.build_constraints import ConstraintContext, build_constraint, product_table
from aclnn_cts.spec.build_draws import build_draws
from aclnn_cts.spec.kinds import Constraint
from aclnn_cts.spec.kinds_size import C_RANGES
from aclnn_cts.spec.kinds_tensor import CallPresent
from aclnn_cts.spec.model import Clause, Draw, Example, Modes, Parameter, Spec
from aclnn_cts.spec.order import compile_constraints, in_evaluation_order
from aclnn_cts.spec.problems import Problems
from aclnn_cts.spec.schema import ClauseModel, ConstraintModel, InterfaceModel, OperatorModel
from aclnn_cts.spec.yaml_file import YamlFile

__all__ = ["CALL_POINTERS", "Interface", "build_interface", "build_spec", "kind_of_type"]

CALL_POINTERS = ("workspaceSize", "executor", "workspace")
_ENCODINGS = ("constraints", "promise", "interface", "example", "untestable")


class Interface:
    """What `interface.yaml` says of every operator: clauses, and constraints on the pointers of the call itself."""

    def __init__(self, models: Sequence[ConstraintModel] = (), clauses: Sequence[Clause] = ()) -> None:
        self.models = tuple(models)
        self.clauses = tuple(clauses)


def kind_of_type(c_type: str) -> str | None:
    """What stands in a case for a C type: `tensor`, `int_array`, `int`, `bool` or `double`; None for an unknown one."""
    words = c_type.replace("*", " * ").split()
    bare = [word for word in words if word not in ("const", "*")]
    if len(bare) != 1:
        return None
    pointers = {"aclTensor": "tensor", "aclIntArray": "int_array"}
    if bare[0] in pointers:
        return pointers[bare[0]] if words.count("*") == 1 else None
    if "*" in words:
        return None
    return {"bool": "bool", "double": "double", "float": "double"}.get(bare[0], "int" if bare[0] in C_RANGES else None)


def build_interface(file: YamlFile) -> tuple[Interface, Problems]:
    """Build `interface.yaml`."""
    problems = Problems(file)
    try:
        model = InterfaceModel.model_validate(file.content)
    except ValidationError as error:
        problems.validation(error, InterfaceModel)
        return Interface(), problems
    clauses = [_clause(entry, ("clauses", number), problems, ()) for number, entry in enumerate(model.clauses)]
    _check_clauses(model.clauses, model.constraints, problems, interface=None, examples=())
    return Interface(model.constraints, clauses), problems


def build_spec(file: YamlFile, *, stem: str, interface: Interface) -> tuple[Spec | None, Problems]:
    """Build one operator file. The spec is None where its form is wrong; see the problems in either case."""
    problems = Problems(file)
    try:
        model = OperatorModel.model_validate(file.content)
    except ValidationError as error:
        problems.validation(error, OperatorModel)
        return None, problems
    products = tuple(model.products)
    tables = {
        name: {product: tuple(entry.get(product, ())) for product in products} for name, entry in model.tables.items()
    }
    for name, entry in model.tables.items():
        for product, dtypes in entry.items():
            problems.known(product, products, ("tables", name, product), "product")
            for dtype in dtypes:
                problems.known(dtype, DTYPES, ("tables", name, product), "dtype")
    kinds = _parameter_kinds(model, problems)
    modes = _modes(model, problems, kinds)
    rows, row_parameters = _rows(model, problems, kinds)
    draws = build_draws(model, problems)
    context = ConstraintContext(
        problems=problems,
        kinds=kinds,
        products=products,
        tables=tables,
        draws=tuple(draw.name for draw in draws),
        models=tuple(model.constraints),
        clauses=_clauses_by_constraint(model.clauses),
        modes=modes,
        rows=rows,
        row_parameters=row_parameters,
    )
    constraints = _constraints(model, context, interface)
    _check_clauses(
        model.clauses, model.constraints, problems, interface=interface, examples=[item.name for item in model.examples]
    )
    _check_groups(model, problems)
    spec = Spec(
        operator=model.operator,
        stem=stem,
        path=file.name,
        sha256=hashlib.sha256(file.text.encode()).hexdigest(),
        document=model.document.title,
        products=products,
        parameters=_parameters(model, problems, context, draws),
        draws=draws,
        constraints=constraints,
        clauses=tuple(
            _clause(entry, ("clauses", number), problems, kinds) for number, entry in enumerate(model.clauses)
        ),
        examples=_examples(model, problems, kinds, products),
        modes=modes,
        rows=rows,
        row_parameters=row_parameters,
        precision=model.precision,
        header=model.header,
        atk=build_atk(model, problems, kinds) if model.atk is not None else None,
        compiled=compile_constraints(constraints, products),
        pointers=tuple((item.rule.of, item) for item in constraints if isinstance(item.rule, CallPresent)),
    )
    return spec, problems


def _parameter_kinds(model: OperatorModel, problems: Problems) -> dict[str, str]:
    kinds: dict[str, str] = {}
    for number, item in enumerate(model.parameters):
        if item.name in kinds:
            problems.add(("parameters", number, "name"), f"parameter {item.name!r} stands twice; keep one")
        kind = kind_of_type(item.type)
        if kind is None:
            problems.add(
                ("parameters", number, "type"),
                f"C type {item.type!r} is not known; expected a pointer to aclTensor or aclIntArray, an integer "
                "type, bool or double",
            )
        kinds[item.name] = kind or "tensor"
    return kinds


def _parameters(
    model: OperatorModel, problems: Problems, context: ConstraintContext, draws: Sequence[Draw]
) -> tuple[Parameter, ...]:
    parameters: list[Parameter] = []
    names = [draw.name for draw in draws]
    for number, item in enumerate(model.parameters):
        path = ("parameters", number)
        kind = context.kinds[item.name]
        text = item.shape if kind == "tensor" else item.items
        earlier = [other.name for other in parameters if other.kind in ("tensor", "int_array")]
        if kind in ("tensor", "int_array") and text is None:
            problems.add(
                path, f"{item.name}: {'shape' if kind == 'tensor' else 'items'} missing; say how a valid one is made"
            )
        scalar = kind in ("int", "bool", "double")
        if scalar and item.name not in names and (context.modes is None or context.modes.attribute != item.name):
            problems.add(path, f"{item.name}: no draw of that name; add one to `draws`")
        for reference, key in ((item.dtype, "dtype"), (item.format, "format")):
            if reference is not None and not (reference.startswith("as ") and reference[3:] in earlier):
                problems.add((*path, key), f"{reference!r}; expected 'as NAME' with an earlier tensor")
        needs_dtype = kind == "tensor" and item.dtype is None and item.dtypes is None
        if needs_dtype and item.name not in context.row_parameters:
            problems.add(path, f"{item.name}: neither `dtypes` nor `dtype`; add one")
        templates: dict[str, tuple[Mapping[str, Any], ...]] = {
            data_kind: tuple(
                {
                    key: problems.expression(value, (*path, "data"), context.kinds)
                    if isinstance(value, str) and key not in ("recipe", "of")
                    else value
                    for key, value in entry.items()
                }
                for entry in entries
            )
            for data_kind, entries in item.data.items()
        }
        parameters.append(
            Parameter(
                name=item.name,
                type=item.type,
                kind=kind,
                role=item.role,
                shape=problems.shape(text, (*path, "shape"), [*names, *earlier]) if text is not None else None,
                dtypes=product_table(item.dtypes, (*path, "dtypes"), context, DTYPES, "dtype")
                if item.dtypes is not None
                else {},
                dtype_as=item.dtype[3:] if item.dtype is not None else None,
                formats=product_table(item.formats or ["ND"], (*path, "formats"), context, FORMATS, "format")
                if kind == "tensor"
                else {},
                format_as=item.format[3:] if item.format is not None else None,
                strided=item.strided,
                data=templates,
            )
        )
    return tuple(parameters)


def _modes(model: OperatorModel, problems: Problems, kinds: Mapping[str, str]) -> Modes | None:
    if model.modes is None:
        return None
    entry = model.modes
    problems.known(entry.attribute, kinds, ("modes", "attribute"), "parameter")
    problems.known(entry.by, kinds, ("modes", "by"), "parameter")
    names: dict[int, str] = {}
    for value, name in entry.names.items():
        if not value.isdigit():
            problems.add(("modes", "names", value), f"{value!r}; expected an integer value of the attribute")
            continue
        names[int(value)] = name
    formats = (*DTYPES, "HFLOAT32")
    for product, by_dtype in entry.operand.items():
        problems.known(product, model.products, ("modes", "operand", product), "product")
        for dtype, row in by_dtype.items():
            problems.known(dtype, DTYPES, ("modes", "operand", product, dtype), "dtype")
            for operand in row:
                if operand is not None:
                    problems.known(operand, formats, ("modes", "operand", product, dtype), "operand format")
            if len(row) != len(names):
                problems.add(
                    ("modes", "operand", product, dtype), f"{len(row)} entries; expected {len(names)}, one a mode"
                )
    operands = {
        product: {dtype: tuple(row) for dtype, row in by_dtype.items()} for product, by_dtype in entry.operand.items()
    }
    return Modes(attribute=entry.attribute, by=entry.by, names=names, operand=operands)


def _rows(
    model: OperatorModel, problems: Problems, kinds: Mapping[str, str]
) -> tuple[Mapping[str, tuple[tuple[str, ...], ...]] | None, tuple[str, ...]]:
    if model.rows is None:
        return None, ()
    parameters = tuple(str(name) for name in model.rows.get("parameters", ()))
    for name in parameters:
        problems.known(name, kinds, ("rows", "parameters"), "parameter")
    rows: dict[str, tuple[tuple[str, ...], ...]] = {}
    for product, entries in model.rows.items():
        if product == "parameters" or not problems.known(product, model.products, ("rows", product), "product"):
            continue
        for number, row in enumerate(entries):
            for dtype in row:
                problems.known(dtype, DTYPES, ("rows", product, number), "dtype")
            if len(row) != len(parameters):
                problems.add(
                    ("rows", product, number), f"{len(row)} dtypes; expected {len(parameters)}, one a parameter"
                )
        rows[product] = tuple(tuple(row) for row in entries)
    return rows, parameters


def _constraints(model: OperatorModel, context: ConstraintContext, interface: Interface) -> tuple[Constraint, ...]:
    problems = context.problems
    built: list[Constraint] = []
    seen: set[str] = set()
    for number, entry in enumerate(model.constraints):
        if entry.id in seen:
            problems.add(("constraints", number, "id"), f"constraint {entry.id!r} stands twice; ids are unique")
        seen.add(entry.id)
        constraint = build_constraint(entry, ("constraints", number), context)
        if constraint is not None:
            built.append(constraint)
    for number, entry in enumerate(model.constraints):
        for required in entry.requires:
            problems.known(required, seen, ("constraints", number, "requires"), "constraint")
    shared = _interface_constraints(model.operator, context, interface)
    ordered = in_evaluation_order((*built, *shared))
    if ordered is None:
        problems.add(("constraints",), "constraints require one another in a circle; break it")
        return tuple(built)
    return ordered


def _interface_constraints(operator: str, context: ConstraintContext, interface: Interface) -> list[Constraint]:
    constraints = []
    for entry in interface.models:
        override = (entry.operators or {}).get(operator, {})
        values = entry.model_dump(by_alias=True, exclude_none=True) | override
        values.pop("operators", None)
        values["id"] = f"interface.{entry.id}"
        shared = ConstraintContext(
            problems=Problems(context.problems.file),
            kinds=context.kinds,
            products=context.products,
            tables={},
            draws=(),
            models=(),
            clauses={values["id"]: tuple(clause.at for clause in interface.clauses if entry.id in clause.constraints)},
            call_level=frozenset(CALL_POINTERS),
        )
        constraint = build_constraint(ConstraintModel.model_validate(values), (), shared)
        if constraint is not None:
            constraints.append(constraint)
    return constraints


def _clauses_by_constraint(models: Sequence[ClauseModel]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for entry in models:
        for identifier in entry.constraints or ():
            found[identifier] = (*found.get(identifier, ()), entry.at)
    return found


def _clause(
    entry: ClauseModel, path: tuple[str | int, ...], problems: Problems, names: Mapping[str, str] | tuple[()]
) -> Clause:
    return Clause(
        at=entry.at,
        en=entry.en,
        zh=entry.zh,
        certainty=entry.certainty,
        constraints=tuple(entry.constraints or ()),
        promise=entry.promise,
        when=problems.expression(entry.when, (*path, "when"), names) if entry.when is not None else None,
        when_text=entry.when,
        interface=entry.interface,
        example=entry.example,
        untestable=(entry.untestable.en, entry.untestable.zh) if entry.untestable is not None else None,
        contradicts=tuple(entry.contradicts),
    )


def _check_clauses(
    clauses: Sequence[ClauseModel],
    constraints: Sequence[ConstraintModel],
    problems: Problems,
    *,
    interface: Interface | None,
    examples: Sequence[str],
) -> None:
    identifiers = [entry.id for entry in constraints]
    named: set[str] = set()
    seen: set[str] = set()
    addresses = [entry.at for entry in clauses]
    for number, entry in enumerate(clauses):
        path = ("clauses", number)
        if entry.at in seen:
            problems.add((*path, "at"), f"clause {entry.at!r} stands twice; an address is never reused")
        seen.add(entry.at)
        given = [name for name in _ENCODINGS if getattr(entry, name) is not None]
        if len(given) != 1:
            problems.add(
                path,
                f"clause {entry.at}: {' and '.join(given) or 'nothing'} given; expected exactly one of "
                f"{', '.join(_ENCODINGS)}",
            )
        for identifier in entry.constraints or ():
            problems.known(identifier, identifiers, (*path, "constraints"), "constraint")
            named.add(identifier)
        if entry.interface is not None and interface is not None:
            problems.known(
                entry.interface,
                [clause.at for clause in interface.clauses],
                (*path, "interface"),
                "clause of the interface",
            )
        if entry.example is not None:
            problems.known(entry.example, examples, (*path, "example"), "example")
        for address in entry.contradicts:
            problems.known(address, addresses, (*path, "contradicts"), "clause")
    for number, constraint in enumerate(constraints):
        if constraint.id not in named:
            problems.add(
                ("constraints", number),
                f"constraint {constraint.id!r} encodes no clause; name it in the clause that it comes from",
            )


def _check_groups(model: OperatorModel, problems: Problems) -> None:
    promised: dict[str, tuple[str, object]] = {}
    for number, entry in enumerate(model.constraints):
        if entry.group is None:
            continue
        promise = (entry.strength, entry.status)
        if promised.setdefault(entry.group, promise) != promise:
            problems.add(
                ("constraints", number),
                f"constraint {entry.id!r} promises {promise}, its group {entry.group!r} {promised[entry.group]}; "
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
        for name in kinds:
            if name not in entry.arguments:
                problems.add((*path, "arguments"), f"argument {name!r} is missing; an example gives them all")
        arguments: dict[str, Any] = {}
        for name in kinds:
            if name in entry.arguments:
                try:
                    arguments[name] = argument_from_json(
                        entry.arguments[name], where=problems.file.at((*path, "arguments", name)), path=name
                    )
                except UsageError as error:
                    problems.messages[str(error)] = None
        for name in entry.arguments:
            problems.known(name, kinds, (*path, "arguments", name), "parameter")
        examples.append(Example(name=entry.name, at=entry.at, product=entry.product, arguments=arguments))
    return tuple(examples)
