"""A finding of a campaign: one fault as far as can be told, confirmed, shrunk, and kept with few examples."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Record

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


Counts: TypeAlias = tuple[tuple[tuple[str, Fingerprint], int], ...]
"""Failures by waiver (empty where none accepts them) and fingerprint."""


class Finding(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One fault as far as can be told, and what is known of it."""

    key: Fingerprint
    kind: str = ""
    """The gravest kind of fault among its failures, which `key` may take several of together."""
    failures: int = 0
    """Trials that failed like this."""
    counts: Counts = ()
    """How many of them there are of each kind, by which findings are grouped (`findings.distinct`)."""
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
    executions: int = 0
    """That shrinking took."""
    shrunk: bool = False
    complete: bool = True
    """Whether shrinking tried everything within its limit."""
    record: Record | None = None
    """Of the smallest trial, where `aclnn-cts shrink RUN` made it; a campaign keeps none."""
    note: str = ""
