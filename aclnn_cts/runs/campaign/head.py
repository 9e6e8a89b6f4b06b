"""The head of a campaign: hands out chunks, stores results, has findings looked into, and ends at the limits."""

from __future__ import annotations

import contextlib
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from aclnn_cts.core.finding import failure_name
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Result
from aclnn_cts.findings.findings import merge_findings
from aclnn_cts.findings.fingerprint import display_order
from aclnn_cts.runs.campaign.campaign_state import CampaignState
from aclnn_cts.runs.campaign.corpus.schedule import Chunk, CorpusUpdate
from aclnn_cts.runs.campaign.jobs import ChunkJob, ChunkResult, TriageResult
from aclnn_cts.runs.campaign.queues import (
    COSTLY_SECONDS,
    FINDING_SECONDS,
    ChunkQueue,
    TriageBudget,
    TriageQueue,
    TriageRequest,
)
from aclnn_cts.runs.campaign.status import EXAMINES, CampaignStatus, Progress, Watcher
from aclnn_cts.speclang.load import Specs
from aclnn_cts.store.summary import Summary
from aclnn_cts.workers.dispatch import Dispatcher
from aclnn_cts.workers.schedule import schedule
from aclnn_cts.workers.service import WorkerFailed
from aclnn_cts.workers.slots import Event, JobDone, Slot, SlotHealth, WorkerLost, WorkerRecovered, WorkerUnavailable

GRACE_SECONDS = 60.0
"""How long findings are still looked into after the end of a campaign without a time."""

GRACE, LEAST_GRACE = 0.05, 3.0
"""The same with a time: a share of it, or so many seconds. `--time 60s` is to end within 65."""

HANG_SECONDS = 300.0
"""How long after that a chunk is waited for whose calls hang: it is broken off between two batches alone."""

SHARE = 0.1
"""Of a session's time, that one chunk or finding may take; a minute at least (a finding: no more than a third)."""

