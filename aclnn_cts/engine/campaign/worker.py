"""A worker of a campaign: owns one device, judges chunks, and looks into findings."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import cast

from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Record, Result, Signature, Skip, Verdict
from aclnn_cts.engine.bench import Bench, is_sampled
from aclnn_cts.engine.campaign.chunk import Chunk, ChunkTrial, Parent, chunk_trials, parent_of
from aclnn_cts.engine.campaign.factors import Factors
from aclnn_cts.engine.campaign.feedback import Learned
from aclnn_cts.engine.campaign.finding import EXAMPLES, Confirmed, found_as, outputs_of
from aclnn_cts.engine.campaign.flight import Notes, NotingHost
from aclnn_cts.engine.campaign.jobs import ChunkJob, ChunkResult, Examined, ExamineJob, WorkerOptions
from aclnn_cts.engine.campaign.promise_coverage import limit_key, packed
from aclnn_cts.engine.campaign.shrink import EXECUTIONS, shrink
from aclnn_cts.engine.coverage import Coverage
from aclnn_cts.engine.host import SessionHost
from aclnn_cts.engine.laws import LAW_KIND
from aclnn_cts.engine.record_codec import signature_key
from aclnn_cts.engine.summary import Summary
from aclnn_cts.engine.waivers import WaiverEvidence, Waivers, waivers_of_run
from aclnn_cts.judge.verdict import signature
from aclnn_cts.spec.load import Specs, load_specs

__all__ = ["CampaignWorker", "open_worker"]

ALONE = 3
"""Executions by which a finding is confirmed."""

PARENTS = 8
"""Good cases that a chunk reports."""

ERRORS = 25
"""Errors of a chunk that come with their record; those after them are counted."""

SAMPLES = 2
"""Of the trials of a chunk that a run would keep the outputs of, how many passed ones are kept."""

OUTPUT_BYTES, CHUNK_OUTPUT_BYTES = 1 << 20, 1 << 24
"""Of outputs: most that a record is kept with, and most of a chunk."""

_JUDGED = (Result.PASSED, Result.FAILED)
_PUT = (Skip.OPEN, Skip.DISPUTE, Skip.NOT_JUDGED)
"""Skips of trials whose calls were made: what came of them is all that the document lets be said."""


@dataclass(slots=True, kw_only=True)
class CampaignWorker:
    """Holds an open implementation. `open_worker` makes one; whoever did closes its host."""

    specs: Specs
    bench: Bench
    waivers: Waivers
    notes: Notes | None
    chunk_seconds: float
    _factors: dict[str, Factors] = field(default_factory=dict)

    def do(self, job: ChunkJob | ExamineJob) -> ChunkResult | Examined:
        """Do a job."""
        if isinstance(job, ChunkJob):
            return self.judge(job.chunk, avoid=frozenset(job.avoid))
        return self.examine(job)

    def judge(self, chunk: Chunk, *, avoid: frozenset[str] = frozenset()) -> ChunkResult:
        """Try a chunk. `avoid`: ids of trials that must not be made, each an error."""
        began = time.monotonic()
        sampler = self.bench.sampler(self.specs[chunk.operator])
        items = list(chunk_trials(chunk, sampler))
        tally = _Tally(chunk, self._factors_of(chunk.operator))
        tally.withhold(items)
        run = items
        if avoid:  # an id is a hash of the whole trial
            for item in items:
                if item.trial.id in avoid:
                    tally.add(item, _deadly(item.trial))
            run = [item for item in items if item.trial.id not in avoid]
        handout = _Handout(chunk, run, self.notes, until=began + self.chunk_seconds)
        for item, record in zip(run, self._records(handout, tally), strict=False):
            handout.judged += 1
            tally.add(item, record)
        if self.notes is not None:
            self.notes.idle()
        parents = tuple(parent_of(chunk, sampler, draw, share) for share, draw in tally.good)
        return tally.result(
            parents,
            seconds=time.monotonic() - began,
            broken_off=len(run) - handout.handed,
            waivers=self.waivers.evidence,
        )

    def _records(self, trials: Iterable[Trial], tally: _Tally) -> Iterator[Record]:
        for judged in self.bench.run(trials):
            tally.summary.cover(judged.coverage)
            tally.outputs = judged.blobs
            for record in judged.records:
                waived = self.waivers.apply(record)
                yield self._bucketed(waived) if _failed(waived) else waived

    def _factors_of(self, operator: str) -> Factors:
        if operator not in self._factors:
            self._factors[operator] = Factors(self.bench.sampler(self.specs[operator]))
        return self._factors[operator]

    def examine(self, job: ExamineJob) -> Examined:
        """Confirm a finding by its first trial that fails again, and make that smaller."""
        failures = executions = 0
        chosen: Trial | None = None
        for trial in job.trials:
            failures, executions = self._alone(trial, job.signature)
            if failures:
                chosen = trial
                break
        again = None
        if chosen is None and (again := self._in_company(job)) is not None:
            failures, more = self._alone(again, job.signature)
            executions += more
            chosen = again if failures else None
        if chosen is None:
            return _not_alone(job, again, executions)
        confirmed = Confirmed.ALWAYS if failures == executions else Confirmed.SOMETIMES
        if not job.shrink:
            return Examined(signature=job.signature, confirmed=confirmed, alone=(failures, executions), trial=chosen)
        sampler = self.bench.sampler(self.specs[chosen.case.operator])
        small = shrink(
            chosen,
            sampler=sampler,
            execute=self._execute,
            same=lambda record: self._same(record, job.signature),
            executions=EXECUTIONS,
            repeats=1 if confirmed == Confirmed.ALWAYS else ALONE,
        )
        record, blobs = self._last(small.trial)
        return Examined(
            signature=job.signature,
            confirmed=confirmed,
            alone=(failures, executions),
            trial=small.trial,
            message=(small.record or record).verdict.message,
            executions=small.executions,
            shrunk=True,
            note="" if small.complete else f"shrinking was broken off after {small.executions} executions",
            blobs=blobs,
        )

    def _alone(self, trial: Trial, looked_for: Signature) -> tuple[int, int]:
        """How often a trial fails the same way, each time in a fresh process where the host can give one."""
        failures = 0
        for _ in range(ALONE):
            self.bench.host.refresh()
            failures += self._same(self._execute(trial), looked_for)
        return failures, ALONE

    def _in_company(self, job: ExamineJob) -> Trial | None:
        """What fails the same way when the chunk that met it is run again in a fresh process, up to its last trial."""
        if job.chunk is None:
            return None
        self.bench.host.refresh()
        items = list(chunk_trials(job.chunk, self.bench.sampler(self.specs[job.chunk.operator])))
        tally = _Tally(job.chunk, self._factors_of(job.chunk.operator))
        for record in self._records((item.trial for item in items), tally):
            if self._same(record, job.signature):
                return record.trial
        return None

    def _execute(self, trial: Trial) -> Record:
        return next(record for judged in self.bench.run([trial]) for record in judged.records)

    def _last(self, trial: Trial) -> tuple[Record, tuple[bytes, ...]]:
        judged = next(iter(self.bench.run([trial])))
        return judged.records[0], judged.blobs

    def _same(self, record: Record, looked_for: Signature) -> bool:
        return _failed(record) and self._bucketed(record).signature == looked_for and not self.waivers.explains(record)

    def _bucketed(self, record: Record) -> Record:
        return found_as(record, self.specs, self._execute)


@dataclass(slots=True)
class _Handout:
    """Hands out a chunk's trials as batches take them, and notes which are under way or wait for their verdict."""

    chunk: Chunk
    items: Sequence[ChunkTrial]
    notes: Notes | None
    until: float
    """When, by the monotonic clock, no more are handed out."""
    handed: int = 0
    judged: int = 0

    def __iter__(self) -> Iterator[Trial]:
        for item in self.items:
            if time.monotonic() >= self.until:
                return
            self.handed += 1
            if self.notes is not None:
                self.notes.batch(self.chunk.index, self.judged, self.handed - self.judged)
            yield item.trial


