"""Claims files, and the audit that holds one against a document in any edition.

`specs/claims/STEM.yaml` names statements by address and digest alone, so that no sentence of a document is kept. It is
made by `spec audit -o` (`document.lock`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictStr, ValidationError

from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.printable import shown
from aclnn_cts.document.model import Document, Statement
from aclnn_cts.speclang.build_claims import NotTestable
from aclnn_cts.speclang.model import Spec
from aclnn_cts.speclang.problems import Problems
from aclnn_cts.speclang.schema import DocumentModel
from aclnn_cts.speclang.yaml_file import YamlFile, read_yaml

FORMAT = "aclnn-cts/claims/1"
MADE = "# Made by `aclnn-cts spec audit -o` from the `claims` of the spec and the document's facts; do not edit."
"""The first line of a file that nobody writes by hand."""

Reference = Annotated[StrictStr, Field(pattern=r"^[a-z0-9]+(/[A-Za-z0-9_.\-]+)+#[0-9a-f]{8}$")]


@dataclass(frozen=True, slots=True)
class Claim:
    """What a claims file says of one statement: its clauses, or why it has none; neither where it is open."""

    reference: str
    clauses: tuple[str, ...] = ()
    reason: NotTestable | None = None

    @property
    def address(self) -> str:
        """The address alone."""
        return self.reference.partition("#")[0]

    @property
    def is_open(self) -> bool:
        """Whether a person has still to read the statement."""
        return not self.clauses and self.reason is None


@dataclass(frozen=True, slots=True)
class Claims:
    """A claims file."""

    operator: str
    document: DocumentModel
    claims: tuple[Claim, ...]
    is_made: bool = False
    """Whether a command wrote it, so that it holds nothing that a person wrote."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    format_: Literal["aclnn-cts/claims/1"] = Field(alias="format")
    operator: StrictStr
    document: DocumentModel
    claims: dict[Reference, Annotated[list[StrictStr], Field(min_length=1)]] = {}
    untestable: dict[NotTestable, list[Reference]] = {}
    open_: list[Reference] = Field(default=[], alias="open")


def claims_path(folder: Path, stem: str) -> Path:
    """Where the claims of an operator lie: in `claims/` beside its spec."""
    return folder / "claims" / f"{stem}.yaml"


def edition_of(path: Path) -> str:
    """The edition of the spec whose clauses a claims file names; empty: the spec's own."""
    content = read_yaml(path).content
    document = content.get("document") if isinstance(content, dict) else None
    edition = document.get("edition") if isinstance(document, dict) else None
    return edition if isinstance(edition, str) else ""


def read_claims(path: Path, spec: Spec) -> Claims:
    """Read and check a claims file; UsageError with every mistake, such as a clause that the spec lacks."""
    file = read_yaml(path)
    problems = Problems(file)
    try:
        model = _Model.model_validate(file.content)
    except ValidationError as error:
        problems.validation(error, _Model)
        raise UsageError("\n".join(problems.sorted())) from None
    if model.operator != spec.operator:
        problems.add(("operator",), f"{shown(model.operator)}; expected {spec.operator}, the operator of {spec.path}")
    known = [clause.at for clause in spec.clauses]
    for reference, clauses in model.claims.items():
        for number, clause in enumerate(clauses):
            problems.known(clause, known, ("claims", reference, number), "clause")
    claims = tuple(_claims(model))
    _check_once(claims, problems, file)
    if problems.messages:
        raise UsageError("\n".join(problems.sorted()))
    return Claims(model.operator, model.document, claims, is_made=file.text.startswith(MADE))


def _claims(model: _Model) -> Iterator[Claim]:
    yield from (Claim(reference, tuple(clauses)) for reference, clauses in model.claims.items())
    for reason, references in model.untestable.items():
        yield from (Claim(reference, reason=reason) for reference in references)
    yield from (Claim(reference) for reference in model.open_)


def _check_once(claims: Sequence[Claim], problems: Problems, file: YamlFile) -> None:
    seen: set[str] = set()
    for claim in claims:
        if claim.address in seen:
            problems.add((), f"{claim.address} is named twice; claim it, give a reason or leave it open, once")
        seen.add(claim.address)


def claims_text(operator: str, document: Mapping[str, str], claims: Sequence[Claim]) -> str:
    """A claims file. `document`: the keys of its document entry."""
    lines = [MADE, f"format: {FORMAT}", f"operator: {operator}", "document:"]
    lines += [f"  {key}: {json.dumps(value)}" for key, value in document.items()]
    lines.append("claims:")
    lines += [f"  {claim.reference}: [{', '.join(claim.clauses)}]" for claim in claims if claim.clauses]
    if lines[-1] == "claims:":
        lines[-1] = "claims: {}"
    reasons = [reason for reason in NotTestable if any(claim.reason is reason for claim in claims)]
    lines += ["untestable:"] if reasons else []
    for reason in reasons:
        lines.append(f"  {reason.value}:")
        lines += [f"    - {claim.reference}" for claim in claims if claim.reason is reason]
    left = [claim.reference for claim in claims if claim.is_open]
    lines += ["open:", *(f"  - {reference}" for reference in left)] if left else []
    return "\n".join(lines) + "\n"


