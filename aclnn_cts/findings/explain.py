"""One record told to a person: what was called, what the document promises, what came back, and where it went wrong.

`replay -v`, pytest failures and reports say the same thing, from here.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from aclnn_cts.core.case import Case, argument_text
from aclnn_cts.core.faults import Fault, fault_name
from aclnn_cts.core.outcome import GROWN_BYTES, READ_OUTSIDE, BufferState, CallEnd, Outcome, status_name
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Deviation, Record
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.model import Clause, Spec


def replay_command(
    file: Path | str,
    adapter: str,
    *,
    spec_folders: Iterable[Path | str] = (),
    edition: str = "",
    strict_limits: bool = False,
    benchmark: str = "",
    tolerances: Iterable[str] = (),
) -> str:
    """The command that runs a trial file again. How many phases are called stands in the file.

    `tolerances`: those that gate where the file lies in no run, which would name them and the benchmark.
    """
    folders = "".join(f" --specs {shlex.quote(str(folder))}" for folder in spec_folders)
    named = f" --edition {shlex.quote(edition)}" if edition else ""
    strict = " --strict-limits" if strict_limits else ""
    gate = ",".join(tolerances)
    beside = f" --tolerance {gate}" if gate else ""
    beside += f" --benchmark {shlex.quote(benchmark)}" if gate and benchmark else _named_again("--benchmark", benchmark)
    given = f"--adapter {shlex.quote(adapter)}{beside}{folders}{named}{strict}"
    return f"aclnn-cts replay {shlex.quote(str(file))} {given} -v"


def _named_again(option: str, adapter: str) -> str:
    """The option with an adapter that has code or options of the user's own; nothing for any other."""
    return f" {option} {shlex.quote(adapter)}" if ":" in adapter else ""


def shrink_command(
    run: Path | str, *, adapter: str = "", benchmark: str = "", spec_folders: Iterable[Path | str] = ()
) -> str:
    """The command that makes the findings of a run smaller, and keeps them with it.

    Code that the run names and that does not ship is named again: nothing runs it else.
    """
    named = _named_again("--adapter", adapter) + _named_again("--benchmark", benchmark)
    folders = "".join(f" --specs {shlex.quote(str(folder))}" for folder in spec_folders)
    return f"aclnn-cts shrink {shlex.quote(str(run))}{named}{folders}"


def explain_record(record: Record, spec: Spec, *, language: str = "en") -> Iterator[str]:
    """Lines about one record."""
    verdict, case = record.verdict, record.trial.case
    yield f"{case.operator}, check {record.trial.check}, {case.product}: {verdict.result}"
    if verdict.kind or verdict.message:
        name = fault_name(verdict.kind)
        yield f"  {name or 'because'}: {verdict.message}" if verdict.message else f"  {name}"
    if record.waiver:
        yield f"  waived by {record.waiver}"
    yield from _what(case)
    yield from _made_first(record.reproducing_trial)
    yield from _rules(record, spec, language)
    for outcomes in record.attempts:
        for outcome in outcomes:
            yield f"outcome: {_outcome_text(outcome)}"
            yield from _stray_writes(outcome)
    for deviation in verdict.deviations:
        yield _deviation_text(deviation)
    for name, fact in verdict.facts.items():
        yield f"fact: {name} = {fact}"
    yield f"trial {record.trial_id}"


def _arguments(case: Case) -> Iterator[str]:
    width = max((len(name) for name in case.arguments), default=0)
    for name, value in case.arguments.items():
        yield f"  {name:<{width}}  {argument_text(value)}"


def _what(case: Case) -> Iterator[str]:
    yield "case:"
    yield from _arguments(case)
    if case.call.phases == 1:
        yield "  (the first phase alone)"
    for pointer in case.call.null:
        yield f"  {pointer}: null pointer"
    if case.origin.change:
        yield f"  made from a valid case by: {case.origin.change}"