@dataclass(slots=True)
class _Tally:
    """What the trials of a chunk come to."""

    chunk: Chunk
    factors: Factors
    summary: Summary = field(default_factory=Summary)
    records: list[Record] = field(default_factory=list)
    failures: Counter[str] = field(default_factory=Counter)
    errors: int = 0
    judged: list[list[int]] = field(default_factory=list)
    tried: list[list[int]] = field(default_factory=list)
    limits: set[str] = field(default_factory=set)
    worst: float = 0.0
    number: int = 0
    outputs: tuple[bytes, ...] = ()
    """Recorded outputs of the batch that is added."""
    blobs: dict[str, bytes] = field(default_factory=dict)
    blob_bytes: int = 0
    samples: int = 0
    good: list[tuple[float, int]] = field(default_factory=list)
    """Share and draw of the cases that came nearest to their bounds, nearest first."""

    def withhold(self, items: Sequence[ChunkTrial]) -> None:
        """Count the trials of laws that were asked for and could not be generated."""
        made = Counter(item.trial.promise for item in items)
        coverage = Coverage()
        for part in self.chunk.parts:
            if part.kind == LAW_KIND and made[part.promise] < part.count:
                coverage.withhold(part.operator, part.promise, part.count - made[part.promise])
        self.summary.cover(coverage)

    def add(self, item: ChunkTrial, record: Record) -> None:
        """Count a trial."""
        verdict = record.verdict
        case = record.trial.case
        self.summary.plan(case.operator, case.origin.kind)
        self.summary.add(record)
        judged = verdict.result in _JUDGED
        self.number += judged
        if item.drawing is not None:
            numbers = self.factors.of(item.drawing, case)
            self.tried.append(numbers)
            if judged:
                self.judged.append(numbers)
        elif record.trial.promise == "boundary" and (judged or verdict.kind in _PUT):
            self.limits.add(limit_key(case, beyond="twin" in record.trial.parameters))
        if verdict.result == Result.PASSED:
            self._pass(item, verdict)
            if self.samples < SAMPLES and is_sampled(record.trial_id) and self._keep_outputs(record):
                self.samples += 1
                self.records.append(record)
        elif verdict.result == Result.FAILED:
            self._keep(record)
        elif verdict.result == Result.ERROR:
            self.errors += 1
            if self.errors <= ERRORS:
                self.records.append(record)

    def _pass(self, item: ChunkTrial, verdict: Verdict) -> None:
        share = max((part.share for part in verdict.deviations), default=0.0)
        if not math.isfinite(share):
            return
        self.worst = max(self.worst, share)
        if item.draw >= 0 and share > 0.0 and (len(self.good) < PARENTS or share > self.good[-1][0]):
            self.good = sorted([*self.good, (share, item.draw)], key=lambda pair: (-pair[0], pair[1]))[:PARENTS]

    def _keep(self, record: Record) -> None:
        key = signature_key(record.signature)
        self.failures[key] += 1
        if self.failures[key] <= EXAMPLES:
            self.records.append(record)
            self._keep_outputs(record)

    def _keep_outputs(self, record: Record) -> bool:
        """Keep what a record is judged again from; whether there is any, and room for it."""
        digests = outputs_of(record)
        found = {digest: content for content in self.outputs if (digest := sha256(content).hexdigest()) in digests}
        size = sum(map(len, found.values()))
        if not digests <= set(found) or not found or size > min(OUTPUT_BYTES, CHUNK_OUTPUT_BYTES - self.blob_bytes):
            return False
        self.blobs |= found
        self.blob_bytes += size
        return True

    def result(
        self, parents: tuple[Parent, ...], *, seconds: float, broken_off: int, waivers: WaiverEvidence
    ) -> ChunkResult:
        """All of it."""
        covered = packed(self.factors, judged=self.judged, tried=self.tried, limits=self.limits)
        return ChunkResult(
            index=self.chunk.index,
            summary=self.summary,
            learned=Learned(covered=covered, parents=parents, worst=self.worst, judged=self.number),
            records=tuple(self.records),
            blobs=self.blobs,
            failures=dict(self.failures),
            seconds=seconds,
            broken_off=broken_off,
            waivers=waivers,
        )


