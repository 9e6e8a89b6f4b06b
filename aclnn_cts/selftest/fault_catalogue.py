"""The catalogue of seeded faults and decoys: what each is, and who is foreseen to notice it.

A fault of values, indices or validation is a list of mutants of the reference. One of the interface, memory, streams or
the life cycle is in the software device.

`adapters/loopback/faults.yaml` is written before a fault is first run, and only measuring (`selftest.power`), docs and
reports read it: whatever generates, plans or judges must not know what it is going to meet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from aclnn_cts.core.errors import UsageError, did_you_mean
from aclnn_cts.formula.emulator import Variant
from aclnn_cts.formula.mutants import Mutant, Site
from aclnn_cts.selftest.generated_mutants import CorrectVariant
from aclnn_cts.selftest.kinds import known_kinds
from aclnn_cts.speclang.expression_parser import ExpressionError, parse
from aclnn_cts.speclang.form import NOT_BLANK
from aclnn_cts.speclang.load import Specs
from aclnn_cts.speclang.package import checked_file
from aclnn_cts.speclang.problems import Problems
from aclnn_cts.speclang.shared_schema import FileEntry
from aclnn_cts.speclang.yaml_file import read_yaml
from aclnn_cts.trials.checks.registry import CHECKS

FORMAT = "aclnn-cts/faults/1"

FaultClass: TypeAlias = Literal["numerical", "precision", "indexing", "data", "validation", "memory", "state"]

CLASSES: Mapping[FaultClass, str] = {
    "numerical": "a term dropped or doubled, sign, scale",
    "precision": "computed, accumulated or rounded in less than the mode promises",
    "indexing": "off by one, wrong axis, strides and offsets ignored, tails, rank 8",
    "data": "repeated indices, padding, counts, narrow integers, inf and nan",
    "validation": "a check missing, too strict, with another status or in the wrong place",
    "memory": "written outside of the output or the workspace, inputs changed, outputs left unwritten",
    "state": "races, stale results, the cache, leaks, crashes now and then, hangs",
}
"""The classes of faults, each in a few words."""

_INTERFACE = "interface/"
"""Before the address of a clause of `specs/interface.yaml`."""


_Text = Annotated[str, Meta(pattern=NOT_BLANK)]
_Id = Annotated[str, Meta(pattern=r"^[a-z]+(\.[a-z0-9-]+){1,2}$")]
_Clause = Annotated[str, Meta(pattern=r"^(interface/)?[A-Za-z0-9_.]+$")]


class SeededFault(FileEntry, frozen=True, kw_only=True, rename={"fault_class": "class"}):
    """One mistake in the software device, or in the reference."""

    id: _Id
    operator: _Text
    fault_class: FaultClass
    sentence: _Text
    checks: Annotated[tuple[_Text, ...], Meta(min_length=1)]
    """Those that are foreseen to notice it."""
    clauses: Annotated[tuple[_Clause, ...], Meta(min_length=1)]
    """Addresses in the operator's document that it breaks, or `interface/` and one of the interface's."""
    trigger: str = ""
    """An expression over a valid call: without it the fault changes nothing. `true` where any call may show it, empty
    where no such expression says it, or the fault is about broken calls or several calls."""
    mutants: tuple[Mutant, ...] = ()
    """What it changes in the reference; none: it is in the software device.

    A mutant without a trigger has that of the fault."""
    equivalent: str = ""
    """Where and why it cannot be told from correct behaviour; empty where it can."""
    sentence_zh: str = ""
    """The sentence in Chinese, for reports; empty where nobody has written it."""
    equivalent_zh: str = ""

    @property
    def subjects(self) -> tuple[Mutant, ...]:
        """What the reference is made into; nothing: it is in the software device."""
        return self.mutants


class Decoy(FileEntry, frozen=True, kw_only=True):
    """A correct way of doing something differently."""

    id: Annotated[str, Meta(pattern=r"^decoy(\.[a-z0-9-]+){2}$")]
    operator: _Text
    sentence: _Text
    why: _Text
    """Why it is correct."""
    variant: Variant | Literal["exact"] | None = None
    """How it computes: `exact` as the reference, None: it is in the software device."""
    sentence_zh: str = ""

    @property
    def subjects(self) -> tuple[CorrectVariant, ...]:
        """What the reference is made into; nothing: it is in the software device."""
        if self.variant is None:
            return ()
        variant = self.variant if isinstance(self.variant, Variant) else None
        return (CorrectVariant(id=self.id, operator=self.operator, variant=variant),)


class _Empty(FileEntry, frozen=True, kw_only=True, rename={"fault_class": "class"}):
    operator: _Text
    fault_class: FaultClass
    reason: _Text


class _File(FileEntry, frozen=True, kw_only=True):
    format: Literal["aclnn-cts/faults/1"]
    faults: list[SeededFault]
    decoys: list[Decoy]
    empty: list[_Empty]


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """All of them, by id, in the order of the file."""

    faults: Mapping[str, SeededFault]
    decoys: Mapping[str, Decoy]
    empty: Mapping[tuple[str, str], str]
    """By operator and class that have no fault: the reason why there can be none."""

    def find(self, identifier: str, *, where: str = "--fault ") -> SeededFault | Decoy:
        """An entry by its id; UsageError for an unknown one, which stands at `where`."""
        entry = self.faults.get(identifier) or self.decoys.get(identifier)
        if entry is None:
            known = [*self.faults, *self.decoys]
            raise UsageError(
                f"{where}{identifier!r}: not in the catalogue{did_you_mean(identifier, known)}; "
                f"`aclnn-cts faults --list` lists all {len(known)}"
            )
        return entry


def shipped_path() -> Path:
    """Where our own catalogue lies."""
    return Path(str(resources.files("aclnn_cts.adapters") / "loopback" / "faults.yaml"))


def read_catalogue(specs: Specs, path: Path | None = None) -> Catalogue:
    """Read a catalogue, our own by default; UsageError that names every mistake with file and line."""
    file = read_yaml(path or shipped_path(), name=None if path else "adapters/loopback/faults.yaml")
    content = checked_file(file, _File)
    problems = Problems(file)
    _check(content, specs, problems)
    if problems.messages:
        raise UsageError("\n".join(problems.sorted()))
    return Catalogue(
        faults={entry.id: _with_whole_mutants(entry) for entry in content.faults},
        decoys={entry.id: entry for entry in content.decoys},
        empty={(entry.operator, entry.fault_class): entry.reason for entry in content.empty},
    )


def _with_whole_mutants(entry: SeededFault) -> SeededFault:
    """The entry with mutants that know their operator and trigger."""
    every = "" if entry.trigger == "true" else entry.trigger
    mutants = (
        replace(mutant, id=entry.id, operator=entry.operator, trigger=mutant.trigger or every)
        for mutant in entry.mutants
    )
    return msgspec.structs.replace(entry, mutants=tuple(mutants))


def _check(content: _File, specs: Specs, problems: Problems) -> None:
    """What no schema can say: names that must exist, ids that must not stand twice."""
    seen: set[str] = set()
    for section in ("faults", "decoys", "empty"):
        for number, entry in enumerate(getattr(content, section)):
            place = (section, number)
            problems.known(entry.operator, specs, (*place, "operator"), "operator")
            if section == "empty":
                continue
            if entry.id in seen:
                problems.add((*place, "id"), f"{entry.id!r} stands twice; give one of them another id")
            seen.add(entry.id)
    for number, entry in enumerate(content.faults):
        for check in entry.checks:
            problems.known(check, CHECKS, ("faults", number, "checks"), "check")
        if entry.operator in specs:
            addresses = [clause.at for clause in specs[entry.operator].clauses]
            addresses += [_INTERFACE + clause.at for clause in specs.interface_clauses]
            names = [item.name for item in specs[entry.operator].parameters]
            _check_expression(entry.trigger, names, problems, ("faults", number, "trigger"))
            for index, mutant in enumerate(entry.mutants):
                _check_mutant(mutant, names, problems, ("faults", number, "mutants", index))
            for clause in entry.clauses:
                problems.known(clause, addresses, ("faults", number, "clauses"), f"clause of {entry.operator}")


def _check_mutant(mutant: Mutant, names: Sequence[str], problems: Problems, place: tuple[str | int, ...]) -> None:
    problems.known(mutant.kind, known_kinds(mutant), (*place, "kind"), f"kind of the site {mutant.site.value}")
    _check_expression(mutant.trigger, names, problems, (*place, "trigger"))
    if mutant.site is not Site.STATUS:
        _check_expression(mutant.value, [*names, "i"], problems, (*place, "value"))


def _check_expression(text: str, names: Sequence[str], problems: Problems, place: tuple[str | int, ...]) -> None:
    try:
        read = parse(text).names() if text else frozenset()
    except ExpressionError as error:
        problems.add(place, str(error))
        return
    for name in sorted(read):
        problems.known(name, names, place, "parameter")
