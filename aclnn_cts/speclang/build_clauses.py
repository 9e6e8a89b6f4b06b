"""Clauses of a spec file, whether each is encoded once, and whether what it lists can be judged."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from aclnn_cts.core.dtypes import DTYPES, JUDGED_INPUTS, JUDGED_OUTPUTS
from aclnn_cts.core.faults import Fault, current_code
from aclnn_cts.core.printable import shown
from aclnn_cts.speclang.model import Clause, Parameter
from aclnn_cts.speclang.problems import Problems
from aclnn_cts.speclang.schema import PRECISION_SECTIONS, ClauseModel, ConstraintModel, OperatorModel
from aclnn_cts.speclang.yaml_file import YamlPath

FAULTS = tuple(sorted(fault.value for fault in Fault))
"""The kinds of fault that a clause may name."""

_ENCODINGS = ("constraints", "check", "interface", "example", "untestable")


def clauses_by_constraint(models: Sequence[ClauseModel]) -> dict[str, tuple[str, ...]]:
    """The addresses of the clauses that name each constraint."""
    found: dict[str, tuple[str, ...]] = {}
    for entry in models:
        for identifier in entry.constraints or ():
            found[identifier] = (*found.get(identifier, ()), entry.at)
    return found


def build_clause(
    entry: ClauseModel, path: YamlPath, problems: Problems, names: Mapping[str, str] | tuple[()]
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
        contradicts=tuple(entry.contradicts),
    )


def check_clauses(
    clauses: Sequence[ClauseModel],
    constraints: Sequence[ConstraintModel],
    problems: Problems,
    *,
    interface: Sequence[Clause] | None,
    examples: Sequence[str],
    outputs: Sequence[str],
    products: Sequence[str],
) -> None:
    """Report addresses that stand twice, what is encoded by nothing or twice, and constraints without a clause."""
    identifiers = [entry.id for entry in constraints]
    named: set[str] = set()
    seen: set[str] = set()
    addresses = [entry.at for entry in clauses]
    for number, entry in enumerate(clauses):
        path = ("clauses", number)
        problems.add_if(
            entry.at in seen, (*path, "at"), f"clause {shown(entry.at)} stands twice; an address is never reused"
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
    _check_encoded(constraints, named, problems)


def _check_faults(entry: ClauseModel, faults: Sequence[str], path: YamlPath, problems: Problems) -> None:
    problems.add_if(entry.check is None, path, f"clause {entry.at}: `faults` goes with a check; take it away")
    problems.add_if(
        not faults, path, f"clause {entry.at}: no kind of fault; where all of them contradict it, leave `faults` out"
    )
    for number, kind in enumerate(faults):
        if current_code(kind) != kind:
            problems.add((*path, number), f"{shown(kind)} is now {current_code(kind)}")
        elif problems.known(kind, FAULTS, (*path, number), "kind of fault") and kind in faults[:number]:
            problems.add((*path, number), f"clause {entry.at}: the kind of fault {shown(kind)} stands twice")
    problems.add_if(
        set(faults) >= set(FAULTS), path, f"clause {entry.at}: every kind of fault is named; leave `faults` out"
    )


def _check_encoded(constraints: Sequence[ConstraintModel], named: Collection[str], problems: Problems) -> None:
    for number, constraint in enumerate(constraints):
        problems.add_if(
            constraint.id not in named,
            ("constraints", number),
            f"constraint {shown(constraint.id)} encodes no clause; name it in the clause that it comes from",
        )


def check_arithmetic(model: OperatorModel, problems: Problems, parameters: Sequence[Parameter]) -> None:
    """A dtype that valid calls are made of needs arithmetic in the judge: it could not compare a single value."""
    for item in parameters:
        if not item.holds_tensors:
            continue
        judged = JUDGED_OUTPUTS if item.is_output else JUDGED_INPUTS
        for path, dtype in _dtypes(model, item, parameters):
            if dtype in DTYPES and dtype not in judged:
                problems.add(
                    path,
                    f"{item.name}: the judge has no arithmetic for {dtype}; expected any of "
                    f"{', '.join(name for name in DTYPES if name in judged)} for an {item.role}; leave it out of what "
                    "valid calls draw from",
                )


def _dtypes(model: OperatorModel, item: Parameter, parameters: Sequence[Parameter]) -> Iterator[tuple[YamlPath, str]]:
    """The dtypes that valid calls give a tensor, and where each stands in the file."""
    number = parameters.index(item)
    earlier = {other.name: other for other in parameters[:number]}
    if item.dtype_as is not None:
        followed = earlier.get(item.dtype_as)
        for _, dtype in _dtypes(model, followed, parameters) if followed is not None else ():
            yield ("parameters", number, "dtype"), dtype
        return
    given = model.parameters[number].dtypes
    for product in model.products:
        for place, dtype in enumerate(item.dtypes.get(product, ())):
            if isinstance(given, str):
                yield ("tables", given, product, place), dtype
            else:
                inner = (product,) if isinstance(given, dict) else ()
                yield ("parameters", number, "dtypes", *inner, place), dtype
    rows = model.rows or {}
    for product in model.products:
        for place, row in enumerate(rows.get(product, ())):
            for name, dtype in zip(rows.get("parameters", ()), row, strict=False):
                if name == item.name:
                    yield ("rows", product, place), dtype


def check_precision(model: OperatorModel, problems: Problems, parameters: Sequence[Parameter]) -> None:
    """A compute model has to say something, and of a call that there is."""
    outputs = [item.name for item in parameters if item.is_output]
    operands = {
        operand
        for by_dtype in (model.modes.operand if model.modes is not None else {}).values()
        for row in by_dtype.values()
        for operand in row
        if operand is not None
    }
    for number, entry in enumerate(model.precision or ()):
        path = ("precision", number)
        problems.add_if(
            entry.operator is not None,
            (*path, "operator"),
            f"operator: {shown(entry.operator)}; a spec file has models of its own operator alone, leave it out",
        )
        problems.add_if(
            all(getattr(entry, name) is None for name in PRECISION_SECTIONS),
            path,
            f"the entry says nothing; add one of {', '.join(PRECISION_SECTIONS)}",
        )
        chosen = [item for item in parameters if item.name in (entry.outputs or outputs)]
        dtypes = {dtype for item in chosen for _, dtype in _dtypes(model, item, parameters)}
        _check_selector(entry.outputs, outputs, (*path, "outputs"), problems, "output")
        _check_selector(entry.products, model.products, (*path, "products"), problems, "product of the operator")
        _check_selector(entry.dtypes, sorted(dtypes), (*path, "dtypes"), problems, "dtype of these outputs")
        _check_selector(entry.operands, sorted(operands), (*path, "operands"), problems, "operand format of `modes`")


def _check_selector(
    given: Sequence[str] | None, known: Sequence[str], path: YamlPath, problems: Problems, what: str
) -> None:
    if given is None:
        return
    if not given or not known:
        why = f"there is no {what}" if given else "an empty list matches nothing"
        problems.add(path, f"{path[-1]}: {list(given)}; {why}, leave it out")
        return
    problems.all_known(given, known, path, what, numbered=True)
