"""Looks into a finding of a campaign: runs it again alone, else after other calls, and makes it smaller."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import msgspec

from aclnn_cts.campaign.corpus.chunk import chunk_trials
from aclnn_cts.campaign.fleet.jobs import KNOWN, Examined, ExamineJob
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.trial import Earlier, Trial
from aclnn_cts.core.verdict import Record, Result
from aclnn_cts.findings.dedup_key import gravity, is_milder, same_finding, shown_by, with_root_cause
from aclnn_cts.findings.finding import Confirmed
from aclnn_cts.findings.waivers.matching import Waivers
from aclnn_cts.triage.shrink import EXECUTIONS, shrink
from aclnn_cts.trials.trial_runner import Bench

ALONE = 3
"""Executions by which a finding is confirmed."""

EXECUTIONS_AFTER = 20
"""Executions that shrinking takes of a trial that needs calls before it: each has a process of its own."""


@dataclass(slots=True, kw_only=True)
class Examiner:
    """Does one examination on an open implementation."""

    bench: Bench
    waivers: Waivers
    _until: float = math.inf
    """When, by the monotonic clock, confirming is broken off."""

    def examine(self, job: ExamineJob) -> Examined:
        """Confirm a finding by its first trial that fails again, and make that smaller."""
        until = math.inf if job.seconds is None else time.monotonic() + job.seconds
        self._until = until
        try:
            found, kind = self._confirmed(job)
        except _OutOfTimeError:
            note = f"not confirmed: running it again was broken off after {job.seconds:.0f} s; --resume tries it again"
            return Examined(key=job.key, confirmed=Confirmed.WAITING, alone=(0, 0), note=note)
        finally:
            self._until = math.inf
        if not kind or found.trial is None or not job.shrink:
            return found
        sampler = self.bench.sampler(self.bench.specs[found.trial.case.operator])
        after = bool(found.trial.after)
        small = shrink(
            found.trial,
            sampler=sampler,
            execute=self._freshly if after else self.bench.one,
            same=lambda record: self._same(record, job.key) and not is_milder(record.verdict.kind, than=kind),
            executions=EXECUTIONS_AFTER if after else EXECUTIONS,
            repeats=ALONE if found.confirmed == Confirmed.FLAKY else 1,
            until=until,
        )
        judged = next(iter(self.bench.run([small.trial])))
        broken_off = "" if small.complete else f"shrinking was broken off after {small.executions} executions"
        return msgspec.structs.replace(
            found,
            trial=small.trial,
            message=(small.record or judged.records[0]).verdict.message,
            executions=small.executions,
            shrunk=True,
            note="; ".join(filter(None, (found.note, broken_off))),
            blobs=judged.blobs,
        )

    def _confirmed(self, job: ExamineJob) -> tuple[Examined, str]:
        """What comes of a finding's trials alone, and else after the calls that came before them.

        With the kind of fault of the trial that is to be made smaller; empty where there is none.
        """
        for trial in (tried for given in job.trials for tried in shown_by(given, job.key, self.bench.specs)):
            if failures := self._alone(trial, job.key):
                return _alone(job, trial, failures, ALONE)
        if (known := self._after_known(job)) is not None:
            return known
        again, before = self._in_company(job)
        if again is None:
            return _nothing(job), ""
        if failures := self._alone(again.trial, job.key):
            return _alone(job, again.trial, failures, 2 * ALONE)
        after: tuple[Earlier, ...] = ()
        if self.bench.host.isolated and len(job.known) < KNOWN:
            after = self.bench.calls_before(again.trial, before, same=lambda record: self._same(record, job.key))
        return _after(job, again, after, 2 * ALONE), again.verdict.kind if after else ""

    def _after_known(self, job: ExamineJob) -> tuple[Examined, str] | None:
        """What fails in a fresh process after the calls that another finding needs."""
        for calls in job.known if self.bench.host.isolated else ():
            for given in job.trials:
                record = self._freshly(msgspec.structs.replace(given, after=calls))
                if self._same(record, job.key):
                    return _after(job, record, calls, ALONE, whose="another finding needs"), ""
        return None

    def _alone(self, trial: Trial, looked_for: Fingerprint) -> list[Record]:
        """Those of some executions that fail the same way, each in a process without a past where the host has one."""
        records = [self._freshly(trial) for _ in range(ALONE)]
        return [record for record in records if self._same(record, looked_for)]

    def _in_company(self, job: ExamineJob) -> tuple[Record | None, list[Trial]]:
        """What fails the same way when the chunk that met it is run again in a fresh process, and what came before."""
        before: list[Trial] = []
        if job.chunk is None:
            return None, before
        self.bench.host.refresh()
        items = list(chunk_trials(job.chunk, self.bench.sampler(self.bench.specs[job.chunk.operator])))
        for judged in self.bench.run(item.trial for item in items):
            for record in judged.records:
                if _may_be(record, job.key) and self._same(record, job.key):
                    return record, before
                before.append(record.trial)
        return None, before

    def _freshly(self, trial: Trial) -> Record:
        return self.bench.one(trial, fresh=True)

    def _same(self, record: Record, looked_for: Fingerprint) -> bool:
        if time.monotonic() >= self._until:
            raise _OutOfTimeError
        if record.verdict.result == Result.FAILED and self.waivers.explains(record):
            return False
        return same_finding(
            looked_for, record, cause=lambda item: with_root_cause(item, self.bench.specs, self.bench.one)
        )


def _may_be(record: Record, looked_for: Fingerprint) -> bool:
    """Whether it is worth asking, for which calls of the trial may have to be made alone."""
    found = record.fingerprint
    same_dtype = found.dtype == looked_for.dtype or not looked_for.dtype or bool(record.trial.parameters)
    return same_dtype and (found.mode == looked_for.mode or not looked_for.mode or not found.mode)


class _OutOfTimeError(Exception):
    """Confirming a finding has taken its time."""


def _alone(job: ExamineJob, trial: Trial, failures: list[Record], executions: int) -> tuple[Examined, str]:
    """A trial that fails again alone, and the gravest kind of fault that it shows."""
    confirmed = Confirmed.ALWAYS if len(failures) == executions else Confirmed.FLAKY
    kind = min((record.verdict.kind for record in failures), key=gravity)
    return Examined(key=job.key, confirmed=confirmed, alone=(len(failures), executions), trial=trial), kind


def _after(
    job: ExamineJob, met: Record, after: tuple[Earlier, ...], executions: int, *, whose: str = "came before it"
) -> Examined:
    """A trial that fails again after other calls, or where these are not known after those of its chunk."""
    number = sum(item.times for item in after)
    calls = "one call" if number == 1 else f"{number} calls"
    index = job.chunk.index if job.chunk is not None else 0
    note = (
        f"alone it conforms; it fails again after {calls} that {whose}, which its trial makes first"
        if after
        else f"alone it conforms; in a fresh process it fails again after the trials of chunk {index} before it"
    )
    trial = msgspec.structs.replace(met.trial, after=after)
    return Examined(key=job.key, confirmed=Confirmed.ORDER, alone=(0, executions), trial=trial, note=note)


def _nothing(job: ExamineJob) -> Examined:
    """A trial that does not fail again."""
    confirmed, note = Confirmed.UNKNOWN, "alone it conforms, and the chunk that met it is not known any more"
    if job.chunk is not None:
        confirmed = Confirmed.FLAKY
        note = "it failed, then neither alone nor when its chunk was run again in a fresh process"
    return Examined(key=job.key, confirmed=confirmed, alone=(0, ALONE), trial=job.trials[0], note=note)
