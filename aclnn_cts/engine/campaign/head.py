"""The head of a campaign: hands out chunks, stores what they come to, and has findings looked into."""

from __future__ import annotations

import contextlib
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from aclnn_cts.core.case_json import case_id
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Result, Signature
from aclnn_cts.engine.campaign.chunk import Chunk, chunk_trials
from aclnn_cts.engine.campaign.dispatch import Dispatcher, Done, Health, Lost
from aclnn_cts.engine.campaign.feedback import Learned
from aclnn_cts.engine.campaign.finding import Confirmed, Finding
from aclnn_cts.engine.campaign.jobs import ChunkJob, ChunkResult, Examined, ExamineJob, Failed
from aclnn_cts.engine.campaign.memory import Memory
from aclnn_cts.engine.campaign.status import OperatorStatus, Status, Watcher
from aclnn_cts.engine.record_codec import signature_key
from aclnn_cts.engine.repro.write import LANGUAGES, write_programs
from aclnn_cts.engine.summary import Summary
from aclnn_cts.spec.load import Specs

__all__ = ["Head", "Stop"]

EXAMINED = 400
"""Findings that are looked into; whatever fails in more ways than that is not understood one by one."""

GIVEN = 3
"""Trials of a finding that are tried until one fails again."""

TRIES = 2
"""Workers that a chunk may cost until the call that was under way is left out, or the chunk is given up."""

GRACE_SECONDS = 60.0
"""How long findings are still looked into after the campaign's time, or a tenth of that where it is more."""

SHOWN_EVERY = 0.5
RATE_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
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


