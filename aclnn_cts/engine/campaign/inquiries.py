"""Findings that are looked into: which wait, what is asked of a worker, and what its answer says."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Signature
from aclnn_cts.engine.campaign.chunk import Chunk
from aclnn_cts.engine.campaign.dispatch import Dispatcher, Health
from aclnn_cts.engine.campaign.finding import Confirmed, Finding
from aclnn_cts.engine.campaign.jobs import Examined, ExamineJob
from aclnn_cts.engine.campaign.memory import Memory
from aclnn_cts.engine.record_codec import signature_key
from aclnn_cts.engine.repro import SUFFIXES
from aclnn_cts.engine.repro.write import write_programs
from aclnn_cts.spec.load import Specs

__all__ = ["Inquiries"]

EXAMINED = 400
"""Findings that are looked into; whatever fails in more ways than that is not understood one by one."""

GIVEN = 3
"""Trials of a finding that are tried until one fails again."""


@dataclass(slots=True, kw_only=True)
class Inquiries:
    """Has findings confirmed and made smaller, and notes what came of it."""

    memory: Memory
    dispatcher: Dispatcher
    specs: Specs
    spec_folders: Sequence[Path] = ()
    _waiting: deque[tuple[str, ExamineJob]] = field(default_factory=deque)
    """Each with the device that it is to be done on (empty: any)."""
    _asked: int = 0

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def ask(self, finding: Finding, chunk: Chunk | None = None, trials: Sequence[Trial] = ()) -> None:
        """Have a finding looked into, unless that was done or a waiver speaks for it."""
        if finding.waiver or finding.confirmed or finding.trial is None:
            return
        self._asked += 1
        if self._asked > EXAMINED:
            finding.note = f"not looked into: the campaign has more than {EXAMINED} findings"
            return
        given = tuple(trials[:GIVEN]) or (finding.trial,)
        devices = self._devices()
        where = next((slot.device for slot in self.dispatcher.slots if slot.name == finding.slot), "")
        job = ExamineJob(signature=finding.signature, trials=given, chunk=chunk)
        self._waiting.append((where if len(devices) > 1 and where in devices else "", job))

    def take(self, device: str) -> ExamineJob | None:
        """The next that may be done on a device; None where there is none."""
        for place, (wanted, job) in enumerate(self._waiting):
            if wanted in ("", device):
                del self._waiting[place]
                return job
        return None

    def answered(self, job: ExamineJob, answer: Examined, device: str) -> None:
        """Note what came of a finding, and ask another device about one that always fails."""
        finding = self.memory.findings[signature_key(answer.signature)]
        if not job.shrink:
            finding.elsewhere = answer.alone
            if not answer.alone[0]:
                finding.confirmed = Confirmed.DEVICE
                finding.note = f"it fails on {finding.slot}, and not on {device}"
            self.memory.found(finding)
            return
        finding.confirmed, finding.alone, finding.note = answer.confirmed, answer.alone, answer.note
        finding.executions, finding.shrunk = answer.executions, answer.shrunk
        if answer.trial is not None:
            finding.trial = answer.trial
            finding.message = answer.message or finding.message
        self.memory.found(finding)
        for content in answer.blobs:
            self.memory.writer.blob(content)
        if finding.trial is not None:
            self._write(finding.signature, finding.trial)
        others = sorted(self._devices() - {device})
        if others and finding.confirmed == Confirmed.ALWAYS and finding.trial is not None:
            again = ExamineJob(signature=finding.signature, trials=(finding.trial,), chunk=None, shrink=False)
            self._waiting.append((others[0], again))

    def failed(self, job: ExamineJob, reason: str) -> None:
        """Note that a finding could not be looked into."""
        finding = self.memory.findings[signature_key(job.signature)]
        if job.shrink:
            finding.confirmed, finding.note = Confirmed.UNKNOWN, reason
        self.memory.found(finding)

    def _devices(self) -> set[str]:
        """Those that work."""
        return {slot.device for slot in self.dispatcher.slots if slot.health != Health.OUT}

    def _write(self, signature: Signature, trial: Trial) -> None:
        """The trial file and the programs that show it."""
        path = self.memory.writer.replace_failure(signature, trial)
        paths = {language: path.with_suffix(suffix) for language, suffix in SUFFIXES.items()}
        # A case may be too large for a program.
        with contextlib.suppress(UsageError):
            list(write_programs(trial, self.specs, paths, spec_folders=self.spec_folders))
