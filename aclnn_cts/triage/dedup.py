"""The failures of runs by finding, a card of the report each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from aclnn_cts.core.faults import gravest, severity
from aclnn_cts.core.fingerprint import Beside, Fingerprint, GroupedFinding
from aclnn_cts.core.verdict import ALONE_FACT, Record
from aclnn_cts.findings.dedup_key import gravity, is_related
from aclnn_cts.findings.finding import Finding
from aclnn_cts.findings.fingerprint import indexed
from aclnn_cts.store.record_codec import key_text
from aclnn_cts.trials.confirm import preference

SECOND_ORACLE = "second oracle"
"""Key of the fact that says what the second oracle said (`execution.second_opinion`)."""


@dataclass(slots=True, eq=False)
class Member:
    """Failures of one run that have everything in common by which findings are told apart."""

    run: int
    stored: Fingerprint
    """As the run keeps it: the name of their trial file follows from it."""
    check: str
    """Of the trials."""
    kind: str
    waiver: str
    fingerprint: Fingerprint
    related: bool
    """Whether it is of a law, a life cycle or a broken call, which one of its calls may explain. Not of a campaign,
    which has made these calls again one by one."""
    smallest: Record
    number: int = 0
    sorts: set[tuple[str, str, str]] = field(default_factory=set)
    """Check, mode and dtype of the trials."""
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
        self.sorts.add((self.check, record.verdict.mode, record.fingerprint.dtype))
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
    known: dict[tuple[int, Fingerprint, str, Fingerprint, str], Member] = field(default_factory=dict)

    def add(self, record: Record, run: int) -> Member:
        """Count a failure of the run of that number."""
        found = record.fingerprint
        key = (run, record.key, record.trial.check, found, record.waiver)
        member = self.known.get(key)
        if member is None:
            campaign = run in self.campaigns
            member = self.known[key] = Member(
                run=run,
                stored=record.key,
                check=record.trial.check,
                kind=record.verdict.kind,
                waiver=record.waiver,
                fingerprint=found,
                related=not campaign and is_related(found),
                smallest=record,
                of_campaign=campaign,
            )
        member.add(record)
        return member


@dataclass(slots=True)
class Failures:
    """All failures of one finding, which is one card."""

    key: Fingerprint
    """Of the most frequent ones."""
    members: list[Member] = field(default_factory=list)
    """Those that one call shows."""
    joined: list[Member] = field(default_factory=list)
    """Those of laws, life cycles and broken calls, where `members` has others."""
    hidden: Beside | None = None
    """What they are, where a graver fault or another output comes first in their verdicts."""

    def __iter__(self) -> Iterator[Member]:
        """All members."""
        return iter((*self.members, *self.joined))

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
        """The code of the gravest fault, or of what others hide."""
        if self.hidden is not None:
            return self.hidden.kind
        known = [item.finding.kind for item in self.members if item.finding is not None and item.finding.kind]
        return gravest((*known, *(item.kind for item in self.members)))

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


def by_finding(members: Iterable[Member], found: Sequence[GroupedFinding]) -> list[Failures]:
    """The members of runs by the findings of these runs, a card each; `found` has the fingerprints of all of them."""
    place = indexed(found)
    inside: dict[int, list[Member]] = {}
    for item in members:
        inside.setdefault(place(item.waiver, item.fingerprint), []).append(item)
    return [_failures(given, found[number].hidden) for number, given in sorted(inside.items())]


def _failures(members: Sequence[Member], hidden: Beside | None) -> Failures:
    alone = [item for item in members if not item.related] or [*members]
    numbers: Counter[Fingerprint] = Counter()
    for item in alone:
        numbers[item.stored] += item.number
    most = max(numbers, key=lambda key: (numbers[key], key_text(key)))
    joined = [item for item in members if item not in alone]
    return Failures(most, members=alone, joined=joined, hidden=hidden)


def finding_ids(failures: Sequence[Failures]) -> dict[str, Failures]:
    """By `F1`, `F2`, ...: unwaived ones first, then the gravest, then the most frequent."""

    def order(entry: Failures) -> tuple[bool, int, int, str, list[str]]:
        waivers = sorted({item.waiver for item in entry})
        grave = severity(entry.kind).order
        return entry.waived == entry.number, grave, -entry.number, key_text(entry.key), waivers

    return {f"F{number}": entry for number, entry in enumerate(sorted(failures, key=order), start=1)}
