"""Which failures a report puts on one card: as a campaign puts them together, as far as records tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from aclnn_cts.checks.laws import PREFIX
from aclnn_cts.checks.life_cycle import LIFE_CYCLES, RepeatedFailure
from aclnn_cts.core.faults import Family, Fault, severity
from aclnn_cts.core.verdict import Record, Signature
from aclnn_cts.findings.finding import Finding
from aclnn_cts.findings.signature import bucketed, gravity, kind_of, symptom, together
from aclnn_cts.store.record_codec import signature_key
from aclnn_cts.trials.confirm import ALONE_FACT, preference

__all__ = ["SECOND_ORACLE", "Failures", "Member", "Members", "finding_ids", "put_together"]

_ACCEPTED = Fault.of(Family.ACCEPTED)

SECOND_ORACLE = "second oracle"
"""Key of the fact that says what the second oracle said (`execution.second_opinion`)."""


@dataclass(slots=True, eq=False)
class Member:
    """Failures of one run that have everything in common by which findings are told apart."""

    run: int
    stored: Signature
    """As the run keeps it: the name of their trial file follows from it."""
    promise: str
    """Of the trials."""
    kind: str
    symptom: str
    waiver: str
    own: Signature
    """The finding that they are by themselves."""
    by_looks: Signature | None
    """The finding of one of their calls, where such a call fails in the same way; None for what makes one call, and
    for a campaign, which has made their calls again one by one."""
    smallest: Record
    number: int = 0
    sorts: set[tuple[str, str, str]] = field(default_factory=set)
    """Promise, mode and dtype of the trials."""
    dtypes: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By argument and dtype: the trials."""
    alone: Counter[str] = field(default_factory=Counter)
    second: Counter[str] = field(default_factory=Counter)
    finding: Finding | None = None
    """What a campaign, or `aclnn-cts shrink`, has found out of them."""
    of_campaign: bool = False

    def add(self, record: Record) -> None:
        """Count one, and keep it where it shows the failure better than any so far."""
        self.number += 1
        self.sorts.add((self.promise, record.verdict.mode, record.signature.dtype))
        self.dtypes.update((name, tensor.dtype) for name, tensor in record.trial.case.tensors())
        facts = record.verdict.facts
        if (alone := facts.get(ALONE_FACT)) is not None:
            self.alone[str(alone).partition(" (")[0]] += 1
        if (second := facts.get(SECOND_ORACLE)) is not None:
            self.second[str(second).partition(":")[0]] += 1
        if preference(record) < preference(self.smallest):
            self.smallest = record


@dataclass(slots=True)
class Members:
    """All members, by what they have in common. `campaigns` are the numbers of the runs that are campaigns."""

    campaigns: frozenset[int] = frozenset()
    known: dict[tuple[int, Signature, str, str, str, str], Member] = field(default_factory=dict)

    def add(self, record: Record, run: int) -> Member:
        """Count a failure of the run of that number."""
        looks = symptom(record)
        key = (run, record.signature, record.trial.promise, record.verdict.kind, looks, record.waiver)
        member = self.known.get(key)
        if member is None:
            campaign = run in self.campaigns
            member = self.known[key] = Member(
                run=run,
                stored=record.signature,
                promise=record.trial.promise,
                kind=record.verdict.kind,
                symptom=looks,
                waiver=record.waiver,
                own=record.signature if campaign else bucketed(record).signature,
                by_looks=None if campaign else _by_looks(msgspec.structs.replace(record.signature, symptom=looks)),
                smallest=record,
                of_campaign=campaign,
            )
        member.add(record)
        return member


def _by_looks(signature: Signature) -> Signature | None:
    """The finding of a call of a law, a life cycle or a broken call's twin that fails in the same way."""
    name, kind = signature.promise, signature.kind
    if isinstance(LIFE_CYCLES.get(name), RepeatedFailure):
        return together(msgspec.structs.replace(signature, promise="status"))
    if name not in LIFE_CYCLES and kind in _ACCEPTED:
        return None
    if name.startswith(PREFIX) or name in LIFE_CYCLES or signature.constraint:
        # Sides of a relation that a wrong call takes apart may be apart by any amount.
        kind = Fault.VALUE if kind == Fault.LAW else kind
        found = together(msgspec.structs.replace(signature, promise="values", constraint="", kind=kind))
        return found if found != together(signature) else None
    return None