@dataclass(slots=True, kw_only=True)
class Head:
    """Runs one session of a campaign over workers that are there already."""

    memory: Memory
    dispatcher: Dispatcher
    specs: Specs
    stop: Stop
    spec_folders: Sequence[Path] = ()
    watchers: Sequence[Watcher] = ()
    ran_on: str = ""
    """What the implementation says of itself in a line."""
    pinned: Sequence[Chunk] = ()
    """Cases that waivers pin, which come before all others."""
    _chunks: dict[int, Chunk] = field(default_factory=dict)
    """Under way, by slot."""
    _examining: dict[int, ExamineJob] = field(default_factory=dict)
    _again: deque[Chunk] = field(default_factory=deque)
    """Whose worker was lost, after those with pinned cases."""
    _questions: deque[tuple[str, ExamineJob]] = field(default_factory=deque)
    """Findings to look into, each with the device that it is to be done on (empty: any)."""
    _next: int = 0
    _tries: Counter[int] = field(default_factory=Counter)
    _suspects: Counter[str] = field(default_factory=Counter)
    """Workers that were lost with a call under way, by the case's id."""
    _avoid: dict[int, list[str]] = field(default_factory=dict)
    _asked: int = 0
    _began: float = field(default_factory=time.monotonic)
    _news: float = field(default_factory=time.monotonic)
    _most: int = 0
    _ending: str = ""
    _ended: float = 0.0
    _shown: float = -10.0
    _recent: deque[tuple[float, int]] = field(default_factory=deque)
    _phase: str = ""
    _operators: dict[str, OperatorStatus] = field(default_factory=dict)
    _disk: tuple[float, int] = (-60.0, 0)

    @property
    def seconds(self) -> float:
        """Of this session."""
        return time.monotonic() - self._began

    def run(self) -> str:
        """Run until a stop rule says so and what was begun is finished; why it ended."""
        for finding in self.memory.findings.values():
            self._ask(finding, self.memory.remade(finding.chunk))
        self._again.extend(self.pinned)
        self._recent.append((0.0, self.memory.writer.summary.total.cases))
        while True:
            self._decide()
            if self._ending and not self._chunks and not self._pins_wait() and self._settled():
                self._show(now=True)
                return self._ending
            self._hand_out()
            for event in self.dispatcher.wait(SHOWN_EVERY / 2):
                if isinstance(event, Done):
                    self._done(event)
                else:
                    self._lost(event)
            self._show()

    def _settled(self) -> bool:
        """Whether no finding is to be waited for any more."""
        if not self._questions and not self._examining:
            return True
        grace = max(GRACE_SECONDS, 0.1 * (self.stop.seconds or 0.0))
        return not self._ending.startswith("all") and time.monotonic() - self._ended > grace

    def _decide(self) -> None:
        if self._ending:
            return
        stop = self.stop
        standing = sum(not finding.waiver for finding in self.memory.findings.values())
        if stop.chunks is not None and self.memory.chunks >= stop.chunks:
            self._ending = f"all {stop.chunks} chunks are done"
        elif stop.seconds is not None and self.seconds >= stop.seconds:
            self._ending = "its time is over"
        elif stop.findings is not None and standing >= stop.findings:
            self._ending = f"{standing} findings were made"
        elif stop.quiet is not None and time.monotonic() - self._news >= stop.quiet:
            self._ending = f"nothing new came for {stop.quiet:.0f} s"
        elif self._used() > stop.disk_bytes:
            self._ending = f"the run takes {self._used() >> 20} MiB of disk, more than it may"
        if self._ending:
            self._ended = time.monotonic()

    def _used(self) -> int:
        """Bytes of the run's directory, looked up every few seconds."""
        when, used = self._disk
        if time.monotonic() - when > 5.0:
            used = 0
            for file in self.memory.writer.path.rglob("*"):
                with contextlib.suppress(OSError):
                    used += file.stat().st_size
            self._disk = (time.monotonic(), used)
        return used

    def _hand_out(self) -> None:
        for number, slot in enumerate(self.dispatcher.slots):
            if number in self._chunks or number in self._examining or slot.health == Health.OUT:
                continue
            question = self._question(slot.device) if self._may_examine() else None
            if question is not None:
                self._examining[number] = question
                self.dispatcher.submit(number, question, fresh=True)
            elif (chunk := self._chunk()) is not None:
                self._chunks[number] = chunk
                self._phase = chunk.phase
                avoid = tuple(self._avoid.get(chunk.index, ()))
                self.dispatcher.submit(number, ChunkJob(chunk, avoid))

    def _may_examine(self) -> bool:
        """Whether one more worker may look into findings: half of them go on with chunks as long as there are any."""
        few = len(self._examining) < max(len(self.dispatcher.slots) // 2, 1)
        return few or bool(self._ending) or not self._more()

    def _more(self) -> bool:
        """Whether a chunk could be handed out now."""
        limit = self.stop.chunks
        return bool(self._again) or (self.memory.ready(self._next) and (limit is None or self._next < limit))

    def _pins_wait(self) -> bool:
        """Whether pinned cases are next; a session tries those even where nothing else is left to do."""
        return bool(self._again) and self._again[0].index < 0

    def _question(self, device: str) -> ExamineJob | None:
        for place, (wanted, job) in enumerate(self._questions):
            if wanted in ("", device):
                del self._questions[place]
                return job
        return None

    def _chunk(self) -> Chunk | None:
        """The next chunk; None where there is none to be had now."""
        if self._again and (not self._ending or self._pins_wait()):
            return self._again.popleft()
        if self._ending:
            return None
        while self.memory.done(self._next):
            self._next += 1
        limit = self.stop.chunks
        if (limit is not None and self._next >= limit) or not self.memory.ready(self._next):
            return None
        self._next += 1
        return self.memory.chunk(self._next - 1)

    def _done(self, event: Done) -> None:
        answer = event.answer
        slot = self.dispatcher.slots[event.slot]
        if isinstance(answer, ChunkResult):
            self._take(self._chunks.pop(event.slot), answer, slot.name)
        elif isinstance(answer, Examined):
            job = self._examining.pop(event.slot)
            self._learn(job, answer, slot.device)
        elif isinstance(answer, Failed):
            self._failed(event.slot, answer.message)

    def _take(self, chunk: Chunk, result: ChunkResult, slot: str) -> None:
        new = self.memory.finished(chunk, result, slot=slot, seconds=self.seconds)
        if result.broken_off:
            self._notice(f"chunk {chunk.index} took too long: {result.broken_off} of its trials were left out")
        trials: dict[str, list[Trial]] = {}
        for record in result.records:
            trials.setdefault(signature_key(record.signature), []).append(record.trial)
        for met in trials.values():
            # Trials of the promise itself before those that met its fault on the way to another.
            met.sort(key=lambda trial: trial.promise != "values")
        for finding in new:
            self._news = time.monotonic()
            self._ask(finding, chunk, trials[signature_key(finding.signature)])
        self._operators.pop(chunk.operator, None)
        covered = self._status_of(chunk.operator).covered.met
        if covered > self._most or new:
            self._news = time.monotonic()
        self._most = max(self._most, covered)

    def _ask(self, finding: Finding, chunk: Chunk | None = None, trials: Sequence[Trial] = ()) -> None:
        """Have a finding looked into, unless that was done or a waiver speaks for it."""
        if finding.waiver or finding.confirmed or finding.trial is None:
            return
        self._asked += 1
        if self._asked > EXAMINED:
            finding.note = f"not looked into: the campaign has more than {EXAMINED} findings"
            return
        given = tuple(trials[:GIVEN]) or (finding.trial,)
        devices = {slot.device for slot in self.dispatcher.slots if slot.health != Health.OUT}
        where = next((slot.device for slot in self.dispatcher.slots if slot.name == finding.slot), "")
        job = ExamineJob(signature=finding.signature, trials=given, chunk=chunk)
        self._questions.append((where if len(devices) > 1 and where in devices else "", job))

    def _learn(self, job: ExamineJob, answer: Examined, device: str) -> None:
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
        others = sorted({slot.device for slot in self.dispatcher.slots if slot.health != Health.OUT} - {device})
        if others and finding.confirmed == Confirmed.ALWAYS and finding.trial is not None:
            again = ExamineJob(signature=finding.signature, trials=(finding.trial,), chunk=None, shrink=False)
            self._questions.append((others[0], again))

    def _write(self, signature: Signature, trial: Trial) -> None:
        """The trial file and the programs that show it."""
        path = self.memory.writer.replace_failure(signature, trial)
        suffixes = {"cpp": ".cpp", "python": ".py"}
        paths = {language: path.with_suffix(suffixes[language]) for language in LANGUAGES}
        # A law takes several calls, which no program of one call shows.
        with contextlib.suppress(UsageError):
            list(write_programs(trial, self.specs, paths, spec_folders=self.spec_folders))

    def _lost(self, event: Lost) -> None:
        slot = self.dispatcher.slots[event.slot]
        self._notice(f"{slot.name} was lost: {event.reason}")
        if event.slot in self._examining:
            self._unexamined(self._examining.pop(event.slot), event.reason)
            return
        chunk = self._chunks.pop(event.slot, None)
        if chunk is None:
            return
        self._tries[chunk.index] += 1
        flight = event.flight
        if flight is not None and flight.case is not None and flight.chunk == chunk.index:
            identifier = case_id(flight.case)
            self._suspects[identifier] += 1
            if self._suspects[identifier] >= TRIES:
                self._avoid.setdefault(chunk.index, []).extend(self._trials_of(chunk, identifier))
                self._again.append(chunk)
                return
        if self._tries[chunk.index] > TRIES + 1:
            self._give_up(chunk, f"{self._tries[chunk.index]} workers were lost with it, the last since {event.reason}")
        else:
            self._again.append(chunk)

    def _trials_of(self, chunk: Chunk, identifier: str) -> Iterator[str]:
        """Ids of the trials of a chunk with a case, or a call of a trial that was made of one."""
        sampler = self.memory.schedule.factors[chunk.operator].sampler
        from aclnn_cts.engine.promises import promise  # noqa: PLC0415 - only after a death

        for item in chunk_trials(chunk, sampler):
            calls = promise(item.trial.promise, where="trial").calls(item.trial, sampler.spec)
            if any(case_id(call) == identifier for call in calls):
                yield item.trial.id

    def _failed(self, number: int, message: str) -> None:
        """A job that ended in an exception of ours."""
        if number in self._examining:
            self._unexamined(self._examining.pop(number), message)
            return
        chunk = self._chunks.pop(number)
        self._tries[chunk.index] += 1
        if self._tries[chunk.index] < TRIES:
            self._again.append(chunk)
        else:
            self._give_up(chunk, message)

    def _unexamined(self, job: ExamineJob, reason: str) -> None:
        finding = self.memory.findings[signature_key(job.signature)]
        if job.shrink:
            finding.confirmed, finding.note = Confirmed.UNKNOWN, reason
        self.memory.found(finding)

    def _give_up(self, chunk: Chunk, reason: str) -> None:
        """A chunk that cannot be tried is one error, whatever it would have held."""
        self._notice(f"chunk {chunk.index} is given up: {reason}")
        summary = Summary()
        summary.plan(chunk.operator, "chunk")
        summary.operator(chunk.operator).kind("chunk").count(Result.ERROR, reason="", waived=False)
        result = ChunkResult(index=chunk.index, summary=summary, learned=Learned())
        self.memory.finished(chunk, result, slot="", seconds=self.seconds)

    def _notice(self, message: str) -> None:
        for watcher in self.watchers:
            watcher.notice(message)

    def _show(self, *, now: bool = False) -> None:
        if not now and time.monotonic() - self._shown < SHOWN_EVERY:
            return
        self._shown = time.monotonic()
        if self.watchers:
            status = self.status()
            for watcher in self.watchers:
                watcher(status)

    def status(self) -> Status:
        """This moment."""
        memory = self.memory
        seconds, cases = self.seconds, memory.writer.summary.total.cases
        self._recent.append((seconds, cases))
        while len(self._recent) > 2 and seconds - self._recent[0][0] > RATE_SECONDS:
            self._recent.popleft()
        since, had = self._recent[0]
        return Status(
            seconds=memory.before + seconds,
            limit_seconds=None if self.stop.seconds is None else memory.before + self.stop.seconds,
            chunks=memory.chunks,
            limit_chunks=self.stop.chunks,
            phase=self._phase,
            rate=(cases - had) / max(seconds - since, 1e-3),
            summary=memory.writer.summary,
            findings=tuple(memory.findings.values()),
            slots=tuple(self.dispatcher.slots),
            operators=tuple(self._status_of(name) for name in memory.coverage),
            disk_bytes=self._used(),
            disk_limit=self.stop.disk_bytes,
            waiting=len(self._questions) + len(self._examining),
            ending=self._ending,
            ran_on=self.ran_on,
        )

    def _status_of(self, name: str) -> OperatorStatus:
        """An operator's figures, worked out anew when one of its chunks is finished."""
        if name not in self._operators:
            learned = self.memory.so_far(name)
            coverage = self.memory.coverage[name]
            summary = self.memory.writer.summary.operator(name)
            counts = summary.total
            self._operators[name] = OperatorStatus(
                name=name,
                cases=counts.cases,
                failed=counts.failed - counts.waived,
                worst=learned.worst,
                coverage=coverage.shares(learned.covered, summary),
                factors=coverage.by_factor(learned.covered),
                unjudged=coverage.unjudged(learned.covered),
            )
        return self._operators[name]
