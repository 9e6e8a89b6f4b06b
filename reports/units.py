"""What a test in CI is: one promise of an operator, and one constraint that is broken.

A run has too many trials to be tests by themselves; each test carries its counts, and its findings where it fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from aclnn_cts.core.acceptance import Acceptance, Ends, FindingCard
from aclnn_cts.reports.text import phrase

__all__ = ["TestUnit", "counts_line", "finding_text", "test_units"]

_BY_CONSTRAINT = "status"
"""The promise that is told constraint by constraint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestUnit:
    """One test: `failed` where a failure is not waived, `error` without a fault, `skipped` where nothing was judged."""

    __test__ = False

    operator: str
    name: str
    ends: Ends
    findings: tuple[FindingCard, ...]

    @property
    def state(self) -> str:
        """`passed`, `failed`, `error` or `skipped`."""
        if self.ends.unwaived:
            return "failed"
        if self.ends.errors:
            return "error"
        return "passed" if self.ends.judged else "skipped"

    @property
    def unwaived(self) -> tuple[FindingCard, ...]:
        """The findings that make it fail."""
        return tuple(card for card in self.findings if card.waived < card.number)


def test_units(report: Acceptance) -> Iterator[TestUnit]:
    """All tests, operator by operator."""
    cards = {card.id: card for card in report.findings}
    for row in report.promises:
        if row.promise != _BY_CONSTRAINT:
            yield TestUnit(
                operator=row.operator,
                name=row.promise,
                ends=row.ends,
                findings=tuple(cards[name] for name in row.findings),
            )
            continue
        for entry in report.constraints:
            if entry.operator == row.operator and entry.ends.planned:
                yield TestUnit(
                    operator=row.operator,
                    name=f"{row.promise}/{entry.id}",
                    ends=entry.ends,
                    findings=tuple(cards[name] for name in entry.findings),
                )


test_units.__test__ = False  # type: ignore[attr-defined]


def counts_line(ends: Ends) -> str:
    """The counts on one line, with every reason to skip."""
    text = (
        f"trials={ends.planned} passed={ends.passed} failed={ends.failed} waived={ends.waived} errors={ends.errors}"
        f" skipped={ends.skipped}"
    )
    reasons = ", ".join(f"{reason}: {number}" for reason, number in ends.reasons.items())
    return f"{text} ({reasons})" if reasons else text


def finding_text(card: FindingCard) -> str:
    """A finding for a log: what, how often, the smallest case, and how to see it again."""
    lines = [
        f"{card.id} {card.severity}: {card.kind}" + (f" of {card.output}" if card.output else ""),
        phrase(f"fault.{card.kind}", "en"),
        card.message,
        f"{card.number} of {card.of} judged trials" + (f", {card.waived} waived" if card.waived else ""),
        *(f"  {name}: {value}" for name, value in card.case),
        *(
            f"worst {element.output}{list(element.index)}: got {element.got}, expected {element.expected}, "
            f"bound {element.bound:.4g}"
            for element in card.worst
        ),
        f"replay: {card.replay}",
    ]
    return "\n".join(lines)
