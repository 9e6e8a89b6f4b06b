"""The verdict on each clause, from what the trials said of the constraint or promise that encodes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from aclnn_cts.core.acceptance_rows import ClauseRow, ClauseVerdict, UntestedReason
from aclnn_cts.core.verdict import Skip
from aclnn_cts.engine.acceptance.said import OTHER_CALLS, PLAIN_CALL, Said
from aclnn_cts.engine.acceptance.speakers import Speakers
from aclnn_cts.engine.acceptance.together import Member
from aclnn_cts.engine.counts import ConstraintCount
from aclnn_cts.spec.kinds import Strength
from aclnn_cts.spec.model import Clause, Spec

__all__ = ["ClauseJudge", "interface_rows", "with_specific"]

_EVIDENCE = 5
_REASONS = {PLAIN_CALL: UntestedReason.PLAIN_CALL, OTHER_CALLS: UntestedReason.OTHER_CALLS}


@dataclass(slots=True)
class _Found:
    verdict: str
    reason: str = ""
    said: Said = field(default_factory=Said)
    held: int = 0
    broken: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClauseJudge:
    """What the runs say of the clauses of one operator; `speakers` is None where no run has it in scope."""

    spec: Spec
    interface: Mapping[str, Clause]
    """The clauses of the two-phase interface by address."""
    speakers: Speakers | None
    sides: Mapping[str, ConstraintCount]
    """By constraint: trials whose case holds it, and whose case breaks it."""
    products: frozenset[str]
    """Those that were run."""
    findings: Mapping[Member, str]
    """Ids of findings."""

    def rows(self) -> tuple[ClauseRow, ...]:
        """Every clause of the document, in its order."""
        return tuple(self.row(clause, self.spec.operator) for clause in self.spec.clauses)

    def row(self, clause: Clause, operator: str) -> ClauseRow:
        """One clause."""
        found = self._found(clause, prefix="" if operator else "interface.")
        said = found.said
        return ClauseRow(
            operator=operator,
            at=clause.at,
            en=clause.en,
            zh=clause.zh,
            certainty=clause.certainty,
            encoding=next(
                name
                for name in ("constraints", "promise", "interface", "example", "untestable")
                if getattr(clause, name)
            ),
            constraints=clause.constraints,
            promise=clause.promise or "",
            condition=clause.when_text or "",
            faults=clause.faults,
            interface=clause.interface or "",
            untestable=clause.untestable,
            contradicts=clause.contradicts,
            verdict=found.verdict,
            reason=found.reason,
            in_scope=self.speakers is not None,
            held=found.held,
            broken=found.broken,
            passed=said.passed,
            failed=said.failed,
            waived=said.waived,
            otherwise=said.otherwise,
            skipped=dict(sorted(said.skipped.items())),
            evidence=tuple([*said.bad, *said.good][:_EVIDENCE]),
            findings=_sum({self.findings[member]: number} for member, number in said.findings.items()),
        )

    def _found(self, clause: Clause, *, prefix: str) -> _Found:
        if clause.untestable is not None:
            return _Found(ClauseVerdict.UNTESTED, UntestedReason.UNREACHABLE)
        if self.speakers is None:
            return _Found(ClauseVerdict.UNTESTED, UntestedReason.NOT_RUN)
        if clause.interface is not None:
            return self._found(self.interface[clause.interface], prefix="interface.")
        if clause.constraints:
            return self._by_constraints([prefix + name for name in clause.constraints], self.speakers)
        if clause.example is not None:
            return _by_trials(self.speakers.by_example.get(clause.example, Said()), condition=False)
        return _by_trials(self.speakers.said_of(clause), condition=clause.when is not None)

    def _by_constraints(self, names: Iterable[str], speakers: Speakers) -> _Found:
        items = [self.spec.constraint(name) for name in names]
        stated = [item for item in items if any(map(item.applies_to, self.products))]
        if not stated:
            return _Found(ClauseVerdict.UNTESTED, UntestedReason.PRODUCT)
        found = _Found(ClauseVerdict.MET)
        reasons = []
        for item in stated:
            said = speakers.said_of_constraint(item.id)
            side = self.sides.get(item.id, ConstraintCount())
            found.said.include(said)
            found.held += side.held
            found.broken += side.broken
            if item.strength == Strength.OPEN or (_is_judged(said) and side.held):
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


def _by_trials(said: Said, *, condition: bool) -> _Found:
    found = _Found(ClauseVerdict.MET, said=said, held=said.trials)
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


def _is_judged(said: Said) -> bool:
    """Whether at least half of the trials that would have said something did."""
    return said.judged > 0 and said.judged >= said.aside


def _aside_reason(said: Said) -> str:
    """Why most trials were set aside: the commonest reason."""
    reasons = {reason: number for reason, number in said.skipped.items() if reason != Skip.OPEN}
    commonest = max(reasons, key=lambda reason: (reasons[reason], reason))
    if commonest in _REASONS:
        return _REASONS[commonest]
    return UntestedReason.MOSTLY if said.judged else UntestedReason.SKIPPED


def interface_rows(clauses: Sequence[Clause], judges: Sequence[ClauseJudge]) -> tuple[ClauseRow, ...]:
    """The clauses of the interface over all operators in scope: met where each of them meets it or leaves it open."""
    rows = []
    for clause in clauses:
        each = [judge.row(clause, "") for judge in judges]
        merged = replace(
            each[0],
            held=sum(row.held for row in each),
            broken=sum(row.broken for row in each),
            passed=sum(row.passed for row in each),
            failed=sum(row.failed for row in each),
            waived=sum(row.waived for row in each),
            otherwise=sum(row.otherwise for row in each),
            skipped=_sum(row.skipped for row in each),
            evidence=tuple(name for row in each for name in row.evidence)[:_EVIDENCE],
            findings=_sum(row.findings for row in each),
        )
        verdicts = {row.verdict: row for row in each}
        for verdict in (ClauseVerdict.CONTRADICTED, ClauseVerdict.UNTESTED, ClauseVerdict.MET, ClauseVerdict.OPEN):
            if verdict in verdicts:
                rows.append(replace(merged, verdict=verdict, reason=verdicts[verdict].reason))
                break
    return tuple(rows)


def with_specific(rows: Sequence[ClauseRow]) -> tuple[ClauseRow, ...]:
    """The rows, each with the findings that it is the most specific clause of.

    One finding contradicts every clause that its trials speak for. What it is about shows where the largest part of a
    clause's judged trials fails with it.
    """
    largest: dict[str, float] = {}
    for row in rows:
        for name, number in row.findings.items():
            largest[name] = max(largest.get(name, 0.0), number / row.judged)
    return tuple(
        replace(
            row,
            specific=tuple(name for name, number in row.findings.items() if number / row.judged >= largest[name]),
        )
        if row.findings
        else row
        for row in rows
    )


def _sum(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for entry in counts:
        for reason, number in entry.items():
            total[reason] = total.get(reason, 0) + number
    return dict(sorted(total.items()))
