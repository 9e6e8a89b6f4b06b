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

import msgspec

from aclnn_cts.authoring.agreement import DocumentDifference, differences_by_address, find_differences
from aclnn_cts.authoring.model import Document, Statement
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.printable import quote
from aclnn_cts.speclang.model import Clause, Spec
from aclnn_cts.speclang.package import checked_file
from aclnn_cts.speclang.problems import Problems
from aclnn_cts.speclang.schema import DocumentModel
from aclnn_cts.speclang.shared_schema import FileEntry
from aclnn_cts.speclang.spec_claims import NotTestable
from aclnn_cts.speclang.yaml_file import YamlFile, read_yaml

FORMAT = "aclnn-cts/claims/1"
MADE = "# Made by `aclnn-cts spec audit -o` from the `claims` of the spec and the document's facts; do not edit."
"""The first line of a file that nobody writes by hand."""

Reference = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9]+(/[A-Za-z0-9_.\-]+)+#[0-9a-f]{8}$")]


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

    @property
    def is_unread(self) -> bool:
        """Whether its reason is that this part of the document is not encoded yet."""
        return self.reason is NotTestable.UNREAD


@dataclass(frozen=True, slots=True)
class Claims:
    """A claims file."""

    operator: str
    document: DocumentModel
    claims: tuple[Claim, ...]
    is_made: bool = False
    """Whether a command wrote it, so that it holds nothing that a person wrote."""


class _ClaimsModel(FileEntry, frozen=True, kw_only=True):
    format_: Literal["aclnn-cts/claims/1"]
    operator: str
    document: DocumentModel
    claims: dict[Reference, Annotated[list[str], msgspec.Meta(min_length=1)]] = msgspec.field(default_factory=dict)
    untestable: dict[NotTestable, list[Reference]] = msgspec.field(default_factory=dict)
    open_: tuple[Reference, ...] = ()


def claims_path(folder: Path, stem: str) -> Path:
    """Where the claims of an operator lie: in `claims/` beside its spec."""
    return folder / "claims" / f"{stem}.yaml"


def edition_of(path: Path) -> str:
    """The edition of the spec whose clauses a claims file names; empty: the spec's own."""
    content = read_yaml(path).content
    document = content.get("document") if isinstance(content, dict) else None
    edition = document.get("edition") if isinstance(document, dict) else None
    return edition if isinstance(edition, str) else ""


def read_claims(path: Path, spec: Spec, *, is_replaced: bool = False) -> Claims:
    """Read and check a claims file; UsageError with every mistake, such as a clause that the spec lacks.

    `is_replaced`: it is written again. Then clauses of an older spec are left out of a made file.
    """
    file = read_yaml(path)
    model = checked_file(file, _ClaimsModel)
    problems = Problems(file)
    if model.operator != spec.operator:
        problems.add(("operator",), f"{quote(model.operator)}; expected {spec.operator}, the operator of {spec.path}")
    known = [clause.at for clause in spec.clauses]
    is_made = file.text.startswith(MADE)
    if is_made and is_replaced:
        kept = {name: [clause for clause in clauses if clause in known] for name, clauses in model.claims.items()}
        model = msgspec.structs.replace(model, claims=kept)
    for reference, clauses in model.claims.items():
        for number, clause in enumerate(clauses):
            problems.known(clause, known, ("claims", reference, number), "clause")
    claims = tuple(_claims(model))
    _check_once(claims, problems, file)
    if problems.messages:
        raise UsageError("\n".join(problems.sorted()))
    return Claims(model.operator, model.document, claims, is_made=is_made)


def _claims(model: _ClaimsModel) -> Iterator[Claim]:
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


class AuditState(str, Enum):
    """What an audit finds of one statement."""

    CLAIMED = "claimed"
    """Clauses encode it."""
    UNTESTABLE = "untestable"
    """The claims file says why no test can show it."""
    UNREAD = "unread"
    """The claims file says that this part of the document is not encoded yet."""
    DIFFERS = "differs"
    """Its fact is another one in the spec, and none of its clauses says so."""
    OPEN = "open"
    """Nobody has read it: the claims file lists it as open, or there is none."""
    NEW = "new"
    """The claims file, made for another edition, does not know it."""
    CHANGED = "changed"
    """Its text or its products are not those that were claimed."""
    GONE = "gone"
    """What the claims file names is no longer in the document."""


