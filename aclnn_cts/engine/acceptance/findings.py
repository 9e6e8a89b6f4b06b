"""A card for each finding: its smallest case whole, with programs and the command that replays it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from aclnn_cts.core.acceptance_findings import (
    Confirmation,
    FindingCard,
    OutcomeLine,
    RulerLine,
    Severity,
    WorstElement,
)
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.statuses import status_name
from aclnn_cts.core.trial import Trial, trial_from_json, trial_to_json
from aclnn_cts.core.verdict import Fault, Record
from aclnn_cts.engine.acceptance.collect import Collected, Failures
from aclnn_cts.engine.acceptance.fault_facts import fault_facts
from aclnn_cts.engine.acceptance.precision import plain
from aclnn_cts.engine.acceptance.programs import on_one_page, programs_of
from aclnn_cts.engine.campaign.finding import FINDING_STATE, Finding
from aclnn_cts.engine.explain import argument_text, replay_command, shrink_command
from aclnn_cts.engine.record_codec import signature_key
from aclnn_cts.engine.repro.write import Programs
from aclnn_cts.engine.run_directory import RunDirectory, failure_name

__all__ = ["finding_cards", "finding_ids", "severity", "take_findings"]

_CRITICAL = frozenset({Fault.CRASH, Fault.HANG, Fault.GUARD, Fault.INPUT, Fault.LEAK})
_MINOR = frozenset({Fault.MODEL, Fault.RULER})

_TRIAL_BYTES = 6 * 1024
_MESSAGE = 2_000
"""Characters of a message from outside."""


def severity(kind: str) -> str:
    """How grave a kind of fault is."""
    return Severity.CRITICAL if kind in _CRITICAL else Severity.MINOR if kind in _MINOR else Severity.MAJOR


def finding_ids(failures: Mapping[str, Failures]) -> dict[str, str]:
    """`F1`, `F2`, ... by key of signature: unwaived ones first, then the gravest, then the most frequent."""

    def order(key: str) -> tuple[bool, int, int, str]:
        entry = failures[key]
        grave = Severity.ORDER.index(severity(entry.kind))
        return (entry.waived == entry.number, grave, -entry.number, key)

    return {key: f"F{number}" for number, key in enumerate(sorted(failures, key=order), start=1)}


def finding_cards(
    collected: Collected,
    ids: Mapping[str, str],
    clauses: Mapping[str, Sequence[tuple[str, str]]],
    runs: Sequence[RunDirectory],
    programs: Programs,
) -> tuple[FindingCard, ...]:
    """The cards in the order of their ids; `clauses` are those that each finding contradicts, by its id."""
    cards = [
        _card(collected.failures[key], identifier, clauses.get(identifier, ()), collected, runs, programs)
        for key, identifier in ids.items()
    ]
    fitting = on_one_page([card.programs for card in cards])
    return tuple(
        replace(card, programs=shown, no_program=card.no_program or ("" if shown else "room"))
        for card, shown in zip(cards, fitting, strict=True)
    )


def _card(
    failures: Failures,
    identifier: str,
    clauses: Sequence[tuple[str, str]],
    collected: Collected,
    runs: Sequence[RunDirectory],
    programs: Programs,
) -> FindingCard:
    signature, record = failures.signature, failures.smallest
    mode = record.verdict.mode
    number, small = _smallest(failures)
    run = runs[number]
    trial = small.trial if small is not None and small.trial is not None else record.shown
    if small is not None and small.record is not None:
        record = small.record
    spec = collected.operators[signature.operator].spec
    facts = fault_facts(record, spec)
    made, missing, call = programs_of(trial, record, facts, spec, programs)
    file = run.path / "failures" / failure_name(signature)
    folders = run.manifest.settings.get("spec_folders", ())
    judged = collected.operators[signature.operator].judged[signature.promise, mode, signature.dtype]
    document = msgspec.json.format(msgspec.json.encode(trial_to_json(trial)), indent=1).decode()
    return FindingCard(
        id=identifier,
        severity=severity(failures.kind),
        operator=signature.operator,
        promise=signature.promise,
        kind=failures.kind,
        kinds=dict(failures.kinds.most_common()) if len(failures.kinds) > 1 else {},
        constraint=signature.constraint,
        output=signature.output,
        mode=signature.mode,
        dtype=signature.dtype,
        number=failures.number,
        waived=failures.waived,
        waivers=tuple(failures.waivers),
        of=judged,
        runs=tuple(runs[number].path.resolve().name for number in failures.runs),
        message=(small.message if small is not None and small.message else record.verdict.message)[:_MESSAGE],
        clauses=tuple(clauses),
        case=tuple((name, argument_text(value)) for name, value in trial.case.arguments.items()),
        shrunk=small is not None,
        executions=small.executions if small is not None else 0,
        shrunk_whole=small is None or small.complete,
        shrink=shrink_command(run.path),
        change=trial.case.origin.change or "",
        trial_id=trial.id,
        figures_of=record.trial_id if record.trial_id not in (trial.id, _alone(trial).id) else "",
        after=sum(item.times for item in trial.after),
        trial=document if len(document) <= _TRIAL_BYTES else "",
        worst=_worst(record),
        fault=facts,
        rulers=tuple(
            RulerLine(
                ruler=name,
                output=output,
                verdict=result.verdict,
                message=result.message,
                why=result.why,
                figures=tuple((item.name, item.value, item.relation, item.limit) for item in result.figures),
            )
            for name, outputs in record.verdict.rulers.items()
            for output, result in outputs.items()
        ),
        outcome=tuple(_outcome(outcome) for outcomes in record.attempts[:1] for outcome in outcomes[:8]),
        programs=made,
        program_call=call,
        no_program=missing,
        replay=replay_command(file, run.manifest.adapter, spec_folders=folders),
        file=str(Path(run.path.resolve().name, "failures", file.name)),
        file_is_case=_id_of(file) == trial.id,
        campaigns=tuple(_campaigns(failures, runs)),
        alone=dict(sorted(failures.alone.items())),
        second_oracle=dict(sorted(failures.second.items())),
    )


def _smallest(failures: Failures) -> tuple[int, Finding | None]:
    """The run whose case is shown, and what was made smaller there: any shrunk case before a recorded one."""
    sized = [
        (item.trial.case.nbytes, number)
        for number, item in failures.campaigns.items()
        if item.shrunk and item.trial is not None
    ]
    if not sized:
        return failures.run, None
    _, number = min(sized)
    return number, failures.campaigns[number]


def _campaigns(failures: Failures, runs: Sequence[RunDirectory]) -> Iterator[Confirmation]:
    for number, item in failures.campaigns.items():
        if runs[number].manifest.is_campaign:
            yield Confirmation(
                run=runs[number].path.resolve().name,
                failures=item.failures,
                confirmed=item.confirmed,
                alone=item.alone,
                elsewhere=item.elsewhere,
                where=item.slot,
                note=item.note,
            )


def take_findings(failures: Mapping[str, Failures], runs: Sequence[RunDirectory]) -> None:
    """Add what the runs have stored of findings, beside their records."""
    for number, run in enumerate(runs):
        with run.results() as results:
            for _, value in results.states(FINDING_STATE):
                finding = msgspec.convert(value, Finding)
                entry = failures.get(signature_key(finding.signature))
                if entry is not None and number in entry.runs:
                    entry.campaigns[number] = finding


def _alone(trial: Trial) -> Trial:
    return msgspec.structs.replace(trial, after=())


def _id_of(file: Path) -> str:
    """The id of the trial in a file of `failures/`; empty where it cannot be read."""
    try:
        content = trial_from_json(msgspec.json.decode(file.read_bytes()), where=str(file))
    except (OSError, msgspec.DecodeError, UsageError):
        return ""
    return content.id if isinstance(content, Trial) else ""


def _worst(record: Record) -> tuple[WorstElement, ...]:
    return tuple(
        WorstElement(
            output=deviation.output,
            index=deviation.index,
            got=deviation.got,
            expected=deviation.expected,
            bound=deviation.bound,
            share=plain(deviation.share),
            beyond=deviation.beyond,
            elements=deviation.elements,
        )
        for deviation in record.verdict.deviations
    )


def _outcome(outcome: Outcome) -> OutcomeLine:
    return OutcomeLine(
        ended=outcome.ended,
        status=status_name(outcome.status) if outcome.status is not None else "",
        signal=outcome.signal,
        message=outcome.message.strip()[:_MESSAGE],
    )
