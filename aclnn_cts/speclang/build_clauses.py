"""Clauses of a spec file, whether each is encoded once, and whether what it lists can be judged."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from aclnn_cts.core.dtypes import DTYPES, JUDGED_INPUTS, JUDGED_OUTPUTS
from aclnn_cts.core.faults import Fault, current_code
from aclnn_cts.core.printable import quote
from aclnn_cts.speclang.build_constraints import ConstraintContext
from aclnn_cts.speclang.model import Clause, Parameter
from aclnn_cts.speclang.schema import ClauseModel, ConstraintModel, ParameterModel
from aclnn_cts.speclang.shared_schema import PRECISION_SECTIONS, PrecisionModel
from aclnn_cts.speclang.spec_problems import SpecProblems
from aclnn_cts.speclang.yaml_file import YamlPath

Clauses: TypeAlias = Sequence[tuple[ClauseModel, YamlPath]]
"""Clauses, and where each is written."""
Constraints: TypeAlias = Sequence[tuple[ConstraintModel, YamlPath]]

FAULTS = tuple(sorted(fault.value for fault in Fault))
"""The kinds of fault that a clause may name."""

_NUMBER = re.compile(r"(?<![\w.])-?\d{1,9}(?!\w|\.\d)", re.ASCII)
_ENCODINGS = ("constraints", "check", "interface", "example", "untestable")


def clauses_by_constraint(models: Iterable[ClauseModel]) -> dict[str, tuple[str, ...]]:
    """The addresses of the clauses that name each constraint."""
    found: dict[str, tuple[str, ...]] = {}
    for entry in models:
        for identifier in entry.constraints or ():
            found[identifier] = (*found.get(identifier, ()), entry.at)
    return found


def build_clause(
    entry: ClauseModel, path: YamlPath, problems: SpecProblems, names: Mapping[str, str] | tuple[()]
) -> Clause:
    """One clause with its condition compiled; `names` are those that its condition may read."""
    return Clause(
        at=entry.at,
        en=entry.en,
        zh=entry.zh,
        certainty=entry.certainty,
        products=tuple(entry.products or ()),
        constraints=tuple(entry.constraints or ()),
        check=entry.check,
        when=problems.expression(entry.when, (*path, "when"), names) if entry.when is not None else None,
        when_text=entry.when,
        output=entry.output,
        faults=tuple(entry.faults or ()),
        interface=entry.interface,
        example=entry.example,
        untestable=(entry.untestable.en, entry.untestable.zh) if entry.untestable is not None else None,
        reason=entry.untestable.reason if entry.untestable is not None else None,
        contradicts=tuple(entry.contradicts),
    )


def check_clauses(
    clauses: Clauses,
    constraints: Constraints,
    problems: SpecProblems,
    *,
    interface: Sequence[Clause] | None,
    examples: Sequence[str],
    outputs: Sequence[str],
    products: Sequence[str],
) -> None:
    """Report addresses that stand twice, what is encoded by nothing or twice, and constraints without a clause."""
    identifiers = [entry.id for entry, _ in constraints]
    named: set[str] = set()
    seen: set[str] = set()
    addresses = [entry.at for entry, _ in clauses]
    for entry, path in clauses:
        problems.add_if(
            entry.at in seen, (*path, "at"), f"clause {quote(entry.at)} stands twice; an address is never reused"
        )
        seen.add(entry.at)
        given = [name for name in _ENCODINGS if getattr(entry, name) is not None]
        problems.add_if(
            len(given) != 1,
            path,
            f"clause {entry.at}: {' and '.join(given) or 'nothing'} given; expected exactly one of "
            f"{', '.join(_ENCODINGS)}",
        )
        problems.all_known(entry.products or (), products, (*path, "products"), "product", numbered=True)
        problems.add_if(
            entry.products == [],
            (*path, "products"),
            f"clause {entry.at}: no product; where it is stated for all, leave `products` out",
        )
        problems.all_known(entry.constraints or (), identifiers, (*path, "constraints"), "constraint")
        named.update(entry.constraints or ())
        if entry.interface is not None and interface is not None:
            problems.known(
                entry.interface,
                [clause.at for clause in interface],
                (*path, "interface"),
                "clause of the interface",
            )
        if entry.example is not None:
            problems.known(entry.example, examples, (*path, "example"), "example")
        if entry.output is not None:
            problems.known(entry.output, outputs, (*path, "output"), "output")
            problems.add_if(
                entry.check is None,
                (*path, "output"),
                f"clause {entry.at}: `output` goes with a check; take it away",
            )
        if entry.faults is not None:
            _check_faults(entry, entry.faults, (*path, "faults"), problems)
        problems.all_known(entry.contradicts, addresses, (*path, "contradicts"), "clause")
    for constraint, path in constraints:
        problems.add_if(
            constraint.id not in named,
            path,
            f"constraint {quote(constraint.id)} encodes no clause; name it in the clause that it comes from",
        )


def _check_faults(entry: ClauseModel, faults: Sequence[str], path: YamlPath, problems: SpecProblems) -> None:
    problems.add_if(entry.check is None, path, f"clause {entry.at}: `faults` goes with a check; take it away")
    problems.add_if(
        not faults, path, f"clause {entry.at}: no kind of fault; where all of them contradict it, leave `faults` out"
    )
    for number, kind in enumerate(faults):
        if current_code(kind) != kind:
            problems.add((*path, number), f"{quote(kind)} is now {current_code(kind)}")
        elif problems.known(kind, FAULTS, (*path, number), "kind of fault") and kind in faults[:number]:
            problems.add((*path, number), f"clause {entry.at}: the kind of fault {quote(kind)} stands twice")
    problems.add_if(
        set(faults) >= set(FAULTS), path, f"clause {entry.at}: every kind of fault is named; leave `faults` out"
    )


def check_codes_of_ends(clauses: Clauses, constraints: Constraints, problems: SpecProblems) -> None:
    """Report sentences on codes that name one end of a range whose rule has the code at both.

    A row such as "more than 8 dimensions" has no code for too few of them.
    """
    ends = {entry.id: pair for entry, _ in constraints if (pair := _listed_ends(entry)) is not None}
    for clause, path in clauses:
        named = set(map(int, _NUMBER.findall(f"{clause.en} {clause.zh}")))
        for identifier in clause.constraints or () if clause.at.startswith("returns.") else ():
            low, high = ends.get(identifier, (0, 0))
            if (low in named) != (high in named):
                stated, other = (high, low) if high in named else (low, high)
                problems.add(
                    path,
                    f"clause {clause.at}: names {stated} and not {other}, while {identifier} has its code at both "
                    "ends; name both, or give the other end a rule of its own, without the code",
                )


def _listed_ends(entry: ConstraintModel) -> tuple[int, int] | None:
    """Both ends of a listed range, in numbers; None where one of them cannot be passed: no tensor has -1 dimensions."""
    if entry.strength != "listed" or entry.kind not in ("rank", "length", "dims", "range"):
        return None
    if not isinstance(entry.in_, list) or len(entry.in_) != 2:
        return None
    low, high = entry.in_
    if not isinstance(low, int) or not isinstance(high, int) or low == high:
        return None
    return None if low == 0 and entry.kind in ("rank", "length") else (low, high)


def check_arithmetic(
    models: Sequence[ParameterModel], parameters: Sequence[Parameter], context: ConstraintContext
) -> None:
    """A dtype that valid calls are made of needs arithmetic in the judge: it could not compare a single value."""
    for item in parameters:
        if not item.holds_tensors:
            continue
        judged = JUDGED_OUTPUTS if item.is_output else JUDGED_INPUTS
        for path, dtype in _dtypes(item, models, parameters, context):
            if dtype in DTYPES and dtype not in judged:
                context.problems.add(
                    path,
                    f"{item.name}: the judge has no arithmetic for {dtype}; expected any of "
                    f"{', '.join(name for name in DTYPES if name in judged)} for an {item.role}; leave it out of what "
                    "valid calls draw from",
                )


def _dtypes(
    item: Parameter, models: Sequence[ParameterModel], parameters: Sequence[Parameter], context: ConstraintContext
) -> Iterator[tuple[YamlPath, str]]:
    """The dtypes that valid calls give a tensor, and where each stands in the file."""
    number = parameters.index(item)
    earlier = {other.name: other for other in parameters[:number]}
    if item.dtype_as is not None:
        followed = earlier.get(item.dtype_as)
        for _, dtype in _dtypes(followed, models, parameters, context) if followed is not None else ():
            yield ("parameters", number, "dtype"), dtype
        return
    given = models[number].dtypes
    for product in context.products:
        for place, dtype in enumerate(item.dtypes.get(product, ())):
            if isinstance(given, str):
                yield ("tables", given, product, place), dtype
            else:
                inner = (product,) if isinstance(given, dict) else ()
                yield ("parameters", number, "dtypes", *inner, place), dtype
        if context.rows is not None and item.name in context.rows.parameters:
            column = context.rows.parameters.index(item.name)
            rows, places = context.rows.by_product.get(product, ()), context.rows.places.get(product, ())
            yield from ((("rows", product, place), row[column]) for row, place in zip(rows, places, strict=True))


def check_precision(
    entries: Sequence[PrecisionModel],
    models: Sequence[ParameterModel],
    parameters: Sequence[Parameter],
    context: ConstraintContext,
) -> None:
    """A compute model has to say something, and of a call that there is."""
    problems = context.problems
    outputs = [item.name for item in parameters if item.is_output]
    operands = {
        operand
        for by_dtype in (context.modes.operand if context.modes is not None else {}).values()
        for row in by_dtype.values()
        for operand in row
        if operand is not None
    }
    for number, entry in enumerate(entries):
        path = ("precision", number)
        problems.add_if(
            entry.operator is not None,
            (*path, "operator"),
            f"operator: {quote(entry.operator)}; a spec file has models of its own operator alone, leave it out",
        )
        problems.add_if(
            all(getattr(entry, name) is None for name in PRECISION_SECTIONS),
            path,
            f"the entry says nothing; add one of {', '.join(PRECISION_SECTIONS)}",
        )
        if entry.repeatable is not None and entry.repeatable.unless is not None:
            problems.expression(entry.repeatable.unless, (*path, "repeatable", "unless"), context.kinds)
        chosen = [item for item in parameters if item.name in (entry.outputs or outputs)]
        dtypes = {dtype for item in chosen for _, dtype in _dtypes(item, models, parameters, context)}
        _check_selector(entry.outputs, outputs, (*path, "outputs"), problems, "output")
        _check_selector(entry.products, context.products, (*path, "products"), problems, "product of the operator")
        _check_selector(entry.dtypes, sorted(dtypes), (*path, "dtypes"), problems, "dtype of these outputs")
        _check_selector(entry.operands, sorted(operands), (*path, "operands"), problems, "operand format of `modes`")


def _check_selector(
    given: Sequence[str] | None, known: Sequence[str], path: YamlPath, problems: SpecProblems, what: str
) -> None:
    if given is None:
        return
    if not given or not known:
        why = f"there is no {what}" if given else "an empty list matches nothing"
        problems.add(path, f"{path[-1]}: {list(given)}; {why}, leave it out")
        return
    problems.all_known(given, known, path, what, numbered=True)
