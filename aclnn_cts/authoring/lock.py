"""The claims file as a lock: what the spec claims, then what is plain; what neither settles is open.

For one document and one spec it is always the same, so it is written by a command and never by hand. In another edition
statements change and move: there the claims that still hold are carried along, and the spec is corrected after them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from aclnn_cts.authoring.agreement import DocumentDifference, differences_by_address, find_differences
from aclnn_cts.authoring.claims import Audit, AuditEntry, AuditState, Claim, Claims, admits_doubt
from aclnn_cts.authoring.model import Document, Statement
from aclnn_cts.authoring.proposals import propose_claims
from aclnn_cts.speclang.model import Spec


def lock_claims(document: Document, spec: Spec, former: Claims | None, audit: Audit) -> tuple[Claim, ...]:
    """A claim for each statement, some open.

    `former` is the claims file at hand, and `audit` holds it against the document. A file that was written by hand
    keeps what neither the spec nor the document's facts settle.
    """
    plain = propose_claims(document, spec)
    if former is not None and not audit.is_same_edition:
        return tuple(_carried(entry, plain) for entry in audit.entries if entry.statement is not None)
    by_hand = {claim.address: claim for claim in former.claims} if former is not None and not former.is_made else {}
    differ = differences_by_address(find_differences(document, spec))
    claims = (_settled(statement, spec, plain, differ) for statement in document.statements)
    return tuple(by_hand.get(claim.address, claim) if claim.is_open else claim for claim in claims)


def _carried(entry: AuditEntry, plain: Mapping[str, Claim]) -> Claim:
    """What the claims file of another edition still says of a statement; what changed is left to a person."""
    if entry.statement is None:
        raise TypeError(f"{entry.address}: is gone, so there is nothing to claim")
    if entry.claim is not None and not entry.is_missing:
        return Claim(entry.statement.reference, entry.claim.clauses, entry.claim.reason)
    proposed = plain.get(entry.address) if entry.state is not AuditState.CHANGED else None
    return proposed or Claim(entry.statement.reference)


def _settled(
    statement: Statement, spec: Spec, plain: Mapping[str, Claim], differ: Mapping[str, tuple[DocumentDifference, ...]]
) -> Claim:
    """What the spec claims of a statement, else what is plain.

    Where their facts differ and no clause says so, the statement is left open.
    """
    said, proposed = spec.claims.get(statement.address), plain.get(statement.address)
    if said is None:
        return proposed or Claim(statement.reference)
    named = {*said.clauses, *(proposed.clauses if said.is_plain and proposed is not None else ())}
    clauses = [clause for clause in spec.clauses if clause.at in named]
    if said.reason is None and statement.address in differ and not admits_doubt(clauses):
        return Claim(statement.reference)
    return Claim(statement.reference, tuple(clause.at for clause in clauses), said.reason)


def outdated_claims(document: Document, spec: Spec, claims: Claims) -> Iterator[Claim]:
    """Claims of the spec that the claims file, made of this very document, does not have."""
    held = {claim.reference: claim for claim in claims.claims}
    plain, differ = propose_claims(document, spec), differences_by_address(find_differences(document, spec))
    for statement in document.statements:
        if statement.address in spec.claims:
            claim, other = _settled(statement, spec, plain, differ), held.get(statement.reference)
            if other is None or (set(other.clauses), other.reason) != (set(claim.clauses), claim.reason):
                yield claim


def unmatched_claims(document: Document, spec: Spec) -> tuple[str, ...]:
    """Entries of the spec's claims that name no statement of a document."""
    known = {statement.address for statement in document.statements}
    entries: dict[str, bool] = {}
    for address, claim in spec.claims.items():
        entries[claim.entry] = entries.get(claim.entry, False) or address in known
    return tuple(entry for entry, is_known in entries.items() if not is_known)
