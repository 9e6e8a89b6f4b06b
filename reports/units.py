"""What a test in CI is: one check of an operator, and one constraint that is broken.

A run has too many trials to be tests by themselves; each test carries its counts, and its findings where it fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from aclnn_cts.core.fault_words import fault_name
from aclnn_cts.core.verdict import RunVerdict
from aclnn_cts.reports.model.acceptance import Acceptance
from aclnn_cts.reports.model.acceptance_findings import FindingCard
from aclnn_cts.reports.text import phrase
from aclnn_cts.store.counts import Counts

RUNS = "aclnn-cts"
"""Stands where an operator's name stands, for the tests that the runs as a whole are."""

_BY_CONSTRAINT = "status"
"""The check that is told constraint by constraint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestUnit:
    """One test: `failed` where a failure is not waived, `error` without a fault, `skipped` where nothing was judged."""

    __test__ = False

    operator: str
    name: str
    ends: Counts
    findings: tuple[FindingCard, ...]
    violations: tuple[str, ...] = ()
    """Of a run as a whole: why it fails whatever its trials say."""
    problems: tuple[str, ...] = ()
    """Of a run as a whole: why it says nothing."""

    @property
    def state(self) -> str:
        """`passed`, `failed`, `error` or `skipped`."""
        if self.violations:
            return "failed"
        if self.problems:
            return "error"
        if self.ends.unwaived and self.operator != RUNS:
            return "failed"
        if self.ends.errors and self.operator != RUNS:
            return "error"
        return "passed" if self.ends.judged else "skipped"

    @property
    def unwaived(self) -> tuple[FindingCard, ...]:
        """The findings that make it fail."""
        return tuple(card for card in self.findings if card.waived < card.number)


def test_units(report: Acceptance) -> Iterator[TestUnit]:
    """Each run as a whole, then all tests operator by operator."""
    for run in report.runs:
        said = (*run.problems, *run.discrepancies)
        if run.conclusion.verdict == RunVerdict.INCONCLUSIVE:
            reasons = (f"{row.number} {row.text}; such as {row.example}" for row in run.conclusion.reasons)
            said = (*(note.text for note in run.conclusion.causes), *reasons)
        yield TestUnit(
            operator=RUNS,
            name=f"run {run.name}",
            ends=run.ends,
            findings=(),
            violations=run.violations,
            problems=said,
        )
    cards = {card.id: card for card in report.findings}
    for row in report.checks:
        if row.check != _BY_CONSTRAINT:
            yield TestUnit(
                operator=row.operator,
                name=row.check,
                ends=row.ends,
                findings=tuple(cards[name] for name in row.findings),
            )
            continue
        for entry in report.constraints:
            if entry.operator == row.operator and entry.ends.cases:
                yield TestUnit(
                    operator=row.operator,
                    name=f"{row.check}/{entry.id}",
                    ends=entry.ends,
                    findings=tuple(cards[name] for name in entry.findings),
                )


# Else pytest takes it for a test where a test imports it.
test_units.__test__ = False  # type: ignore[attr-defined]  # mypy knows functions without attributes alone


def counts_line(ends: Counts) -> str:
    """The counts on one line, with every reason to skip."""
    text = (
        f"trials={ends.cases} passed={ends.passed} failed={ends.failed} waived={ends.waived} errors={ends.errors}"
        f" skipped={ends.skipped} out_of_scope={ends.out_of_scope}"
    )
    reasons = ", ".join(f"{name}: {number}" for name, number in (*ends.reasons.items(), *ends.outside.items()))
    return f"{text} ({reasons})" if reasons else text


def _often(card: FindingCard) -> Iterator[str]:
    for run, finding in card.campaigns:
        failures, executions = finding.alone
        alone = f" ({failures} of {executions} alone)" if executions else ""
        said = finding.confirmed or "not run again by itself"
        yield f"{finding.failures} failures in the campaign {run}: {said}{alone}"
    if len(card.campaigns) < len(card.runs):
        yield f"{card.number} of {card.of} judged trials"
    yield f"met in {_counted(card.by_check(joined=False))}"
    if joined := card.by_check(joined=True):
        yield f"looks the same in {_counted(joined)}; their calls were not made again one by one"
    if card.waived:
        yield f"{card.waived} of {card.number} recorded failures are waived"


def _counted(checks: Mapping[str, int]) -> str:
    return ", ".join(f"{name} ({number})" for name, number in checks.items())


def finding_text(card: FindingCard) -> str:
    """A finding for a log: what, how often, the smallest case, and how to see it again."""
    lines = [
        f"{card.id} {card.severity}: {fault_name(card.kind)}" + (f" of {card.output}" if card.output else ""),
        phrase(f"fault.{card.kind}", "en"),
        card.message,
        *([f"what failures share: {card.shared.en}"] if card.shared is not None else ()),
        *_often(card),
        *(f"  {name}: {value}" for name, value in card.case),
        *(
            f"worst {element.place}: got {element.got}, expected {element.expected}, bound {element.bound:.4g}"
            for element in card.record.verdict.deviations
        ),
        f"replay: {card.replay}",
    ]
    return "\n".join(lines)