def _not_alone(job: ExamineJob, again: Trial | None, executions: int) -> Examined:
    """What became of a finding that no trial shows alone."""
    if again is not None and job.chunk is not None:
        confirmed = Confirmed.COMPANY
        number = job.chunk.index
        note = f"alone it conforms; in a fresh process it fails again after the trials of chunk {number} before it"
    elif job.chunk is not None:
        confirmed = Confirmed.SOMETIMES
        note = "it failed, then neither alone nor when its chunk was run again in a fresh process"
    else:
        confirmed, note = Confirmed.UNKNOWN, "alone it conforms, and the chunk that met it is not known any more"
    return Examined(
        signature=job.signature, confirmed=confirmed, alone=(0, executions), trial=again or job.trials[0], note=note
    )


def _failed(record: Record) -> bool:
    return record.verdict.result == Result.FAILED


def _deadly(trial: Trial) -> Record:
    """The record of a trial that ended two workers and is not made a third time."""
    message = (
        "the judge's own process ended twice with this call under way, so it is not made again; an implementation "
        "that may end its process is to be run in one of its own"
    )
    verdict = Verdict(result=Result.ERROR, message=message)
    return Record(
        trial_id=trial.id,
        trial=trial,
        attempts=(),
        verdict=verdict,
        signature=signature(verdict, operator=trial.case.operator, promise=trial.promise),
    )


def open_worker(options: WorkerOptions, notes: Notes | None) -> CampaignWorker:
    """Open an implementation for a worker. Raises as `open_host` does."""
    settings = options.settings
    specs = load_specs(settings.spec_folders)
    host = settings.open_host(specs)
    if notes is not None and not host.isolated:
        host = cast("SessionHost", NotingHost(host, notes))
    waivers = waivers_of_run(options.waivers, settings=settings, environment=host.environment, specs=specs)
    # Whether a failure is one of company is asked once a finding, not once a worker.
    bench = Bench(specs=specs, host=host, settings=settings, explained=lambda _record: True)
    return CampaignWorker(specs=specs, bench=bench, waivers=waivers, notes=notes, chunk_seconds=options.chunk_seconds)
