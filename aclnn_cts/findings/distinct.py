"""The findings of a campaign, each fault once: what it keeps and looks into, grouped as the failures of a run are."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from operator import itemgetter

import msgspec

from aclnn_cts.findings.finding import Confirmed, Finding
from aclnn_cts.findings.fingerprint import grouped_findings

_SHOWS = (
    Confirmed.ALWAYS,
    Confirmed.DEVICE,
    Confirmed.ORDER,
    Confirmed.FLAKY,
    Confirmed.UNKNOWN,
    Confirmed.WAITING,
)
"""What shows a fault best comes first."""


def distinct(findings: Iterable[Finding]) -> list[Finding]:
    """One for each group of failures, with the failures of the whole group; in the given order.

    What a campaign keeps as one and looks like two faults is given twice.
    """
    found = list(findings)
    shown = [(number, item) for number, item in enumerate(found) if not item.fingerprints]
    for group in grouped_findings(found):
        inside = frozenset(group.fingerprints)
        members = [
            number
            for number, item in enumerate(found)
            if item.waiver == group.waiver and any(each in inside for each, _ in item.fingerprints)
        ]
        best = min(members, key=lambda number: _order(found[number]))
        shown.append((best, msgspec.structs.replace(found[best], failures=group.failures)))
    return [item for _, item in sorted(shown, key=itemgetter(0))]


def represented(findings: Collection[Finding]) -> Finding:
    """Of findings that are one fault, the one that shows it best, with the failures of all of them."""
    best = min(findings, key=_order)
    return msgspec.structs.replace(best, failures=sum(item.failures for item in findings))


def _order(finding: Finding) -> tuple[int, bool, bool]:
    tells_calls = finding.trial is not None and bool(finding.trial.after)
    return _SHOWS.index(finding.confirmed), not tells_calls, not finding.shrunk