_DISK_SECONDS = 5.0
"""How old a figure of the disk may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopLimits:
    """When a campaign ends; whatever comes first."""

    seconds: float | None = None
    """Of this session."""
    chunks: int | None = None
    """Of the whole campaign."""
    findings: int | None = None
    """Distinct ones without a waiver."""
    quiet: float | None = None
    """Seconds without a new finding and without more coverage."""
    disk_bytes: int = 1 << 31


@dataclass(slots=True)
class StopMonitor:
    """Holds a session to its limits, from the moment on when it is made."""

    stop: StopLimits
    memory: CampaignState
    clock: Callable[[], float] = time.monotonic
    reason: str = ""
    """Why no more chunks are made; empty as long as there are."""
    working: bool = False
    """Whether work was handed out: before that, a session's time cannot be over."""
    _began: float = field(init=False)
    _news: float = field(init=False)
    _ended: float = 0.0
    _complete: bool = False
    """It ends since all its chunks are done: findings are waited for then, whatever they take."""
    _disk: tuple[float, int] = (-60.0, 0)

    def __post_init__(self) -> None:
        self._began = self._news = self.clock()

    @property
    def seconds(self) -> float:
        """Of this session."""
        return self.clock() - self._began

    @property
    def grace_over(self) -> bool:
        """Whether findings are not to be waited for any more, now that there are no more chunks."""
        return self._until_grace_over() <= 0.0

    @property
    def chunks_over(self) -> bool:
        """Whether the chunks under way are not to be waited for any more."""
        return self.stop.seconds is not None and self.seconds > self.stop.seconds + self._grace + HANG_SECONDS

    def chunk_seconds(self) -> float | None:
        """How long a chunk may take that is handed out now; None: as long as any.

        So a chunk whose calls hang leaves time for others. With a number of chunks, each is tried in whole.
        """
        if self.stop.seconds is None or self.stop.chunks is not None:
            return None
        left = self.stop.seconds + self._grace - self.seconds
        return max(min(self._share(), left), 1.0)

    def finding_seconds(self, *, least: float) -> float | None:
        """How long a finding may take that is looked into now; None: as long as its executions take.

        `least`: what it needs, where the session's end does not forbid that.
        """
        left = self._until_grace_over() if self.reason else self._until_time_over() + self._grace
        most = math.inf
        if self.stop.seconds is not None and not self._complete:
            most = max(min(self._share(), self.stop.seconds / 3.0), least)
        seconds = min(left, most)
        return None if math.isinf(seconds) else max(seconds, 1.0)

    def note_news(self) -> None:
        """A finding is new, or more is covered."""
        self._news = self.clock()

    def _standing(self) -> int:
        return sum(not finding.waiver for finding in merge_findings(self.memory.findings.values()))

    def decide(self) -> None:
        """Hold the session to its limits as it stands now."""
        if self.reason:
            return
        stop = self.stop
        if stop.chunks is not None and self.memory.chunks >= stop.chunks:
            self.reason = f"all {stop.chunks} chunks are done"
            self._complete = True
        elif stop.seconds is not None and self.working and self.seconds >= stop.seconds:
            self.reason = "its time is over"
        elif stop.findings is not None and (standing := self._standing()) >= stop.findings:
            self.reason = f"{standing} findings were made"
        elif stop.quiet is not None and self.working and self.clock() - self._news >= stop.quiet:
            self.reason = f"nothing new came for {stop.quiet:.0f} s"
        elif self.disk_bytes() > stop.disk_bytes:
            self.reason = f"the run takes {self.disk_bytes() >> 20} MiB of disk, more than it may"
        if self.reason:
            self._ended = self.clock()

    def disk_bytes(self) -> int:
        """Of the run's directory, looked up every few seconds."""
        when, used = self._disk
        if time.monotonic() - when > _DISK_SECONDS:
            used = 0
            for file in self.memory.writer.path.rglob("*"):
                with contextlib.suppress(OSError):
                    used += file.stat().st_size
            self._disk = (time.monotonic(), used)
        return used

    @property
    def _grace(self) -> float:
        return GRACE_SECONDS if self.stop.seconds is None else max(LEAST_GRACE, GRACE * self.stop.seconds)

    def _share(self) -> float:
        return max(60.0, SHARE * (self.stop.seconds or 0.0))

    def _until_time_over(self) -> float:
        return math.inf if self.stop.seconds is None else self.stop.seconds - self.seconds

    def _until_grace_over(self) -> float:
        if self._complete:
            return self._until_time_over() + self._grace
        return self._ended + self._grace - self.clock()


SHOWN_EVERY = 0.5

WORKERS, FAILURES = 4, 2
"""What a chunk may cost until it is given up: workers, which a node takes with it when it goes, and our exceptions."""


