"""A worker of a campaign: owns one device, judges chunks, and looks into findings."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

from aclnn_cts.core.note import JUDGE_ENDED_FACT
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Record, Result, Signature, Verdict
from aclnn_cts.engine.bench import Bench
from aclnn_cts.engine.campaign.chunk import Chunk, ChunkTrial, chunk_trials, parent_of
from aclnn_cts.engine.campaign.factors import Factors
from aclnn_cts.engine.campaign.finding import Confirmed, found_as
from aclnn_cts.engine.campaign.flight import Notes, NotingHost
from aclnn_cts.engine.campaign.jobs import ChunkJob, ChunkResult, Examined, ExamineJob, WorkerOptions
from aclnn_cts.engine.campaign.shrink import EXECUTIONS, shrink
from aclnn_cts.engine.campaign.tally import SAMPLE, Tally
from aclnn_cts.engine.host import SessionHost
from aclnn_cts.engine.waivers import Waivers, waivers_of_run
from aclnn_cts.judge.verdict import signature
from aclnn_cts.spec.load import Specs, load_specs

__all__ = ["CampaignWorker", "open_worker"]

ALONE = 3
"""Executions by which a finding is confirmed."""


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
        tally = Tally(chunk, self._factors_of(chunk.operator))
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

    def _records(self, trials: Iterable[Trial], tally: Tally) -> Iterator[Record]:
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
        tally = Tally(job.chunk, self._factors_of(job.chunk.operator))
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
    verdict = Verdict(result=Result.ERROR, message=message, facts={JUDGE_ENDED_FACT: True})
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
    bench = Bench(specs=specs, host=host, settings=settings, explained=lambda _record: True, sample=SAMPLE)
    return CampaignWorker(specs=specs, bench=bench, waivers=waivers, notes=notes, chunk_seconds=options.chunk_seconds)
