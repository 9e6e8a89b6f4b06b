"""The catalogue of seeded faults and decoys: what each is, and who is foreseen to notice it.

`adapters/loopback/faults.yaml` is written before a fault is first run, and only measuring (`mutants.power`), docs and
reports read it: whatever generates, plans or judges must not know what it is going to meet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from aclnn_cts.checks.registry import CHECKS
from aclnn_cts.core.errors import UsageError, nearest
from aclnn_cts.speclang.expression_parser import ExpressionError, parse
from aclnn_cts.speclang.load import Specs
from aclnn_cts.speclang.problems import Problems
from aclnn_cts.speclang.yaml_file import read_yaml

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


_Text = Annotated[str, StringConstraints(strict=True, strip_whitespace=True, min_length=1)]
_Id = Annotated[str, StringConstraints(strict=True, pattern=r"^[a-z]+(\.[a-z0-9-]+){1,2}$")]
_Clause = Annotated[str, StringConstraints(strict=True, pattern=r"^(interface/)?[A-Za-z0-9_.]+$")]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SeededFault(_Model):
    """One mistake in the software device."""

    id: _Id
    operator: _Text
    fault_class: Annotated[FaultClass, Field(alias="class")]
    sentence: _Text
    checks: Annotated[tuple[_Text, ...], Field(min_length=1)]
    """Those that are foreseen to notice it."""
    clauses: Annotated[tuple[_Clause, ...], Field(min_length=1)]
    """Addresses in the operator's document that it breaks, or `interface/` and one of the interface's."""
    trigger: _Text = ""
    """An expression over a valid call: without it the fault changes nothing. `true` where any call may show it, empty
    where no such expression says it, or the fault is about broken calls or several calls."""
    equivalent: _Text = ""
    """Where and why it cannot be told from correct behaviour; empty where it can."""
    sentence_zh: _Text = ""
    """The sentence in Chinese, for reports; empty where nobody has written it."""
    equivalent_zh: _Text = ""


class Decoy(_Model):
    """A correct way of doing something differently."""

    id: Annotated[str, StringConstraints(strict=True, pattern=r"^decoy(\.[a-z0-9-]+){2}$")]
    operator: _Text
    sentence: _Text
    why: _Text
    """Why it is correct."""
    sentence_zh: _Text = ""


class _Empty(_Model):
    operator: _Text
    fault_class: Annotated[FaultClass, Field(alias="class")]
    reason: _Text


class _File(_Model):
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

    def find(self, identifier: str) -> SeededFault | Decoy:
        """An entry by its id; UsageError for an unknown one."""
        entry = self.faults.get(identifier) or self.decoys.get(identifier)
        if entry is None:
            known = [*self.faults, *self.decoys]
            raise UsageError(
                f"--fault {identifier!r}: not in the catalogue{nearest(identifier, known)}; "
                f"`aclnn-cts faults --list` lists all {len(known)}"
            )
        return entry


def shipped_path() -> Path:
    """Where our own catalogue lies."""
    return Path(str(resources.files("aclnn_cts.adapters") / "loopback" / "faults.yaml"))


def read_catalogue(specs: Specs, path: Path | None = None) -> Catalogue:
    """Read a catalogue, our own by default; UsageError that names every mistake with file and line."""
    problems = Problems(read_yaml(path or shipped_path(), name=None if path else "adapters/loopback/faults.yaml"))
    try:
        content = _File.model_validate(problems.file.content)
    except ValidationError as error:
        problems.validation(error, _File)
        raise UsageError("\n".join(problems.sorted())) from None
    _check(content, specs, problems)
    if problems.messages:
        raise UsageError("\n".join(problems.sorted()))
    return Catalogue(
        faults={entry.id: entry for entry in content.faults},
        decoys={entry.id: entry for entry in content.decoys},
        empty={(entry.operator, entry.fault_class): entry.reason for entry in content.empty},
    )


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
            _check_trigger(entry, specs, problems, ("faults", number, "trigger"))
            for clause in entry.clauses:
                problems.known(clause, addresses, ("faults", number, "clauses"), f"clause of {entry.operator}")


def _check_trigger(entry: SeededFault, specs: Specs, problems: Problems, place: tuple[str | int, ...]) -> None:
    try:
        names = parse(entry.trigger).names() if entry.trigger else frozenset()
    except ExpressionError as error:
        problems.add(place, str(error))
        return
    for name in sorted(names):
        problems.known(name, [item.name for item in specs[entry.operator].parameters], place, "parameter")
