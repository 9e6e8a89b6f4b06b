"""One candidate judged: the trials that find most first, until one fails, all have passed, or time is up."""

from __future__ import annotations

import math
import random
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import msgspec
import numpy as np

from aclnn_cts.candidates.candidate import Candidate, PreparedCandidate, prepare_candidate
from aclnn_cts.candidates.cases import case_of, drawn_seed, is_integer
from aclnn_cts.candidates.check import JudgedDocument, judged_document, shipped_specs, worst_element
from aclnn_cts.candidates.verdict import CandidateFinding, Isolation, Judgement
from aclnn_cts.core.case import with_arguments
from aclnn_cts.core.dtypes import component
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.outcome import CallEnd
from aclnn_cts.core.printable import quote
from aclnn_cts.core.rounding import BINARY_FORMATS, spacing
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Record, Result, RunVerdict, SkipReason
from aclnn_cts.execution.settings import RunnerSettings
from aclnn_cts.findings.finding_text import quoted_clause
from aclnn_cts.sandbox.candidate_host import NOT_CALLED, CandidateHost
from aclnn_cts.sandbox.host import SessionHost
from aclnn_cts.store.run_verdict import MIN_JUDGED
from aclnn_cts.trials.plan import EQUAL_CALLS, Part, plan_parts
from aclnn_cts.trials.plan import profile as chosen_profile
from aclnn_cts.trials.trial_runner import TrialRunner

FIRST, NEXT, BATCH = 16, 48, 64
"""Trials of the first batch, of the next and of all others: a wrong candidate mostly fails in the first."""
ENOUGH = 48
"""Trials of the plan that must have passed for a candidate to conform where the budget ends before the plan."""
_REPEATED = 4
"""Of so many batches after the first, one is called again with other values, and at other addresses."""
_MOVED = 2
"""The round of a repeated batch whose memory begins elsewhere."""
_BURSTS, _BURST = 3, 12
"""Trials of a repeated batch that are called on, and how often: what is right ten times is called more often."""
_WORTH, _SMALL = 64, 1 << 16
"""Bytes of their arguments."""
_SHIFTS = 64
"""Places, of a page each, that the memory of equal calls is moved to."""
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ms|s|m|min)?")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0}
_VALUED = frozenset({"values", "memory", "example", *EQUAL_CALLS})
"""The checks that are put to a function, which has no statuses."""


def seconds_of(budget: str | float) -> float:
    """Seconds of `10s`, `500ms`, `2m` or a number. Raises UsageError."""
    found = _DURATION.fullmatch(str(budget).strip())
    seconds = float(found[1]) * _UNITS[found[2] or "s"] if found else 0.0
    if not 0 < seconds <= 86_400:
        raise UsageError(f"budget {quote(budget)}: expected a time such as 500ms, 10s or 2m, at most a day")
    return seconds


@dataclass(slots=True, kw_only=True)
class _Tally:
    """What the trials of one candidate came to so far."""

    reveal: int
    passed: int = 0
    failed: int = 0
    unjudged: int = 0
    left_open: int = 0
    """Of these, what the document leaves open: nobody has to have it judged."""
    repeated: int = 0
    passed_first: int = 0
    call_seconds: float = 0.0
    error_ratio: float = 0.0
    """The largest of all failures."""
    error: str = ""
    """Why the harness could not go on."""
    failures: dict[tuple[str, str], Record] = field(default_factory=dict)
    """The smallest failure of each fault and output."""

    @property
    def judged(self) -> int:
        return self.passed + self.failed

    @property
    def made(self) -> int:
        return self.judged + self.unjudged

    @property
    def counted(self) -> int:
        """Trials that must be judged."""
        return self.made - self.left_open

    def add(self, record: Record, *, repeated: bool) -> None:
        """Count one trial, of the plan or repeated; none that was not made."""
        verdict = record.verdict
        if verdict.result == Result.SKIPPED and verdict.message.startswith(NOT_CALLED):
            return
        self.repeated += repeated
        self.call_seconds += sum(outcome.seconds for outcomes in record.attempts for outcome in outcomes)
        if verdict.result == Result.PASSED:
            self.passed += 1
            self.passed_first += not (self.failed or repeated)
        elif verdict.result == Result.FAILED:
            self.failed += 1
            self.error_ratio = max(self.error_ratio, _error_ratio(record))
            key = str(verdict.kind), record.fingerprint.output
            known = self.failures.get(key)
            if known is None and len(self.failures) >= self.reveal:
                return
            if known is None or record.trial.case.nbytes < known.trial.case.nbytes:
                self.failures[key] = record
        elif verdict.result == Result.ERROR:
            self.error = self.error or verdict.message
        elif verdict.result == Result.SKIPPED:
            self.unjudged += 1
            self.left_open += verdict.kind == SkipReason.OPEN


