"""Is every statement of a document encoded? A claims file is held against the document, in any edition."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from aclnn_cts.document.claims import Claim, Claims
from aclnn_cts.document.model import Document, Statement


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
