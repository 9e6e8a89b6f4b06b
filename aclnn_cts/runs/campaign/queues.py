"""What a free worker is given next: a chunk or a finding, and whose turn it is."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from aclnn_cts.core.faults import Fault
from aclnn_cts.core.finding import Confirmation, Finding, failure_name
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.trial import EarlierCall, Trial
from aclnn_cts.repro.keep import keep_programs
from aclnn_cts.repro.write import Programs, languages_of
from aclnn_cts.runs.campaign.campaign_state import CampaignState
from aclnn_cts.runs.campaign.corpus.schedule import Chunk
from aclnn_cts.runs.campaign.jobs import KNOWN, TriageJob, TriageResult
from aclnn_cts.speclang.load import Specs
from aclnn_cts.store.programs import PROGRAMS_STATE
from aclnn_cts.store.run_directory import RunDirectory
from aclnn_cts.store.summary import Summary
from aclnn_cts.workers.dispatch import Dispatcher
from aclnn_cts.workers.slots import Slot, SlotHealth


@dataclass(slots=True, kw_only=True)
class ChunkQueue:
    """The chunks that are yet to be tried."""

    memory: CampaignState
    limit: int | None
    """Chunks of the whole campaign."""
    again: deque[Chunk] = field(default_factory=deque)
    """Those with pinned cases, which come before all others, and after them those whose worker was lost."""
    _next: int = 0
    _tries: Counter[int] = field(default_factory=Counter)

    @property
    def are_pins_waiting(self) -> bool:
        """Whether pinned cases are next; a session tries those even where nothing else is left to do."""
        return bool(self.again) and self.again[0].index < 0

    @property
    def has_more(self) -> bool:
        """Whether a chunk could be handed out now."""
        return bool(self.again) or (
            self.memory.is_ready(self._next) and (self.limit is None or self._next < self.limit)
        )

    def take(self, *, ending: bool) -> Chunk | None:
        """The next chunk; None where there is none to be had now, or none any more since the session is `ending`."""
        if self.again and (not ending or self.are_pins_waiting):
            return self.again.popleft()
        if ending:
            return None
        while self.memory.is_done(self._next):
            self._next += 1
        if (self.limit is not None and self._next >= self.limit) or not self.memory.is_ready(self._next):
            return None
        self._next += 1
        return self.memory.chunk(self._next - 1)

    def retry(self, chunk: Chunk, *, tries: int) -> bool:
        """Try a chunk again that came to nothing; False where it has had so many tries already."""
        self._tries[chunk.index] += 1
        if self._tries[chunk.index] >= tries:
            return False
        self.again.append(chunk)
        return True


EXAMINED = 400
"""Findings that are looked into; whatever fails in more ways than that is not understood one by one."""

GIVEN = 3
"""Trials of a finding that are tried until one fails again."""

TRIES = 2
"""Workers that looking into a finding may cost."""

_NOT_ASKED = "not looked into"

OTHERS = 8
"""Other devices that are asked about a finding until it fails on one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TriageRequest:
    """What a worker is to be asked."""

    job: TriageJob
    device: str = ""
    """The one to ask, as long as it can be opened (empty: any); of `others`, where the finding was confirmed."""
    others: bool = False
    """Another device than that, and than those asked, is to be asked."""
    asked: tuple[str, ...] = ()
    """Other devices on which the finding did not fail."""
    tries: int = 0

    @property
    def costly(self) -> bool:
        """Whether its trials are waited for in full."""
        return self.job.key.fault == Fault.HANG

    def may_go_to(self, device: str, living: set[str]) -> bool:
        """Whether a device is one to ask; `living`: those that can be opened."""
        if self.others:
            return device not in (self.device, *self.asked)
        return self.device in ("", device) or self.device not in living


