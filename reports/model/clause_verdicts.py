"""The verdict on each clause, from what the trials of its constraints, check or example say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from aclnn_cts.core.verdict import TWIN_FAILED, SkipReason
from aclnn_cts.reports.model.attribution import OTHER_CALLS, PLAIN_CALL, VALUES, EvidenceCounts
from aclnn_cts.reports.model.clause_corners import corners_of
from aclnn_cts.reports.model.clause_evidence import ClauseEvidence
from aclnn_cts.speclang.kinds import Strength
from aclnn_cts.speclang.model import Clause, Spec
from aclnn_cts.store.counts import ConstraintCount, CornerCount


class ClauseVerdict:
    """What the trials say of a clause (values of `ClauseRow.verdict`)."""

    MET = "met"
    PART = "part"
    """Met, but at some corners of the document no values were judged."""
    CONTRADICTED = "contradicted"
    UNTESTED = "untested"
    OPEN = "open"
    """The document leaves it open: whatever an implementation does, it keeps it."""


class UntestedReason:
    """Why no trial says anything of a clause (values of `ClauseRow.reason`)."""

    UNREACHABLE = "unreachable"
    """No test can show it; the spec says why."""
    NOT_RUN = "not run"
    """No trial of its operator, or of its check, was planned."""
    PRODUCT = "other product"
    """It, or its constraints, are stated for other products than those that were run."""
    CONDITION = "condition not met"
    """No trial met its condition."""
    SKIPPED = "skipped"
    """Its trials have no verdict; `ClauseRow.skipped` counts the reasons."""
    MOSTLY = "mostly skipped"
    """Most of its trials have no verdict."""
    TWIN_FAILED = "valid twin failed"
    """The valid twins of most of its broken calls failed."""
    PLAIN_CALL = "plain call"
    """Most of its trials show failures that the plain call has too."""
    OTHER_CALLS = "other calls"
    """Most of its trials show failures that calls have too which it is not about."""
    OPEN_ELEMENTS = "open elements"
    """More than 20 % of the elements of a dtype are open."""
    ONE_SIDE = "one side"
    """A constraint of it was never broken, or never held."""


BY_WEIGHT = (
    ClauseVerdict.CONTRADICTED,
    ClauseVerdict.UNTESTED,
    ClauseVerdict.PART,
    ClauseVerdict.MET,
    ClauseVerdict.OPEN,
)
"""The verdict on a clause of several operators is the first of these that it has for any of them."""

_REASONS = {
    TWIN_FAILED: UntestedReason.TWIN_FAILED,
    PLAIN_CALL: UntestedReason.PLAIN_CALL,
    OTHER_CALLS: UntestedReason.OTHER_CALLS,
}


@dataclass(slots=True)
class JudgedClause:
    """The verdict on a clause, and what it rests on."""

    verdict: str
    reason: str = ""
    """Of an untested clause."""
    said: EvidenceCounts = field(default_factory=EvidenceCounts)
    held: int = 0
    """Trials whose case keeps it (of a constraint) or meets its condition (of a check)."""
    broken: int = 0
    """Trials whose case breaks its constraints."""
    corners: int = 0
    """Corners of the document that it has to be met at; with one of several products, they count once."""
    missed_corners: tuple[str, ...] = ()
    """Those of them at which no values were judged, on one of the products at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClauseVerdicts:
    """The verdicts on the clauses of one operator that a run has in scope."""

    spec: Spec
    interface: Mapping[str, Clause]
    """The clauses of the two-phase interface by address."""
    speakers: ClauseEvidence
    sides: Mapping[str, Mapping[str, ConstraintCount]]
    """By product and constraint: trials whose case holds it, and whose case breaks it."""
    corners: Mapping[str, Mapping[str, CornerCount]]
    """By product and corner: calls at it."""
    products: frozenset[str]
    """Those that were run."""

    def of(self, clause: Clause, *, prefix: str = "") -> JudgedClause:
        """The verdict on one clause; `prefix` is that of its constraints' ids."""
        if clause.untestable is not None:
            return JudgedClause(ClauseVerdict.UNTESTED, UntestedReason.UNREACHABLE)
        if not any(map(clause.applies_to, self.products)):
            return JudgedClause(ClauseVerdict.UNTESTED, UntestedReason.PRODUCT)
        if clause.interface is not None:
            return self.of(self.interface[clause.interface], prefix="interface.")
        if clause.constraints:
            return self._at_corners(
                clause, self._by_constraints(clause, [prefix + name for name in clause.constraints])
            )
        if clause.example is not None:
            return _by_trials(self.speakers.by_example.get(clause.example, EvidenceCounts()), condition=False)
        found = _by_trials(self.speakers.evidence_for(clause), condition=clause.when is not None)
        if found.verdict == ClauseVerdict.MET and clause.check == VALUES and self.speakers.is_mostly_open(clause):
            found.verdict, found.reason = ClauseVerdict.UNTESTED, UntestedReason.OPEN_ELEMENTS
        return self._at_corners(clause, found)

    def _at_corners(self, clause: Clause, found: JudgedClause) -> JudgedClause:
        """A clause that is met is so at its corners."""
        if found.verdict == ClauseVerdict.MET:
            products = sorted(filter(clause.applies_to, self.products))
            counts = [corners_of(clause, self.spec, self.corners.get(product, {})) for product in products]
            missed = dict.fromkeys(text for mine in counts for text, count in mine.items() if not count.judged)
            found.corners, found.missed_corners = len({text for mine in counts for text in mine}), tuple(missed)
            found.verdict = ClauseVerdict.PART if missed else ClauseVerdict.MET
        return found

    def _by_constraints(self, clause: Clause, names: Iterable[str]) -> JudgedClause:
        items = [self.spec.constraint(name) for name in names]
        products = [product for product in self.products if clause.applies_to(product)]
        stated = [item for item in items if any(map(item.applies_to, products))]
        if not stated:
            return JudgedClause(ClauseVerdict.UNTESTED, UntestedReason.PRODUCT)
        found = JudgedClause(ClauseVerdict.MET)
        reasons = []
        for item in stated:
            said = self.speakers.evidence_for_constraint(item.id, clause)
            sides = [self.sides.get(product, {}).get(item.id, ConstraintCount()) for product in products]
            held = sum(side.held for side in sides)
            found.said.include(said)
            found.held += held
            found.broken += sum(side.broken for side in sides)
            if item.strength == Strength.OPEN or (_is_judged(said) and held):
                continue
            skipped = UntestedReason.SKIPPED if said.skipped else UntestedReason.ONE_SIDE
            reasons.append(_aside_reason(said) if said.aside and not _is_judged(said) else skipped)
        if found.said.failed:
            found.verdict = ClauseVerdict.CONTRADICTED
        elif all(item.strength == Strength.OPEN for item in stated):
            found.verdict = ClauseVerdict.OPEN
        elif reasons:
            found.verdict, found.reason = ClauseVerdict.UNTESTED, reasons[0]
        return found


def _by_trials(said: EvidenceCounts, *, condition: bool) -> JudgedClause:
    found = JudgedClause(ClauseVerdict.MET, said=said, held=said.trials)
    if said.failed:
        found.verdict = ClauseVerdict.CONTRADICTED
    elif _is_judged(said):
        pass
    elif said.skipped and not said.aside:
        found.verdict = ClauseVerdict.OPEN
    else:
        found.verdict = ClauseVerdict.UNTESTED
        nothing = UntestedReason.CONDITION if condition else UntestedReason.NOT_RUN
        found.reason = _aside_reason(said) if said.aside else nothing
    return found


def _is_judged(said: EvidenceCounts) -> bool:
    """Whether at least half of the trials that would have said something did."""
    return said.judged > 0 and said.judged >= said.aside


def _aside_reason(said: EvidenceCounts) -> str:
    """Why most trials were set aside: the commonest reason."""
    reasons = {reason: number for reason, number in said.skipped.items() if reason != SkipReason.OPEN}
    commonest = max(reasons, key=lambda reason: (reasons[reason], reason))
    if commonest in _REASONS:
        return _REASONS[commonest]
    return UntestedReason.MOSTLY if said.judged else UntestedReason.SKIPPED
