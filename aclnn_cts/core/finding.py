"""A finding: failures of one operator that are one fault as far as can be told, and what is known of it."""

from __future__ import annotations

import hashlib
import re
from typing import TypeAlias

import msgspec

from aclnn_cts.core.faults import Fault, gravest_fault
from aclnn_cts.core.fingerprint import PLAIN_CHECKS, Fingerprint
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Record

Counts: TypeAlias = tuple[tuple[Fingerprint, int], ...]
"""Failures by fingerprint, the most frequent one first."""


class Confirmation:
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


class SharedCondition(msgspec.Struct, frozen=True, kw_only=True):
    """A condition on the arguments of failing calls, which calls that were made for the purpose confirm."""

    when: str
    """In the expression language of specs: it may stand in a waiver as it is."""
    met: int
    """Calls that were made for the purpose and meet it; they fail."""
    missed: int
    """Calls that were made for the purpose and miss it narrowly; they pass."""

    @property
    def en(self) -> str:
        """It, and what confirms it, in English."""
        return f"`{self.when}` ({self.met} calls made with it fail, {self.missed} without it pass)"

    @property
    def zh(self) -> str:
        """The same in Chinese."""
        return f"`{self.when}`（专门构造的 {self.met} 个满足该条件的调用失败，{self.missed} 个不满足的调用通过）"


class Finding(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One fault as far as can be told.

    A run stores them when it ends (`store.run_directory.FINDINGS`). A campaign keeps one for each key and waiver while
    it goes on, and puts them together as a run does.
    """

    key: Fingerprint
    """What its failures have in common."""
    waiver: str = ""
    """The waiver that accepts them; failures that it does not accept are findings of their own."""
    number: int = 1
    """Which it is of several with one key and waiver, which conditions tell apart."""
    counts: Counts = ()
    condition: SharedCondition | None = None
    """What the failing calls share and passing ones do not."""
    confirmed: str = Confirmation.WAITING
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
    """Of the smallest trial; a campaign keeps none."""
    note: str = ""
    examples: int = 0
    """Records that a campaign has kept of it."""
    chunk: int = 0
    """The chunk of a campaign that met it first."""
    slot: str = ""
    """The worker that met it first."""
    device: str = ""
    """The worker's device, where workers have devices of their own."""
    seconds: float = 0.0
    """Into the campaign."""

    @property
    def failures(self) -> int:
        """Trials that failed like this."""
        return sum(number for _, number in self.counts)

    @property
    def fingerprints(self) -> tuple[Fingerprint, ...]:
        """Of its failures, the most frequent one first."""
        return tuple(item for item, _ in self.counts)

    @property
    def kind(self) -> str:
        """The code of the gravest fault that its failures show by themselves; equal calls that differ are unequal."""
        if self.confirmed == Confirmation.FLAKY and self.key.symptom.fault == Fault.VALUE:
            return str(Fault.NONDETERMINISTIC)
        own = [item for item in self.fingerprints if item.symptom == self.key.symptom]
        plain = [item.fault for item in own if item.check in PLAIN_CHECKS or item.clause]
        return gravest_fault(plain or [item.fault for item in own] or [self.key.fault])

    @property
    def outputs(self) -> tuple[str, ...]:
        """Those that are wrong in its failures."""
        return tuple(sorted({item.output for item in self.fingerprints if item.output} or {self.key.output} - {""}))

    @property
    def file(self) -> str:
        """The name of its trial file."""
        return failure_name(self.key, waiver=self.waiver, number=self.number)


def failure_name(key: Fingerprint, *, waiver: str = "", number: int = 1) -> str:
    """The name of a finding's trial file: what a person looks for, and a hash that tells findings apart."""
    words: list[object] = [key, waiver]
    digest = hashlib.sha256(msgspec.json.encode(words)).hexdigest()[:10]
    text = "-".join(filter(None, (key.operator, key.clause, key.fault, key.output)))
    which = f"-{number}" if number > 1 else ""
    return f"{re.sub(r'[^A-Za-z0-9_.]+', '-', text).strip('-.')[:80]}-{digest}{which}.json"