def _error_ratio(record: Record) -> float:
    """Of the worst element: error over bound, which no exact element has; of that error over half its last place."""
    worst = worst_element(record.verdict)
    if worst is None:
        return 0.0
    ratio, tensor = float(worst.error_ratio), record.trial.case.tensor(worst.output)
    got, right = worst.got, worst.expected
    if ratio < math.inf or tensor is None or isinstance(got, str) or isinstance(right, str):
        return ratio
    form = BINARY_FORMATS.get(component(tensor.dtype))
    place = 1.0 if form is None else float(spacing(np.float64(right), form))
    return max(abs(got - right) / (place / 2), 1.0)


def judge(  # noqa: PLR0913 - each is a choice of the caller's
    candidate: Candidate,
    op: str,
    *,
    budget: str | float = "10s",
    seed: int | None = None,
    fail_fast: bool = True,
    reveal: int = 1,
    sandbox: bool = True,
    product: str | None = None,
    edition: str | None = None,
    profile: str = "quick",
    workers: int = 1,
) -> Judgement:
    """Judge an implementation of an operator: calls that its document supports, compared with derived bounds.

    - `candidate`: a function, `FILE.py:FUNCTION`, a shared library with the C interface (`FILE.so`), or the word of an
      adapter. A function is given arrays and attributes by parameter name (`gradOutput` or `grad_output`), as many as
      it takes, and returns the outputs in the order of the prototype or by name, or writes into those that it takes.
      It has torch tensors where the annotation of a parameter says so. Results are rounded to the output's dtype.
    - `budget`: how long it may take in all; no single call may take longer.
    - `seed`: the same seed makes the same calls; None: one from the system's entropy, which the judgement records.
    - `fail_fast`: stop with the batch of the first failure. `reveal`: how many findings are shown.
    - `sandbox`: False runs a function in this process, which the judgement says: a closure cannot be run elsewhere.
    - `product`, `edition`: as for `check`. `profile`: `quick`, `standard` or `thorough`.
    - `workers`: how many judges share this machine's memory.

    Raises UsageError for a candidate, operator or option that is wrong, HarnessError where nothing can be run here.
    """
    began = time.monotonic()
    seconds = seconds_of(budget)
    for name, number, least in (("reveal", reveal, 0), ("workers", workers, 1)):
        if not (is_integer(number) and number >= least):
            raise UsageError(f"{name}: {quote(number)}; expected an integer, {least} or more")
    drawn = drawn_seed(seed)
    known = judged_document(op, product, edition)
    found = prepare_candidate(candidate, sandbox=sandbox)
    specs = shipped_specs(edition or "")
    settings = RunnerSettings(
        adapter=found.adapter or found.word,
        target=known.target,
        edition=edition or "",
        call_seconds=seconds,
        workers=workers,
    )
    end = began + seconds
    with found.open(settings, specs, spec=known.spec, names=known.names, stops=fail_fast, end=end) as host:
        if not found.is_function:
            settings = settings.on(host, [known.spec])
        runner = TrialRunner(
            specs=specs,
            host=host,
            settings=settings,
            is_waived=lambda _record: True,
            sample_waived=True,
            overlapped=False,
        )
        if not runner.scope.offers(known.spec.operator, settings.target.product):
            lacking = known.spec.operator
            raise UsageError(f"candidate {found.word}: has no {lacking}{found.expected(lacking)}")
        tally = _Tally(reveal=reveal)
        parts = _parts(known, settings.target.product, profile, found)
        complete = _try_all(runner, host, parts, tally, seed=drawn, end=end, fail_fast=fail_fast)
        findings = tuple(_finding(record, runner, known) for record in tally.failures.values())
        missing = host.missing if isinstance(host, CandidateHost) else ()
    return _judgement(
        Judgement(
            verdict=RunVerdict.INCONCLUSIVE.value,
            candidate=found.word,
            operator=known.spec.operator,
            product=settings.target.product,
            seed=drawn,
            findings=findings,
            # Parts of a library's plan that are as long as there are edges have no count.
            planned=max(sum(part.count for part in parts), tally.made - tally.repeated),
            passed=tally.passed,
            failed=tally.failed,
            unjudged=tally.unjudged,
            repeated=tally.repeated,
            passed_first=tally.passed_first,
            error_ratio=tally.error_ratio if tally.error_ratio < math.inf else "inf",
            judged_share=tally.judged / max(tally.counted, 1),
            complete=complete,
            isolation=found.isolation if found.is_function or host.isolated else Isolation.NONE,
            missing=missing,
            call_seconds=tally.call_seconds,
            seconds=time.monotonic() - began,
        ),
        tally,
    )


def judgement_without_opening(
    candidate: str, op: str, error: Exception, *, product: str | None = None, seed: int | None = None, reveal: int = 1
) -> Judgement:
    """The judgement of a candidate for which `judge` raises: its own mistakes fail, a HarnessError decides nothing."""
    known = judged_document(op, product)
    reason = str(error)
    fails = isinstance(error, UsageError)
    finding = CandidateFinding(fault=Fault.REJECTED.value, sentence=reason)
    return Judgement(
        verdict=(RunVerdict.FAILS if fails else RunVerdict.INCONCLUSIVE).value,
        candidate=candidate,
        operator=known.spec.operator,
        product=known.target.product,
        seed=drawn_seed(seed),
        reason=reason,
        findings=(finding,) * (fails and reveal > 0),
        isolation=Isolation.UNOPENED,
    )