@dataclass(slots=True)
class Failures:
    """All failures of one card."""

    signature: Signature
    """As campaigns have it."""
    members: list[Member] = field(default_factory=list)
    """Those that are this finding by themselves."""
    joined: list[Member] = field(default_factory=list)
    """Those that only look like it: laws, life cycles and broken calls, whose calls were not made again alone."""
    alike: list[Member] = field(default_factory=list)
    """Those that a campaign's finding stands for which shows only after other calls (`Finding.like`)."""

    def __iter__(self) -> Iterator[Member]:
        """All members."""
        return iter((*self.members, *self.joined, *self.alike))

    @property
    def number(self) -> int:
        """Of failures."""
        return sum(item.number for item in self)

    @property
    def waived(self) -> int:
        """Failures that a waiver speaks for."""
        return sum(item.number for item in self if item.waiver)

    @property
    def kinds(self) -> Counter[str]:
        """Failures by kind."""
        total: Counter[str] = Counter()
        for item in self:
            total[item.kind] += item.number
        return total

    @property
    def kind(self) -> str:
        """The kind of fault: the gravest where several are taken together."""
        known = [item.finding.kind for item in self.members if item.finding is not None]
        return kind_of(self.signature, (*(item.kind for item in self.members), *known))

    @property
    def runs(self) -> tuple[int, ...]:
        """The runs that met it."""
        return tuple(sorted({item.run for item in self}))

    @property
    def shown(self) -> Member:
        """The one whose smallest failure shows the finding best."""
        return min(self.members, key=lambda item: preference(item.smallest))

    @property
    def shrunk(self) -> Member | None:
        """The one with the smallest case that was shrunk, no milder than `shown`; None where none was."""
        grave = gravity(self.shown.kind)
        sized = [
            (item.finding.trial.case.nbytes, number)
            for number, item in enumerate(self.members)
            if item.finding is not None and item.finding.shrunk and item.finding.trial is not None
            if item.of_campaign or gravity(item.kind) <= grave
        ]
        return self.members[min(sized)[1]] if sized else None


def put_together(members: Iterable[Member]) -> list[Failures]:
    """Members by finding, a card each.

    What one waiver speaks for stands apart from what another one does, and from what none does. A member that looks
    like what a call of its own run does by itself joins it, unless it is graver.
    """
    gravest: dict[tuple[int, Signature, str], int] = {}
    found: dict[tuple[Signature, str], Failures] = {}
    for item in sorted(members, key=_order):
        waiver, rank, looks = _waiver(item), severity(item.kind).order, item.by_looks
        if (like := _like(item)) is not None and (like, waiver) in found:
            found[like, waiver].alike.append(item)
            continue
        if looks is not None and gravest.get((item.run, looks, waiver), rank + 1) <= rank:
            found[looks, waiver].joined.append(item)
            continue
        found.setdefault((item.own, waiver), Failures(item.own)).members.append(item)
        key = (item.run, item.own, waiver)
        gravest[key] = min(gravest.get(key, rank), rank)
    return list(found.values())


def _order(member: Member) -> int:
    """What makes one call first, then what may join that, then what may join a call that must be refused."""
    if _like(member) is not None:
        return 3
    return 0 if member.by_looks is None else 1 if member.by_looks.promise == "values" else 2


def _like(member: Member) -> Signature | None:
    return member.finding.like if member.finding is not None else None


def _waiver(member: Member) -> str:
    """The waiver by which it stands apart; a campaign's finding, of which few records are kept, stays whole."""
    if member.of_campaign and member.finding is not None:
        return member.finding.waiver
    return member.waiver


def finding_ids(failures: Sequence[Failures]) -> dict[str, Failures]:
    """By `F1`, `F2`, ...: unwaived ones first, then the gravest, then the most frequent."""

    def order(entry: Failures) -> tuple[bool, int, int, str, list[str]]:
        waivers = sorted({item.waiver for item in entry})
        grave = severity(entry.kind).order
        return entry.waived == entry.number, grave, -entry.number, signature_key(entry.signature), waivers

    return {f"F{number}": entry for number, entry in enumerate(sorted(failures, key=order), start=1)}