@dataclass(slots=True, kw_only=True)
class TriageQueue:
    """Has findings confirmed and made smaller, and notes what came of it."""

    memory: CampaignState
    dispatcher: Dispatcher
    specs: Specs
    spec_folders: Sequence[Path] = ()
    _waiting: deque[TriageRequest] = field(default_factory=deque)
    _asked: int = 0

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def ask(self, finding: Finding, chunk: Chunk | None = None, trials: Sequence[Trial] = ()) -> None:
        """Have a finding looked into, as far as that was not done, unless a waiver speaks for it."""
        if finding.waiver or finding.trial is None:
            return
        if finding.confirmed:
            if finding.confirmed == Confirmation.ALWAYS and finding.device and not finding.elsewhere[1]:
                self._ask_others(finding, finding.device)
            return
        finding.note = ""
        self._asked += 1
        if self._asked > EXAMINED:
            finding.note = f"{_NOT_ASKED}: the campaign has more than {EXAMINED} findings"
            return
        given = tuple(trials[:GIVEN]) or (finding.trial,)
        job = TriageJob(key=finding.key, trials=given, chunk=chunk)
        self._waiting.append(TriageRequest(job=job, device=finding.device))

    def next_for(self, slot: Slot) -> TriageRequest | None:
        """The next that may be done on a slot, those that take long last; None where there is none."""
        living = self._devices()
        fitting = [question for question in self._waiting if question.may_go_to(slot.device, living)]
        return min(fitting, key=lambda question: question.costly, default=None)

    def take(self, question: TriageRequest) -> TriageRequest:
        """A question is asked now; the same with all that is known by now."""
        self._waiting.remove(question)
        job = question.job
        if question.others:
            return question
        return replace(question, job=msgspec.structs.replace(job, known=self._known(job.key)))

    def _known(self, asked: Fingerprint) -> tuple[tuple[EarlierCall, ...], ...]:
        """Calls after which other findings show that conform alone."""
        calls = [
            item.trial.after
            for item in self.memory.findings.values()
            if item.key.operator == asked.operator and item.trial is not None and item.trial.after
        ]
        return tuple(each for place, each in enumerate(calls) if each not in calls[:place])[:KNOWN]

    def drop_hopeless(self) -> None:
        """Forget what no device that can be opened may be asked."""
        living = self._devices()
        for question in [item for item in self._waiting if not any(item.may_go_to(each, living) for each in living)]:
            self._waiting.remove(question)

    def note_answer(self, question: TriageRequest, answer: TriageResult, device: str) -> None:
        """Note what came of a finding, and ask other devices about one that always fails."""
        finding = self.memory.findings[failure_name(answer.key)]
        if question.others:
            self._elsewhere(finding, question, answer, device)
            return
        if answer.confirmed == Confirmation.WAITING:
            finding.note = answer.note
            self.memory.store_finding(finding)
            return
        finding.confirmed, finding.alone, finding.note = answer.confirmed, answer.alone, answer.note
        finding.executions, finding.shrunk = answer.executions, answer.shrunk
        if answer.trial is not None:
            finding.trial = answer.trial
            finding.message = answer.message or finding.message
        met_elsewhere = self._note_device(finding, device)
        # The files first: what is stored as confirmed is not looked into again after a kill.
        for content in answer.blobs:
            self.memory.writer.blob(content)
        if finding.trial is not None:
            self._write(finding.key, finding.trial)
        self.memory.store_finding(finding)
        if finding.confirmed == Confirmation.ALWAYS and not met_elsewhere:
            self._ask_others(finding, device)

    @staticmethod
    def _note_device(finding: Finding, device: str) -> bool:
        """Note where a finding was looked into; whether another device had met it."""
        met_elsewhere = bool(finding.device) and finding.device != device
        if met_elsewhere and finding.confirmed == Confirmation.ALWAYS:
            # It has failed on two devices already.
            finding.elsewhere = finding.alone
        elif met_elsewhere:
            where = f"run again on {device}, since {finding.device}, which met it, could not be opened"
            finding.note = "; ".join(filter(None, (finding.note, where)))
        return met_elsewhere

    def note_lost(self, question: TriageRequest, reason: str, *, begun: bool) -> None:
        """The worker was lost that had been asked; `begun`: after it was open."""
        if begun:
            question = replace(question, tries=question.tries + 1)
        if question.tries >= TRIES:
            self.note_failed(question, reason)
        else:
            self._waiting.appendleft(question)

    def note_failed(self, question: TriageRequest, reason: str) -> None:
        """Note that a finding could not be looked into."""
        finding = self.memory.findings[failure_name(question.job.key)]
        if question.job.shrink:
            finding.confirmed, finding.note = Confirmation.UNKNOWN, reason
        self.memory.store_finding(finding)

    def note_unfinished(self, why: str) -> int:
        """Note what is left to the next session, as the session ends; how many findings are not confirmed."""
        waiting = [
            item
            for item in self.memory.findings.values()
            if not (item.waiver or item.confirmed or item.note.startswith(_NOT_ASKED))
        ]
        for finding in waiting:
            finding.note = finding.note or f"not run again: {why}; --resume does that"
            self.memory.store_finding(finding)
        return len(waiting)

    def _ask_others(self, finding: Finding, device: str, asked: tuple[str, ...] = ()) -> None:
        """Have another device asked about a finding that fails on this one, unless there is none or enough were."""
        others = {slot.device for slot in self.dispatcher.slots if slot.device}
        if finding.trial is None or len(asked) >= OTHERS or not others - {device, *asked}:
            return
        job = TriageJob(key=finding.key, trials=(finding.trial,), chunk=None, shrink=False)
        self._waiting.append(TriageRequest(job=job, device=device, others=True, asked=asked))

    def _elsewhere(self, finding: Finding, question: TriageRequest, answer: TriageResult, device: str) -> None:
        before, now = finding.elsewhere, answer.alone
        finding.elsewhere = (before[0] + now[0], before[1] + now[1])
        if now[0]:
            finding.confirmed = Confirmation.ALWAYS
            not_on = f", and not on {_listed(question.asked)}" if question.asked else ""
            finding.note = f"it fails on {question.device} and on {device}{not_on}" if not_on else ""
            self.memory.store_finding(finding)
            return
        asked = (*question.asked, device)
        finding.confirmed = Confirmation.DEVICE
        finding.note = f"it fails on {question.device}, and not on {_listed(asked)}"
        self.memory.store_finding(finding)
        self._ask_others(finding, question.device, asked)

    def _devices(self) -> set[str]:
        """Those that can be opened."""
        return {slot.device for slot in self.dispatcher.slots if slot.health != SlotHealth.OUT}

    def _write(self, key: Fingerprint, trial: Trial) -> None:
        """The trial file and the programs that show it."""
        writer = self.memory.writer
        path = writer.replace_failure(key, trial)
        programs = Programs(specs=self.specs, spec_folders=self.spec_folders)
        languages = languages_of(RunDirectory(writer.path).manifest)
        kept = keep_programs(path, trial, key=key, programs=programs, languages=languages)
        writer.append_part(Summary(), state={PROGRAMS_STATE + path.name: kept})


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