def _judgement(made: Judgement, tally: _Tally) -> Judgement:
    """The judgement with its verdict and why."""
    verdict, reason = RunVerdict.CONFORMS.value, ""
    if made.failed:
        verdict = RunVerdict.FAILS.value
        reason = made.findings[0].sentence if made.findings else f"{made.failed} trials failed"
    elif tally.error:
        verdict, reason = RunVerdict.INCONCLUSIVE.value, tally.error
    elif not tally.judged or made.judged_share * 100 < MIN_JUDGED:
        verdict = RunVerdict.INCONCLUSIVE.value
        reason = f"{tally.judged} of {tally.counted} trials were judged; expected {MIN_JUDGED} %"
    elif not made.complete and made.passed_first < ENOUGH:
        verdict = RunVerdict.INCONCLUSIVE.value
        reason = f"{made.passed_first} of {made.planned} trials passed within the budget; expected {ENOUGH}"
    return msgspec.structs.replace(made, verdict=verdict, reason=reason)


def _parts(known: JudgedDocument, product: str, profile: str, found: PreparedCandidate) -> list[Part]:
    parts = plan_parts([known.spec], product=product, chosen=chosen_profile(profile, where="profile"))
    return [part for part in parts if not found.is_function or part.check in _VALUED]


def _try_all(
    runner: TrialRunner,
    host: SessionHost,
    parts: Sequence[Part],
    tally: _Tally,
    *,
    seed: int,
    end: float,
    fail_fast: bool,
) -> bool:
    """Run the trials of a plan in batches; whether all of them were made."""
    # What is called again must not follow from the trials, which a candidate sees.
    chance = random.Random(f"{seed}/repeats")  # noqa: S311 - the seed makes the same calls again
    trials = (trial for part in parts for trial in runner.expand(part, seed=seed))
    for number, size in enumerate(_sizes()):
        batch = list(islice(trials, size))
        if not batch:
            return True
        rounds = [batch]
        if not number or not chance.randrange(_REPEATED):
            rounds += [[_with_other_values(trial, chance) for trial in batch], batch, _bursts(batch, chance)]
        for turn, repeated in enumerate(rounds):
            if isinstance(host, CandidateHost):
                host.shift(0 if turn != _MOVED else 4096 * chance.randint(1, _SHIFTS))
            for judged in runner.run(repeated):
                for record in judged.records:
                    tally.add(record, repeated=turn > 0)
                if (tally.failed and fail_fast) or tally.error or time.monotonic() >= end:
                    return False
    return True


def _sizes() -> Iterator[int]:
    yield from (FIRST, NEXT)
    while True:
        yield BATCH


def _with_other_values(trial: Trial, chance: random.Random) -> Trial:
    """The trial with other contents of some inputs: in a batch of its own it has the addresses of the first."""
    made = {name: tensor for name, tensor in trial.case.tensors() if tensor.data is not None and tensor.data.recipe}
    chosen = [name for name in made if chance.randrange(2)] or list(made)
    changes = {
        name: msgspec.structs.replace(made[name], data=msgspec.structs.replace(data, seed=chance.getrandbits(48)))
        for name in chosen
        if (data := made[name].data) is not None
    }
    return msgspec.structs.replace(trial, case=with_arguments(trial.case, changes))


def _bursts(batch: Sequence[Trial], chance: random.Random) -> list[Trial]:
    """A few of the trials again and again with other contents: what is kept by shape for some calls shows there."""
    fit = [trial for trial in batch if _WORTH <= trial.case.nbytes <= _SMALL and "twin" not in trial.parameters]
    chosen = chance.sample(fit, min(_BURSTS, len(fit)))
    return [_with_other_values(trial, chance) for trial in chosen for _ in range(_BURST)]


def _finding(record: Record, runner: TrialRunner, known: JudgedDocument) -> CandidateFinding:
    verdict = record.verdict
    worst = worst_element(verdict)
    clause = quoted_clause(record, runner.specs)
    hung = any(outcome.ended == CallEnd.TIME_LIMIT for outcomes in record.attempts for outcome in outcomes)
    condition = "" if hung else _condition(record, runner)
    sentence = verdict.message or str(verdict.kind)
    return CandidateFinding(
        fault=str(verdict.kind),
        sentence=f"{sentence}; {condition}" if condition else sentence,
        clause="" if clause is None else clause.at,
        condition=condition,
        error_ratio=0.0 if worst is None else worst.error_ratio,
        case=case_of(known.spec, record.trial.case),
        trial=record.trial_id,
    )


def _condition(record: Record, runner: TrialRunner) -> str:
    """What the same call as the first of a fresh process shows."""
    if not isinstance(runner.host, CandidateHost):
        return ""
    alone = runner.run_one(record.trial, fresh=True)
    if alone.verdict.result == Result.PASSED:
        return "the same call conforms as the first of a fresh process, and fails after other calls"
    return ""
