"""A finding of a campaign: one fault as far as can be told, confirmed, shrunk, and kept with few examples."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from aclnn_cts.core.faults import Fault
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Record, Signature
from aclnn_cts.findings.signature import VALUE_KINDS

__all__ = ["EXAMPLES", "FINDING_STATE", "Confirmed", "Finding", "distinct", "put_together"]

FINDING_STATE = "finding/"
"""What the keys of findings in a store's state begin with; the name of the finding's trial file follows."""

EXAMPLES = 25
"""Records that a finding keeps; the failures after them are counted."""


class Confirmed:
    """What became of a finding's trial when it was run again, alone and in a fresh process (`Finding.confirmed`)."""

    WAITING = ""
    ALWAYS = "always"
    FLAKY = "flaky"
    """It failed in some repetitions alone, or was never seen again."""
    ORDER = "order-dependent"
    """It fails again after the calls that came before it, and not alone."""
    DEVICE = "only on this device"
    """It fails always where it was found, and never on another device."""
    UNKNOWN = "not confirmed"
    """It could not be run again; `note` says why."""


class Finding(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One fault as far as can be told, and what is known of it."""

    signature: Signature
    kind: str = ""
    """The gravest kind of fault among its failures, which `signature` may take several of together."""
    failures: int = 0
    """Trials that failed like this."""
    examples: int = 0
    """How many of them are kept as records."""
    chunk: int = 0
    """The chunk that met it first."""
    slot: str = ""
    """The worker that met it first."""
    device: str = ""
    """The worker's device, where workers have devices of their own."""
    seconds: float = 0.0
    """Into the campaign."""
    waiver: str = ""
    confirmed: str = Confirmed.WAITING
    alone: tuple[int, int] = (0, 0)
    """Failures, and executions alone in a fresh process."""
    elsewhere: tuple[int, int] = (0, 0)
    """The same on other devices."""
    trial: Trial | None = None
    """The smallest trial."""
    message: str = ""
    """The verdict's sentence on it."""
    like: Signature | None = None
    """Another finding of the operator that shows only after other calls, as this one does: one fault of what calls
    leave behind is in every output, mode and dtype."""
    executions: int = 0
    """That shrinking took."""
    shrunk: bool = False
    complete: bool = True
    """Whether shrinking tried everything within its limit."""
    record: Record | None = None
    """Of the smallest trial, where `aclnn-cts shrink RUN` made it; a campaign keeps none."""
    note: str = ""


def distinct(findings: Iterable[Finding]) -> list[Finding]:
    """The findings that stand for themselves, each with the failures of those that are like it; in the given order."""
    found = list(findings)
    alike: dict[Signature, list[Finding]] = {}
    for item in found:
        if item.like is not None:
            alike.setdefault(item.like, []).append(item)
    return [
        msgspec.structs.replace(item, failures=item.failures + sum(other.failures for other in others))
        if (others := alike.get(item.signature, ()))
        else item
        for item in found
        if item.like is None
    ]


def put_together(findings: Iterable[Finding], changed: Finding) -> list[Finding]:
    """Have one of the findings that show only after other calls stand for all of its operator and sort of fault.

    That is the first whose calls are known and whose case was made smaller, as far as there is one. Those that changed
    are given. `changed` is one of them.
    """
    alike = [item for item in findings if item.confirmed == Confirmed.ORDER and _sort(item) == _sort(changed)]
    first = min(alike, key=lambda item: (item.trial is None or not item.trial.after, not item.shrunk), default=None)
    told = []
    for item in alike:
        like = first.signature if first is not None and item is not first else None
        if item.like != like:
            item.like = like
            told.append(item)
    return told


def _sort(finding: Finding) -> tuple[str, str, bool]:
    signature = finding.signature
    values = signature.kind in (*VALUE_KINDS, Fault.LAW)
    return signature.operator, Fault.VALUE if values else signature.kind, bool(finding.waiver)
