"""Clauses of a spec file, and whether each is encoded once and each constraint has one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from aclnn_cts.core.faults import Fault, current_code
from aclnn_cts.core.printable import shown
from aclnn_cts.speclang.model import Clause
from aclnn_cts.speclang.problems import Problems
from aclnn_cts.speclang.schema import ClauseModel, ConstraintModel
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