FINDING_SECONDS = 5.0
"""What a finding is reckoned at, until some were looked into: the mean of those then, where it is more."""

COSTLY_SECONDS = 120.0
"""What a finding is reckoned at whose trials hang."""


@dataclass(slots=True)
class TriageBudget:
    """Shares the seconds of all workers: findings get half of them at most as long as there are chunks.

    Seconds, not workers: a single worker that looked into each finding at once would try nothing else for hours.
    """

    clock: Callable[[], float] = time.monotonic
    _spent: dict[bool, float] = field(default_factory=lambda: {True: 0.0, False: 0.0})
    """Seconds that went to findings (True) and to chunks."""
    _number: int = 0
    """Findings that were looked into."""
    _running: dict[int, tuple[bool, float]] = field(default_factory=dict)
    """By slot: whether it is a finding, and since when."""
    _last: dict[int, bool] = field(default_factory=dict)
    """By slot: whether its last turn was a finding's."""

    def begin(self, slot: int, *, finding: bool) -> None:
        """A slot has been given work."""
        self._running[slot] = (finding, self.clock())
        self._last[slot] = finding

    def end(self, slot: int) -> None:
        """It is done, or lost."""
        if slot in self._running:
            finding, began = self._running.pop(slot)
            self._spent[finding] += self.clock() - began
            self._number += finding

    def of_finding(self, slot: int, *, living: int, costly: bool) -> bool:
        """Whether a finding is next on a slot while chunks wait too.

        - `living`: slots that are not out; half of them look into findings at a time.
        - `costly`: the finding takes minutes.
        """
        examining = sum(finding for finding, _ in self._running.values())
        if examining >= max(living // 2, 1) or self._last.get(slot, False):
            return False
        now = self.clock()
        spent = dict(self._spent)
        for finding, began in self._running.values():
            spent[finding] += now - began
        mean = self._spent[True] / self._number if self._number else 0.0
        reckoned = COSTLY_SECONDS if costly else min(max(mean, FINDING_SECONDS), COSTLY_SECONDS)
        return spent[True] + reckoned <= spent[False]