def _made_first(trial: Trial) -> Iterator[str]:
    for item in trial.after:
        times = f" {item.times} times" if item.times > 1 else ""
        yield f"made first{times}, as the failure does not show without it: {item.case.operator}"
        yield from _arguments(item.case)


def _rules(record: Record, spec: Spec, language: str) -> Iterator[str]:
    case = record.trial.case
    evaluation = evaluate(spec, case)
    if not evaluation.broken:
        yield f"promised: {' or '.join(evaluation.statuses)}, as the case holds every constraint"
    else:
        yield f"promised: {' or '.join(evaluation.statuses)} ({evaluation.strength})"
    for constraint in evaluation.broken:
        yield f"  broken: {constraint.id}: {constraint.rule.describe(case.product).en}"
        for clause in spec.clauses:
            if constraint.id in clause.constraints:
                yield f"    clause {clause.at}: {_wording(clause, language)}"
    for constraint in evaluation.not_applicable:
        if evaluation.broken:
            yield f"  not applicable: {constraint.id}"


def _wording(clause: Clause, language: str) -> str:
    return clause.zh if language == "zh" else clause.en


def _outcome_text(outcome: Outcome) -> str:
    parts = [outcome.ended]
    for name, value in (("phase one", outcome.phase_one), ("phase two", outcome.phase_two)):
        if value is not None:
            parts.append(f"{name} {status_name(value)}")
    if outcome.synchronised:
        parts.append(f"synchronisation {outcome.synchronised}")
    if outcome.signal is not None:
        parts.append(f"signal {outcome.signal}")
    if outcome.message:
        parts.append(outcome.message.strip().partition("\n")[0])
    return ", ".join(parts)


def _stray_writes(outcome: Outcome) -> Iterator[str]:
    for name, state in outcome.buffers.items():
        if (stray := state.stray) is not None:
            address = f", address {stray.address}" if stray.address else ""
            yield f"  stray write: {name}, byte {stray.offset} of its storage{address}:"
            yield f"    {stray.before} became {stray.after}"


def _deviation_text(deviation: Deviation) -> str:
    if not deviation.elements:
        return f"{deviation.output}: no elements"
    return (
        f"{deviation.output}: {deviation.beyond} of {deviation.elements} beyond the bound, {deviation.open} open; "
        "worst "
        f"{deviation.place}: got {deviation.got}, expected {deviation.expected}, bound {deviation.bound:.4g}, "
        f"error {deviation.error_ratio:.4g} of the bound, terms {deviation.cancellation:.4g} times their sum"
    )


_UNTOUCHED = BufferState()


def call_at_fault(kind: str, output: str, outcomes: Sequence[Outcome]) -> int | None:
    """The number of the call that shows the fault, None where all of them do together."""

    def touched(outcome: Outcome, said: Callable[[BufferState], int]) -> bool:
        return bool(said(outcome.buffers.get(output, _UNTOUCHED)))

    tests: dict[str, Callable[[Outcome], bool]] = {
        Fault.CRASH: lambda item: item.ended not in (CallEnd.RETURNED, CallEnd.RAISED, CallEnd.TIME_LIMIT),
        Fault.READ: lambda item: READ_OUTSIDE in item.facts,
        Fault.HANG: lambda item: item.ended == CallEnd.TIME_LIMIT,
        Fault.GUARD: lambda item: touched(item, lambda state: state.guard_before + state.guard_after + state.gap),
        Fault.INPUT: lambda item: touched(item, lambda state: state.changed),
        Fault.LATE: lambda item: touched(item, lambda state: state.late),
        Fault.UNWRITTEN: lambda item: touched(item, lambda state: state.unwritten),
        Fault.REJECTED: lambda item: item.ended == CallEnd.RAISED or bool(item.status),
        Fault.LEAK: lambda item: GROWN_BYTES in item.facts,
    }
    test = tests.get(kind)
    if test is None:
        # Of a broken call and its valid twin, the broken one is called last.
        return len(outcomes) - 1 if outcomes else None
    return next((number for number, item in enumerate(outcomes) if test(item)), None)
