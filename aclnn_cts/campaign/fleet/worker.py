"""A worker of a run or campaign: owns one device, judges chunks, and looks into findings."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

from aclnn_cts.campaign.corpus.chunk import Chunk, ChunkTrial, chunk_trials, parent_of
from aclnn_cts.campaign.corpus.factors import Factors
from aclnn_cts.campaign.fleet.inflight_log import Notes, NotingHost
from aclnn_cts.campaign.fleet.jobs import (
    ChunkJob,
    ChunkResult,
    Examined,
    ExamineJob,
    Job,
    PlanJob,
    PlanResult,
    WorkerOptions,
)
from aclnn_cts.campaign.fleet.tally import SAMPLE, Tally
from aclnn_cts.campaign.fleet.triage import Examiner
from aclnn_cts.core.note import JUDGE_ENDED_FACT
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Record, Result, Verdict
from aclnn_cts.findings.dedup_key import with_root_cause
from aclnn_cts.findings.waivers.matching import Waivers, waivers_of_run
from aclnn_cts.judgement.verdict import fingerprint
from aclnn_cts.sandbox.host import SessionHost
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.trials.trial_runner import Bench


@dataclass(slots=True, kw_only=True)
class CampaignWorker:
    """Holds an open implementation. `open_worker` makes one; whoever did closes its host."""

    bench: Bench
    waivers: Waivers
    notes: Notes | None
    chunk_seconds: float
    _factors: dict[str, Factors] = field(default_factory=dict)

    def do(self, job: Job) -> ChunkResult | PlanResult | Examined:
        """Do a job."""
        match job:
            case ChunkJob():
                return self.judge(job.chunk, avoid=frozenset(job.avoid), seconds=job.seconds)
            case PlanJob(chunk):
                return PlanResult(index=chunk.index, batches=tuple(self.bench.run_parts(chunk.parts, seed=chunk.seed)))
            case ExamineJob():
                return Examiner(bench=self.bench, waivers=self.waivers).examine(job)

    def judge(self, chunk: Chunk, *, avoid: frozenset[str] = frozenset(), seconds: float | None = None) -> ChunkResult:
        """Try a chunk, for so many seconds. `avoid`: ids of trials that must not be made, each an error."""
        began = time.monotonic()
        most = self.chunk_seconds if seconds is None else min(seconds, self.chunk_seconds)
        sampler = self.bench.sampler(self.bench.specs[chunk.operator])
        items = list(chunk_trials(chunk, sampler))
        tally = Tally(chunk, self._factors_of(chunk.operator))
        tally.withhold(items)
        run = items
        if avoid:  # an id is a hash of the whole trial
            for item in items:
                if item.trial.id in avoid:
                    tally.add(item, _deadly(item.trial))
            run = [item for item in items if item.trial.id not in avoid]
        handout = _Handout(chunk, run, self.notes, until=began + most)
        for item, record in zip(run, self._records(handout, tally), strict=False):
            handout.judged += 1
            tally.add(item, record)
        if self.notes is not None:
            self.notes.idle()
        return tally.result(
            tuple(parent_of(chunk, sampler, draw, share) for share, draw in tally.good),
            seconds=time.monotonic() - began,
            broken_off=len(run) - handout.handed,
            waivers=self.waivers.evidence,
        )

    def _records(self, trials: Iterable[Trial], tally: Tally) -> Iterator[Record]:
        for judged in self.bench.run(trials):
            tally.summary.include(judged.coverage)
            tally.outputs = judged.blobs
            for record in judged.records:
                waived = self.waivers.apply(record)
                failed = waived.verdict.result == Result.FAILED
                yield with_root_cause(waived, self.bench.specs, self.bench.one) if failed else waived

    def _factors_of(self, operator: str) -> Factors:
        if operator not in self._factors:
            self._factors[operator] = Factors(self.bench.sampler(self.bench.specs[operator]))
        return self._factors[operator]


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
                self.notes.batch(self.chunk.index, self.judged, self.handed - self.judged, len(self.items))
            yield item.trial


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
        fingerprint=fingerprint(verdict, operator=trial.case.operator, check=trial.check),
    )


def open_worker(options: WorkerOptions, notes: Notes | None) -> CampaignWorker:
    """Open an implementation for a worker. Raises as `open_host` does."""
    settings = options.settings
    specs = load_specs(settings.spec_folders, edition=settings.edition)
    host = settings.open_host(specs)
    if notes is not None and not host.isolated:
        host = cast("SessionHost", NotingHost(host, notes))
    waivers = waivers_of_run(options.waivers, settings=settings, environment=host.environment, specs=specs)
    if options.conformance:
        bench = Bench(specs=specs, host=host, settings=settings, explained=waivers.explains, sparing=True)
    else:
        # Whether a failure depends on earlier calls is asked once a finding, not once a worker.
        bench = Bench(specs=specs, host=host, settings=settings, explained=lambda _record: True, sample=SAMPLE)
    return CampaignWorker(bench=bench, waivers=waivers, notes=notes, chunk_seconds=options.chunk_seconds)