@dataclass(slots=True, kw_only=True)
class Head:
    """Runs one session of a campaign over workers that are there already."""

    memory: CampaignState
    dispatcher: Dispatcher
    specs: Specs
    stop: StopLimits
    watcher: Watcher
    spec_folders: Sequence[Path] = ()
    ran_on: str = ""
    """What the implementation says of itself in a line."""
    pinned: Sequence[Chunk] = ()
    """Cases that waivers pin, which come before all others."""
    _stopping: StopMonitor = field(init=False)
    _queue: ChunkQueue = field(init=False)
    _inquiries: TriageQueue = field(init=False)
    _progress: Progress = field(init=False)
    _chunks: dict[int, Chunk] = field(default_factory=dict)
    """Under way, by slot."""
    _examining: dict[int, TriageRequest] = field(default_factory=dict)
    _turns: TriageBudget = field(default_factory=TriageBudget)
    _cut_short: set[int] = field(default_factory=set)
    """Chunks during which the implementation was gone; what they came to the next time is kept, whatever it is."""
    _most: int = 0
    _shown: float = -10.0
    _phase: str = ""

    def __post_init__(self) -> None:
        self._stopping = StopMonitor(self.stop, self.memory)
        self._queue = ChunkQueue(memory=self.memory, limit=self.stop.chunks, again=deque(self.pinned))
        self._inquiries = TriageQueue(
            memory=self.memory, dispatcher=self.dispatcher, specs=self.specs, spec_folders=self.spec_folders
        )
        self._progress = Progress(self.memory)

    @property
    def seconds(self) -> float:
        """Of this session."""
        return self._stopping.seconds

    def run(self) -> None:
        """Run until a stop rule says so and what was begun is finished."""
        for finding in self.memory.findings.values():
            self._inquiries.ask(finding, self.memory.remake_chunk(finding.chunk))
        self._progress.rate(0.0)
        for _ in schedule(self, self.dispatcher, seconds=SHOWN_EVERY / 2):
            self._show()
        self._leave()
        self._show(now=True)

    def is_finished(self) -> bool:
        """Whether a stop rule says so and what was begun is finished."""
        if all(slot.health in (SlotHealth.OPENING, SlotHealth.OUT) for slot in self.dispatcher.slots):
            # Where no worker can be opened, it is not the campaign that is quiet.
            self._stopping.note_news()
        self._stopping.decide()
        return bool(self._stopping.reason) and self._settled()

    def _settled(self) -> bool:
        """Whether nothing is to be waited for any more."""
        self._inquiries.drop_hopeless()
        if self._stopping.chunks_over:
            return True
        if self._chunks or self._queue.are_pins_waiting:
            return False
        return (not self._inquiries and not self._examining) or self._stopping.grace_over

    def _leave(self) -> None:
        """Say what the session leaves to the next."""
        for chunk in self._chunks.values():
            self._notice(f"chunk {chunk.index} was not waited for; --resume tries it again")
        number = self._inquiries.note_unfinished(self._stopping.reason)
        if number:
            told = "1 finding was" if number == 1 else f"{number} findings were"
            self._notice(f"{told} not confirmed, since {self._stopping.reason}; --resume does that")

    def next_for(self, slot: int) -> msgspec.Struct | None:
        """A finding or a chunk."""
        question = self._inquiries.next_for(self.dispatcher.slots[slot])
        if question is not None and self._may_examine(slot, question):
            question = self._inquiries.take(question)
            self._examining[slot] = question
            least = COSTLY_SECONDS if question.costly else FINDING_SECONDS
            seconds = self._stopping.finding_seconds(least=least)
            job: msgspec.Struct = msgspec.structs.replace(question.job, seconds=seconds)
        elif (chunk := self._queue.take(ending=bool(self._stopping.reason))) is not None:
            self._chunks[slot] = chunk
            self._phase = chunk.phase
            job = ChunkJob(chunk, seconds=self._stopping.chunk_seconds())
        else:
            return None
        self._turns.begin(slot, finding=slot in self._examining)
        self._stopping.working = True
        return job

    def _may_examine(self, number: int, question: TriageRequest) -> bool:
        """Whether a finding is next on a worker, and not a chunk."""
        if self._stopping.reason or not self._queue.has_more:
            return True
        living = sum(slot.health != SlotHealth.OUT for slot in self.dispatcher.slots)
        return self._turns.of_finding(number, living=living, costly=question.costly)

    def handle_event(self, event: Event) -> None:
        """Take an answer, the loss of a worker, or that one cannot be opened or is back."""
        slot = self.dispatcher.slots[event.slot]
        if isinstance(event, JobDone | WorkerLost):
            self._turns.end(event.slot)
        match event:
            case JobDone(number, ChunkResult() as result):
                self._take(self._chunks.pop(number), result, slot)
            case JobDone(number, TriageResult() as answer):
                self._inquiries.note_answer(self._examining.pop(number), answer, slot.device)
            case JobDone(number, WorkerFailed() as answer):
                self._failed(number, answer.message)
            case WorkerLost():
                self._lost(event, slot)
            case WorkerUnavailable():
                self._notice(f"{slot.title} cannot be opened, and is tried again: {event.reason}")
            case WorkerRecovered():
                self._notice(f"{slot.title} is open again, after {event.seconds:.0f} s")

    def _take(self, chunk: Chunk, result: ChunkResult, slot: Slot) -> None:
        new = self.memory.store_chunk(chunk, result, slot=slot.name, device=slot.device, seconds=self.seconds)
        if result.broken_off:
            self._notice(f"chunk {chunk.index} took too long: {result.broken_off} of its trials were left out")
        trials: dict[str, list[Trial]] = {}
        for record in sorted(result.records, key=display_order):
            trials.setdefault(failure_name(record.key), []).append(record.trial)
        for finding in new:
            self._inquiries.ask(finding, chunk, trials.get(failure_name(finding.key), ()))
        covered = self._progress.update_operator(chunk.operator).covered.met
        if covered > self._most or new:
            self._stopping.note_news()
        self._most = max(self._most, covered)

    def _lost(self, event: WorkerLost[Any], slot: Slot) -> None:
        if event.begun:
            self._notice(f"{slot.title} was lost: {event.reason}")
        if event.slot in self._examining:
            self._inquiries.note_lost(self._examining.pop(event.slot), event.reason, begun=event.begun)
            return
        chunk = self._chunks.pop(event.slot, None)
        if chunk is None:
            return
        if isinstance(event.answer, ChunkResult):
            if chunk.index in self._cut_short:
                # One of its own calls may be what the device does not survive.
                self._take(chunk, event.answer, slot)
                return
            self._cut_short.add(chunk.index)
            met = event.answer.failed
            told = f"; failures that it had met ({met}) count if they come again" if met else ""
            self._notice(f"chunk {chunk.index} is tried again{told}")
        self._retry(chunk, f"{WORKERS} workers were lost with it, the last since {event.reason}", tries=WORKERS)

    def _failed(self, number: int, message: str) -> None:
        """A job that ended in an exception of ours."""
        if number in self._examining:
            self._inquiries.note_failed(self._examining.pop(number), message)
            return
        chunk = self._chunks.pop(number)
        self._retry(chunk, message, tries=FAILURES)

    def _retry(self, chunk: Chunk, reason: str, *, tries: int) -> None:
        """Try a chunk again; after so many tries it is given up, and is one error, whatever it would have held."""
        if self._queue.retry(chunk, tries=tries):
            return
        self._notice(f"chunk {chunk.index} is given up: {reason}")
        summary = Summary()
        summary.plan(chunk.operator, "chunk")
        summary.operator(chunk.operator).kind("chunk").count(Result.ERROR, reason="")
        result = ChunkResult(index=chunk.index, summary=summary, learned=CorpusUpdate())
        self.memory.store_chunk(chunk, result, slot="", seconds=self.seconds)

    def _notice(self, message: str) -> None:
        self.watcher.notice(message)

    def _show(self, *, now: bool = False) -> None:
        if now or time.monotonic() - self._shown >= SHOWN_EVERY:
            self._shown = time.monotonic()
            self.watcher(self.status())

    def status(self) -> CampaignStatus:
        """This moment."""
        memory = self.memory
        seconds = self.seconds
        tasks = {slot: chunk.index for slot, chunk in self._chunks.items()} | dict.fromkeys(self._examining, EXAMINES)
        return CampaignStatus(
            seconds=memory.before + seconds,
            limit_seconds=None if self.stop.seconds is None else memory.before + self.stop.seconds,
            chunks=memory.chunks,
            limit_chunks=self.stop.chunks,
            phase=self._phase,
            rate=self._progress.rate(seconds),
            summary=memory.writer.summary,
            findings=tuple(memory.findings.values()),
            slots=tuple(self.dispatcher.slots),
            under_way=self._progress.under_way(self.dispatcher.progress_by_slot, tasks, seconds),
            operators=tuple(self._progress.of(name) for name in memory.coverage),
            disk_bytes=self._stopping.disk_bytes(),
            disk_limit=self.stop.disk_bytes,
            waiting=len(self._inquiries) + len(self._examining),
            ending=self._stopping.reason,
            ran_on=self.ran_on,
        )
