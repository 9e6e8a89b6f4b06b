"""Where trials are run and judged: an open implementation, the specs, the oracles and the compute models together."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from aclnn_cts.adapters.cann.safety import hazard
from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.outcome import Ended
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Record, Result, Skip, Verdict
from aclnn_cts.engine.again import COMPANY_ALLOWED, confirmed
from aclnn_cts.engine.batches import Batch, batches
from aclnn_cts.engine.coverage import Coverage
from aclnn_cts.engine.evidence import Evidence
from aclnn_cts.engine.host import SessionHost
from aclnn_cts.engine.judges import Judges
from aclnn_cts.engine.judging import Judge
from aclnn_cts.engine.laws import LAW_KIND, PREFIX
from aclnn_cts.engine.life_cycle import asked_calls
from aclnn_cts.engine.perform import Asked, Performed, Performer
from aclnn_cts.engine.plan import Part
from aclnn_cts.engine.promises import VALUED, promise
from aclnn_cts.engine.sentinel import device_check, sentinel
from aclnn_cts.engine.settings import BenchSettings
from aclnn_cts.engine.targets import unsupported_phases
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.judge.verdict import signature
from aclnn_cts.spec.evaluate import Evaluation, evaluate
from aclnn_cts.spec.load import Specs
from aclnn_cts.spec.model import Spec

__all__ = ["SAMPLE", "Bench", "Judged", "is_sampled"]


SAMPLE = 64
"""Of so many trials of a run, one is put to all rulers although it passes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What a batch of trials came to."""

    records: tuple[Record, ...]
    coverage: Coverage
    blobs: tuple[bytes, ...] = ()
    """Outputs of failures and of a sample, row by row; a record names each by its SHA-256."""


@dataclass(slots=True, kw_only=True)
class Bench:
    """Runs and judges trials in one process. Holds an open host; whoever opened that closes it."""

    specs: Specs
    host: SessionHost
    settings: BenchSettings
    """With the target that cases are made for."""
    explained: Callable[[Record], bool] = lambda _record: False
    """Of a failure: whether a waiver speaks for it. Then it is known, and is not run again alone."""
    sparing: bool = False
    """Whether a sample of the explained failures is put to the rulers, and not every one."""
    sample: int = SAMPLE
    """Of so many trials that pass, one is put to all rulers, and its outputs are kept."""
    overlapped: bool = True
    """Whether an isolated implementation is at work on the next batch while one is judged."""
    _judges: Judges = field(init=False)
    _samplers: dict[str, Sampler] = field(default_factory=dict)
    _withheld: Coverage = field(default_factory=Coverage)
    """Trials of laws that were planned and could not be generated, until a batch tells of them."""
    _looks: dict[str, Case | None] = field(default_factory=dict)
    """By operator, the call that shows whether a device is well."""
    _repeated: Counter[str] = field(default_factory=Counter)
    """How many failures of each signature were run again."""
    _evidence: Evidence = field(default_factory=Evidence)

    def __post_init__(self) -> None:
        """Refuse what the implementation must not, or cannot, be asked for; see to its device after faults."""
        capabilities = self.host.capabilities
        if self.settings.unsafe and capabilities.hardware:
            raise UsageError(
                f"--unsafe: {capabilities.description} is a real device; calls that could harm it are for software "
                f"devices alone (--adapter loopback)"
            )
        if reason := unsupported_phases(self.host, self.settings.phases):
            raise HarnessError(f"--adapter {self.settings.adapter}: {reason}")
        self._judges = Judges(
            has_statuses=capabilities.statuses,
            spec_folders=self.settings.spec_folders,
            measuring=self.settings.measuring,
        )
        check = device_check(self.host, self._all_samplers, self.specs, phases=self.settings.phases)
        self.host.on_device_fault(check)

    def _all_samplers(self) -> list[Sampler]:
        product = self.settings.target.product
        return [self.sampler(spec) for spec in self.specs.values() if product in spec.products]

    def sampler(self, spec: Spec) -> Sampler:
        """The generator of an operator's cases for the bench's target."""
        if spec.operator not in self._samplers:
            self._samplers[spec.operator] = Sampler(spec, self.settings.target)
        return self._samplers[spec.operator]

    def judge(self, spec: Spec) -> Judge:
        """The judge of an operator."""
        return self._judges.of(spec)

    def expand(self, part: Part, *, seed: int) -> Iterator[Trial]:
        """The trials of a part of a plan."""
        sampler = self.sampler(self.specs[part.operator])
        number = 0
        for trial in promise(part.promise, where="plan").trials(part, sampler, seed=seed):
            number += 1
            yield trial
        if part.kind == LAW_KIND and number < part.count:
            self._withheld.withhold(part.operator, part.promise, part.count - number)

    def run(self, trials: Iterable[Trial]) -> Iterator[Judged]:
        """Run and judge trials, batch by batch; they are taken from an iterator as batches need them."""
        yield from self.judged(self._batches(trials))
        yield from self._told_withheld()

    def run_parts(self, parts: Iterable[Part], *, seed: int) -> Iterator[tuple[Part, int, Judged]]:
        """Expand, run and judge parts of a plan: part, trials that it planned (with its first batch), what came."""
        waiting: deque[tuple[Part, int]] = deque()

        def expanded() -> Iterator[Sequence[Trial]]:
            for part in parts:
                trials = list(self.expand(part, seed=seed))
                number = len(trials)
                for batch in self._batches(trials):
                    waiting.append((part, number))
                    yield batch
                    number = 0
                if not trials:
                    waiting.append((part, 0))
                    yield ()

        for judged in self.judged(expanded()):
            part, number = waiting.popleft()
            yield part, number, judged
            for withheld in self._told_withheld():
                yield part, 0, withheld

    def _batches(self, trials: Iterable[Trial]) -> Iterator[Sequence[Trial]]:
        return batches(trials, max_bytes=self.settings.max_bytes, overlapped=self._overlaps)

    @property
    def _overlaps(self) -> bool:
        return self.overlapped and self.host.isolated

    def _told_withheld(self) -> Iterator[Judged]:
        if self._withheld.withheld:
            withheld, self._withheld = self._withheld, Coverage()
            yield Judged(records=(), coverage=withheld)

    def judged(self, batches: Iterable[Sequence[Trial]]) -> Iterator[Judged]:
        """Run and judge batches. An isolated implementation is at work on the next while one is judged.

        What else the host is asked for meanwhile waits for that next one; records are the same as one by one.
        """
        remaining = iter(batches)
        trials = next(remaining, None)
        started: deque[Batch] = deque()
        try:
            while trials is not None:
                batch = self._prepared(trials)
                trials = next(remaining, None)
                if not self._overlaps or (trials is None and not started):
                    # Nothing is to be done meanwhile.
                    yield self._judged(batch)
                    continue
                for before in started:
                    before.finish()
                batch.prepared.start()
                started.append(batch)
                if len(started) > 1:
                    yield self._judged(started[0], meanwhile=batch)
                    started.popleft().prepared.end()
            if started:
                yield self._judged(started[0])
        finally:
            for batch in started:
                batch.prepared.end()

    def _prepared(self, trials: Sequence[Trial]) -> Batch:
        began = time.perf_counter()
        evaluations = [evaluate(self.specs[trial.case.operator], trial.case) for trial in trials]
        skipped = [self._skipped(trial.case, found) for trial, found in zip(trials, evaluations, strict=True)]
        asked: list[Asked] = []
        spans: list[tuple[int, int]] = []
        for trial, verdict in zip(trials, skipped, strict=True):
            calls = [] if verdict is not None else self._asked(trial, group=len(spans))
            spans.append((len(asked), len(asked) + len(calls)))
            asked.extend(calls)
        prepared = self._performer.prepare(asked)
        return Batch(
            trials=trials,
            evaluations=evaluations,
            skipped=skipped,
            spans=spans,
            prepared=prepared,
            seconds=time.perf_counter() - began,
        )

    def _judged(self, batch: Batch, *, meanwhile: Batch | None = None) -> Judged:
        """What a batch came to; `meanwhile` is under way and is seen to."""
        batch.finish()
        share = batch.seconds / max(len(batch.trials), 1)
        records: list[Record] = []
        coverage = Coverage()
        blobs: list[bytes] = []
        began = time.perf_counter()
        trial_ids = [trial.id for trial in batch.trials]
        known: set[str] = set()
        judges = self._acquainted(batch, trial_ids, known)
        share += (time.perf_counter() - began) / max(len(batch.trials), 1)
        for trial, trial_id, evaluation, unsafe, (first, last) in zip(
            batch.trials, trial_ids, batch.evaluations, batch.skipped, batch.spans, strict=True
        ):
            if meanwhile is not None:
                meanwhile.prepared.advance()
            started = time.perf_counter()
            attempt = batch.performed[first:last]
            coverage.add(trial.case.operator, evaluation)
            if trial.promise.startswith(PREFIX):
                coverage.add_law(trial.case.operator, trial.promise)
            sampled = is_sampled(trial_id, every=self.sample)
            verdict = unsafe or self._verdict(trial, attempt, evaluation, judges[trial.case.operator], sampled=sampled)
            seconds = share + time.perf_counter() - started
            records.append(self._record(trial, trial_id, attempt, evaluation, verdict, seconds))
            if verdict.result == Result.FAILED or sampled:
                blobs.extend(view.tobytes() for item in attempt for view in item.got.values())
        if self.host.isolated:
            records = self._confirmed(records, batch.evaluations, meanwhile, known)
        return Judged(records=tuple(records), coverage=coverage, blobs=tuple(blobs))

    @property
    def _performer(self) -> Performer:
        return Performer(
            host=self.host,
            specs=self.specs,
            max_bytes=self.settings.max_bytes,
            phases=self.settings.phases,
            look=self._look,
        )

    def _look(self, operator: str) -> Case | None:
        """What shows that a device is well; None where the implementation has none, or nothing is plainly valid."""
        if not self.host.isolated or self.host.capabilities.target is None or self.settings.phases == 1:
            return None
        if operator not in self._looks:
            try:
                self._looks[operator] = sentinel(self.sampler(self.specs[operator]))
            except HarnessError:
                self._looks[operator] = None
        return self._looks[operator]

    def _asked(self, trial: Trial, *, group: int) -> list[Asked]:
        cases = _calls(self.specs, trial)
        calls = asked_calls(trial, self.specs[trial.case.operator], cases, known=self.host.capabilities.manners)
        return [call if call.group is None else msgspec.structs.replace(call, group=group) for call in calls]

    def _confirmed(
        self, records: Sequence[Record], evaluations: Sequence[Evaluation], meanwhile: Batch | None, known: set[str]
    ) -> list[Record]:
        """The records, with the first unwaived failures of each signature run again alone in a fresh process.

        `known`: ids of trials whose failure is explained; of others that is asked.
        """
        found = list(records)
        fresh = False
        for place, (record, evaluation) in enumerate(zip(records, evaluations, strict=True)):
            if record.verdict.result != Result.FAILED or record.trial_id in known:
                continue
            if self.explained(record) or not self._is_new(record):
                continue
            if not fresh:
                if meanwhile is not None:
                    meanwhile.finish()
                self.host.refresh()
                fresh = True
            attempt = self._performer.perform(self._asked(record.trial, group=0))
            judge = self.judge(self.specs[record.trial.case.operator])
            verdict = self._verdict(record.trial, attempt, evaluation, judge, sampled=False)
            found[place] = confirmed(record, attempt, verdict)
        return found

    def _is_new(self, record: Record) -> bool:
        text = record.signature.text()
        self._repeated[text] += 1
        return self._repeated[text] <= COMPANY_ALLOWED

    def _skipped(self, case: Case, evaluation: Evaluation) -> Verdict | None:
        if self.settings.unsafe:
            return None
        both_phases = self.settings.phases != 1 and case.call.phases != 1
        reason = hazard(self.specs[case.operator], case, both_phases=both_phases, evaluation=evaluation)
        return Verdict(result=Result.SKIPPED, kind=Skip.UNSAFE, message=reason) if reason else None

    def _acquainted(self, batch: Batch, trial_ids: Sequence[str], known: set[str]) -> dict[str, Judge]:
        """The judge of each operator, which has looked at the values of the batch's calls together.

        `known` is filled while it judges, with the ids of trials whose failure turns out to be explained.
        """
        valued: dict[str, list[Performed]] = {trial.case.operator: [] for trial in batch.trials}
        places: dict[int, int] = {}
        for place, (trial, (first, last)) in enumerate(zip(batch.trials, batch.spans, strict=True)):
            if first < last and trial.promise in VALUED:
                valued[trial.case.operator].append(batch.performed[first])
                if self.sparing and not batch.evaluations[place].broken:
                    places[id(batch.performed[first])] = place

        def spared(performed: Performed, verdict: Verdict) -> bool:
            place = places.get(id(performed))
            if place is None:
                return False
            trial, evaluation = batch.trials[place], batch.evaluations[place]
            record = self._record(trial, trial_ids[place], (performed,), evaluation, verdict, 0.0)
            if not self.explained(record):
                return False
            known.add(record.trial_id)
            return not self._evidence.wanted(record)

        return {name: self.judge(self.specs[name]).acquainted(calls, spared=spared) for name, calls in valued.items()}

    def _verdict(
        self, trial: Trial, attempt: Sequence[Performed], evaluation: Evaluation, judge: Judge, *, sampled: bool
    ) -> Verdict:
        if sampled:
            judge = judge.thorough
        try:
            verdict = promise(trial.promise, where="trial").judge(trial, attempt, judge, evaluation)
        except (UsageError, HarnessError):
            raise
        except Exception as error:  # noqa: BLE001 - a mistake of ours costs one trial its verdict and is an error there
            return Verdict(result=Result.ERROR, message=f"the harness failed: {type(error).__name__}: {error}")
        if any(item.outcome.ended == Ended.NOT_RUN for item in attempt):
            return Verdict(result=Result.ERROR, message="; ".join(item.outcome.message for item in attempt))
        return verdict

    def _record(
        self,
        trial: Trial,
        trial_id: str,
        attempt: Sequence[Performed],
        evaluation: Evaluation,
        verdict: Verdict,
        seconds: float,
    ) -> Record:
        spec = self.specs[trial.case.operator]
        constraint = trial.case.origin.constraint or ""
        if evaluation.broken and not constraint:
            constraint = evaluation.broken[0].id
        return Record(
            trial_id=trial_id,
            trial=trial,
            attempts=(tuple(item.outcome for item in attempt),),
            verdict=verdict,
            signature=signature(
                verdict,
                operator=trial.case.operator,
                promise=trial.promise,
                constraint=constraint if evaluation.broken else "",
                dtype=_dtype_class(spec, trial.case),
            ),
            clauses=spec.clauses_of(constraint) if constraint else (),
            seconds=seconds,
            where=self._where(),
        )

    def _where(self) -> Mapping[str, str]:
        return {"adapter": self.settings.adapter}


def is_sampled(trial_id: str, *, every: int = SAMPLE) -> bool:
    """One trial in `every`, a power of two up to 256: the same ones for the same plan, the fewer among the more."""
    return int(trial_id[:2], 16) % every == 0


def _calls(specs: Specs, trial: Trial) -> tuple[Case, ...]:
    return promise(trial.promise, where="trial").calls(trial, specs[trial.case.operator])


def _dtype_class(spec: Spec, case: Case) -> str:
    """The dtype that findings are told apart by: that of the first output."""
    for name in spec.outputs:
        tensor = case.arguments.get(name)
        if isinstance(tensor, Tensor):
            return tensor.dtype
    return ""