_DONE = frozenset({AuditState.CLAIMED, AuditState.UNTESTABLE})


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One statement of the document; or what the claims file (`GONE`) or the spec (`DIFFERS`) has in place of one."""

    state: AuditState
    address: str
    statement: Statement | None
    claim: Claim | None
    """What the claims file says of it, under this address or the one that it moved from."""
    differences: tuple[DocumentDifference, ...] = ()

    @property
    def is_missing(self) -> bool:
        """Whether a person has to look at it."""
        return self.state not in _DONE

    @property
    def moved_from(self) -> str | None:
        """The address in the claims file where it is another one; the text is the same."""
        return self.claim.address if self.claim is not None and self.claim.address != self.address else None


@dataclass(frozen=True, slots=True)
class Audit:
    """The statements of a document in order, then those that are gone, and what the spec alone states."""

    entries: tuple[AuditEntry, ...]
    is_same_edition: bool
    """Whether the claims were made for these very bytes."""

    def count(self, state: AuditState) -> int:
        """How many statements are in a state."""
        return sum(entry.state is state for entry in self.entries)

    @property
    def statements(self) -> int:
        """Statements of the document."""
        return sum(entry.statement is not None for entry in self.entries)

    @property
    def missing(self) -> tuple[AuditEntry, ...]:
        """What a person has to look at."""
        return tuple(entry for entry in self.entries if entry.is_missing)

    @property
    def share(self) -> float:
        """Share of the statements that are encoded or have a reason, among those and what the spec alone states."""
        done = sum(self.count(state) for state in _DONE)
        counted = sum(entry.state is not AuditState.GONE for entry in self.entries)
        return done / counted if counted else 0.0


def audit_claims(document: Document, claims: Claims | None, spec: Spec) -> Audit:
    """Hold the claims, and the facts of the spec, against a document. Without claims, every statement is open.

    A statement is found again by address and digest; else by its digest at another number of the same list or cell
    (it moved); else by its address (it changed).
    """
    left = list(claims.claims if claims is not None else ())
    found = _matched(document.statements, left)
    same = claims is not None and claims.document.sha256 == document.sha256
    differ = differences_by_address(find_differences(document, spec))
    audited = _Audited({clause.at: clause for clause in spec.clauses}, has_claims=claims is not None)
    entries = [
        audited.entry(item, found.get(item.address), differ.get(item.address, ())) for item in document.statements
    ]
    used = {id(claim) for claim in found.values()}
    entries += [AuditEntry(AuditState.GONE, claim.address, None, claim) for claim in left if id(claim) not in used]
    known = {item.address for item in document.statements}
    entries += [
        AuditEntry(AuditState.DIFFERS, address, None, None, items)
        for address, items in differ.items()
        if address not in known
    ]
    return Audit(tuple(entries), same)


def admits_doubt(clauses: Iterable[Clause]) -> bool:
    """Whether clauses that a statement is claimed by say that the document is in doubt there, or that nothing shows it.

    So much it takes where the fact of the spec is another one than the document's.
    """
    return any(clause.certainty != "stated" or clause.untestable is not None for clause in clauses)


@dataclass(frozen=True, slots=True)
class _Audited:
    clauses: Mapping[str, Clause]
    """Those of the spec by address."""
    has_claims: bool

    def entry(self, statement: Statement, claim: Claim | None, differ: tuple[DocumentDifference, ...]) -> AuditEntry:
        clauses = [self.clauses[at] for at in claim.clauses] if claim is not None else []
        if claim is None:
            state = AuditState.NEW if self.has_claims else AuditState.OPEN
        elif not claim.reference.endswith(f"#{statement.digest}"):
            state = AuditState.CHANGED
        elif differ and claim.reason is None and not admits_doubt(clauses):
            state = AuditState.DIFFERS
        elif claim.is_open:
            state = AuditState.OPEN
        elif claim.is_unread or any(clause.reason == NotTestable.UNREAD for clause in clauses):
            state = AuditState.UNREAD
        else:
            state = AuditState.UNTESTABLE if claim.reason is not None else AuditState.CLAIMED
        return AuditEntry(state, statement.address, statement, claim, differ)


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