class State(str, Enum):
    """What an audit finds of one statement."""

    CLAIMED = "claimed"
    """Clauses encode it."""
    UNTESTABLE = "untestable"
    """The claims file says why no test can show it."""
    OPEN = "open"
    """Nobody has read it: the claims file lists it as open, or there is none."""
    NEW = "new"
    """The claims file, made for another edition, does not know it."""
    CHANGED = "changed"
    """Its text or its products are not those that were claimed."""
    GONE = "gone"
    """What the claims file names is no longer in the document."""


_MISSING = frozenset({State.OPEN, State.NEW, State.CHANGED, State.GONE})


@dataclass(frozen=True, slots=True)
class Entry:
    """One statement of the document, or (`GONE`) of the claims file."""

    state: State
    address: str
    statement: Statement | None
    claim: Claim | None
    """What the claims file says of it, under this address or the one that it moved from."""

    @property
    def is_missing(self) -> bool:
        """Whether a person has to look at it."""
        return self.state in _MISSING

    @property
    def moved_from(self) -> str | None:
        """The address in the claims file where it is another one; the text is the same."""
        return self.claim.address if self.claim is not None and self.claim.address != self.address else None


@dataclass(frozen=True, slots=True)
class Audit:
    """The statements of a document in order, then those that are gone."""

    entries: tuple[Entry, ...]
    is_same_edition: bool
    """Whether the claims were made for these very bytes."""

    def count(self, state: State) -> int:
        """How many statements are in a state."""
        return sum(entry.state is state for entry in self.entries)

    @property
    def statements(self) -> int:
        """Statements of the document."""
        return sum(entry.statement is not None for entry in self.entries)

    @property
    def missing(self) -> tuple[Entry, ...]:
        """What a person has to look at."""
        return tuple(entry for entry in self.entries if entry.is_missing)

    @property
    def share(self) -> float:
        """Share of the statements that are encoded or have a reason."""
        done = self.count(State.CLAIMED) + self.count(State.UNTESTABLE)
        return done / self.statements if self.statements else 0.0


def audit(document: Document, claims: Claims | None) -> Audit:
    """Hold the claims against a document. Without any, every statement is open.

    A statement is found again by address and digest; else by its digest at another number of the same list or cell
    (it moved); else by its address (it changed).
    """
    left = list(claims.claims if claims is not None else ())
    found = _matched(document.statements, left)
    same = claims is not None and claims.document.sha256 == document.sha256
    has_claims = claims is not None
    entries = [_entry(item, found.get(item.address), has_claims=has_claims) for item in document.statements]
    used = {id(claim) for claim in found.values()}
    entries += [Entry(State.GONE, claim.address, None, claim) for claim in left if id(claim) not in used]
    return Audit(tuple(entries), same)


def _entry(statement: Statement, claim: Claim | None, *, has_claims: bool) -> Entry:
    if claim is None:
        state = State.NEW if has_claims else State.OPEN
    elif not claim.reference.endswith(f"#{statement.digest}"):
        state = State.CHANGED
    elif claim.is_open:
        state = State.OPEN
    else:
        state = State.UNTESTABLE if claim.reason is not None else State.CLAIMED
    return Entry(state, statement.address, statement, claim)


def _matched(statements: Sequence[Statement], claims: Iterable[Claim]) -> dict[str, Claim]:
    """The claim of each statement by the statement's address; each claim is used once."""
    left = {claim.reference: claim for claim in claims}
    found = {item.address: left.pop(item.reference) for item in statements if item.reference in left}
    places: dict[tuple[str, str], list[Claim]] = {}
    for claim in left.values():
        places.setdefault((_place(claim.address), claim.reference.partition("#")[2]), []).append(claim)
    for item in statements:
        moved = places.get((_place(item.address), item.digest), [])
        if item.address not in found and moved:
            found[item.address] = moved.pop(0)
            del left[found[item.address].reference]
    addresses = {claim.address: claim for claim in left.values()}
    for item in statements:
        if item.address not in found and item.address in addresses:
            found[item.address] = addresses[item.address]
    return found


def _place(address: str) -> str:
    """The list or cell that a statement is in: its address without a number at the end."""
    return re.sub(r"/\d+\Z", "", address)
