"""A card for each finding: its smallest case whole, with figures, its programs and the command that replays it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from aclnn_cts.adapters.results import dtype_fact, shape_fact
from aclnn_cts.checks.laws import PREFIX
from aclnn_cts.checks.life_cycle import GROWN_BYTES
from aclnn_cts.checks.registry import check
from aclnn_cts.core.case import Case, argument_text
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.faults import Family, Fault, severity
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.outcome import ANY_ERROR, SUCCESS, BufferState, Outcome, status_name
from aclnn_cts.core.trial import Trial, trial_from_json, trial_to_json
from aclnn_cts.core.verdict import Record
from aclnn_cts.findings.dedup_key import gravity
from aclnn_cts.findings.explain import call_at_fault, replay_command, shrink_command
from aclnn_cts.findings.finding import FINDING_STATE, Finding
from aclnn_cts.findings.fingerprint import message_of, represented
from aclnn_cts.findings.shared_condition import SharedCondition, condition_in_run
from aclnn_cts.reports.model.acceptance_rows import (
    FaultFacts,
    FindingCard,
    FindingMember,
    MadePrograms,
    NoProgram,
    Program,
)
from aclnn_cts.reports.model.collect import Collected
from aclnn_cts.repro.facts import MAX_ELEMENTS, TooManyElementsError
from aclnn_cts.repro.write import Programs, languages_of
from aclnn_cts.speclang.model import Spec
from aclnn_cts.store.run_directory import RunDirectory, failure_name, read_document
from aclnn_cts.triage.dedup import Failures, Member

_TRIAL_BYTES = 6 * 1024
_MESSAGE = 2_000
"""Characters of a message from outside."""


def finding_cards(
    collected: Collected,
    failures: Mapping[str, Failures],
    clauses: Mapping[str, Sequence[tuple[str, str]]],
    runs: Sequence[RunDirectory],
    programs: Programs,
) -> tuple[FindingCard, ...]:
    """The cards of `failures`, by id, in their order; `clauses` are those that each finding contradicts."""
    cards = [
        _card(entry, identifier, clauses.get(identifier, ()), collected, runs, programs)
        for identifier, entry in failures.items()
    ]
    fitting = on_one_page([card.made.programs for card in cards])
    return tuple(
        replace(
            card,
            made=replace(card.made, programs=shown, missing=card.made.missing or ("" if shown else NoProgram.ROOM)),
        )
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
    key = failures.key
    shown = failures.shrunk or failures.shown
    small = shown.finding if failures.shrunk is not None else None
    record = shown.smallest
    run = runs[shown.run]
    trial = small.trial if small is not None and small.trial is not None else record.shown
    if small is not None and small.record is not None:
        record = small.record
    tally = collected.operators[key.operator]
    facts = fault_facts(record, tally.spec)
    file = run.path / "failures" / failure_name(shown.stored)
    folders = run.manifest.spec_folders
    document = msgspec.json.format(msgspec.json.encode(trial_to_json(trial)), indent=1).decode()
    grave = gravity(record.verdict.kind)
    alone = msgspec.structs.replace(trial, after=())
    return FindingCard(
        id=identifier,
        severity=severity(failures.kind).value,
        operator=key.operator,
        check=key.check,
        kind=failures.kind,
        kinds=dict(failures.kinds.most_common()) if len(failures.kinds) > 1 else {},
        members=tuple(_members(failures, runs)),
        constraint=key.clause,
        output=failures.hidden.output if failures.hidden is not None else key.output,
        mode=", ".join(sorted({item.fingerprint.mode for item in failures if item.fingerprint.mode})),
        dtype=deciding_dtypes(failures, tally.dtypes),
        number=failures.number,
        waived=failures.waived,
        waivers=tuple(sorted({item.waiver for item in failures if item.waiver})),
        of=sum(tally.judged[sort] for sort in {sort for item in failures for sort in item.sorts}),
        runs=tuple(_name(runs[number]) for number in failures.runs),
        message=((small.message if small is not None else "") or message_of(record, failures.hidden))[:_MESSAGE],
        clauses=tuple(clauses),
        case=tuple((name, argument_text(value)) for name, value in trial.case.arguments.items()),
        record=record,
        chosen_of=sum(item.number for item in failures.members if gravity(item.kind) == grave),
        shrunk=small is not None,
        executions=small.executions if small is not None else 0,
        shrunk_whole=small is None or small.complete,
        shrink=shrink_command(run.path, run.manifest.adapter, spec_folders=folders),
        change=trial.case.origin.change or "",
        trial_id=trial.id,
        figures_of=record.trial_id if record.trial_id not in (trial.id, alone.id) else "",
        after=sum(item.times for item in trial.after),
        trial=document if len(document) <= _TRIAL_BYTES else "",
        fault=facts,
        outcome=tuple(_brief(outcome) for outcomes in record.attempts[:1] for outcome in outcomes[:8]),
        made=programs_of(trial, record, facts, tally.spec, programs, languages_of(run.manifest)),
        replay=replay_command(
            file,
            run.manifest.adapter,
            spec_folders=folders,
            edition=run.manifest.edition,
            strict_limits=bool(run.manifest.settings.get("strict_limits", False)),
        ),
        file=str(Path(_name(run), "failures", file.name)),
        file_is_case=_id_of(file) == trial.id,
        campaigns=tuple(_campaigns(failures, runs)),
        alone=_added(item.alone for item in failures),
        second_oracle=_added(item.second for item in failures),
        shared=_shared(failures, runs),
    )


def _shared(failures: Failures, runs: Sequence[RunDirectory]) -> SharedCondition | None:
    """Of the run with the most failures: runs differ in what they call."""
    numbers: Counter[int] = Counter()
    for member in failures:
        numbers[member.run] += member.number
    run, _ = numbers.most_common(1)[0]
    with runs[run].results() as results:
        return condition_in_run(results, dict.fromkeys(member.stored for member in failures if member.run == run))


def deciding_dtypes(failures: Failures, judged: Mapping[tuple[str, str, str, str], int]) -> str:
    """The dtypes of all failures: of the first output, and (named) of the argument that decides.

    `judged` are trials by check, dtype of the first output, argument and its dtype. An argument decides where at
    least half of the trials with its dtypes fail, and others have further ones; of several, the one whose dtypes are
    rarest.
    """
    sorts = {(check, dtype) for item in failures for check, _, dtype in item.sorts}
    failed: dict[str, Counter[str]] = {}
    for item in failures:
        for (name, dtype), number in item.dtypes.items():
            failed.setdefault(name, Counter())[dtype] += number
    ran: dict[str, Counter[str]] = {}
    for (checked, output, name, dtype), number in judged.items():
        if (checked, output) in sorts:
            ran.setdefault(name, Counter())[dtype] += number
    shares: dict[str, float] = {}
    for name, dtypes in failed.items():
        of = sum(ran.get(name, Counter())[dtype] for dtype in dtypes)
        if of and of < ran[name].total() and 2 * dtypes.total() >= of:
            shares[name] = of / ran[name].total()
    words = sorted({dtype for _, dtype in sorts if dtype})
    if shares:
        chosen = min(shares, key=lambda name: (shares[name], name))
        words.append(f"{chosen} {', '.join(sorted(failed[chosen]))}")
    return ", ".join(words)


def _members(failures: Failures, runs: Sequence[RunDirectory]) -> Iterator[FindingMember]:
    """Those that are the finding by themselves, then those that look like it, the most frequent first."""
    for joined, members in ((False, failures.members), (True, failures.joined)):
        for item in sorted(members, key=lambda item: (-item.number, item.check, item.kind, item.run)):
            yield FindingMember(run=_name(runs[item.run]), member=item, file=failure_name(item.stored), joined=joined)


def _campaigns(failures: Failures, runs: Sequence[RunDirectory]) -> Iterator[tuple[str, Finding]]:
    met: dict[int, dict[Fingerprint, Finding]] = {}
    for member in failures:
        if member.of_campaign and member.finding is not None:
            met.setdefault(member.run, {})[member.stored] = member.finding
    for number, findings in sorted(met.items()):
        yield _name(runs[number]), represented(findings.values())


def take_findings(members: Iterable[Member], runs: Sequence[RunDirectory]) -> None:
    """Add what the runs have stored of findings, beside their records."""
    stored: dict[tuple[int, Fingerprint], Finding] = {}
    for number, run in enumerate(runs):
        with run.results() as results:
            for _, value in results.states(FINDING_STATE):
                finding = msgspec.convert(value, Finding)
                stored[number, finding.key] = finding
    for member in members:
        known = stored.get((member.run, member.stored))
        # Of a run, a waived failure shows nothing of those that are not, nor the other way round.
        if known is not None and (member.of_campaign or known.waiver == member.waiver):
            member.finding = known


def _name(run: RunDirectory) -> str:
    return run.path.resolve().name


def _added(counts: Iterable[Counter[str]]) -> dict[str, int]:
    return dict(sorted(sum(counts, Counter[str]()).items()))


def _id_of(file: Path) -> str:
    """The id of the trial in a file of `failures/`; empty where it cannot be read."""
    try:
        content = trial_from_json(read_document(file), where=str(file))
    except (HarnessError, UsageError):
        return ""
    return content.id if isinstance(content, Trial) else ""


def _brief(outcome: Outcome) -> Outcome:
    return msgspec.structs.replace(outcome, message=outcome.message.strip()[:_MESSAGE])


def fault_facts(record: Record, spec: Spec) -> FaultFacts:
    """The figures of the call at fault, of the record's first attempt."""
    outcomes = record.attempts[0] if record.attempts else ()
    kind, output = record.verdict.kind, record.fingerprint.output
    found = FaultFacts(basis=record.verdict.basis, calls=len(outcomes))
    number = call_at_fault(kind, output, outcomes)
    if number is None:
        return found
    outcome = outcomes[number]
    grown = outcome.facts.get(GROWN_BYTES)
    return replace(
        found,
        call=number + 1,
        outcome=outcome,
        state=outcome.buffers.get(output, BufferState()),
        returned=status_name(outcome.status) if outcome.status is not None else "",
        promised=_promised(record, spec),
        grown=grown if isinstance(grown, int) else 0,
        form=str(outcome.facts.get((shape_fact if kind == Fault.SHAPE else dtype_fact)(output), "")),
    )


def _promised(record: Record, spec: Spec) -> tuple[str, ...]:
    constraint = record.fingerprint.clause
    if record.verdict.kind != Fault.STATUS or not constraint:
        return (SUCCESS,)
    known = {item.id: item for item in spec.constraints}
    return (known[constraint].statuses if constraint in known else ()) or (ANY_ERROR,)


_BY_ITSELF = Fault.of(Family.REJECTED, Family.ENDED, Family.OUTPUT, Family.MEMORY)
"""Faults of one call of a law, whatever its other calls give."""

_PROGRAM_BYTES = 96 * 1024
"""Longest program that a page shows."""
_PROGRAMS_BYTES = 3 * 1024 * 1024
"""All programs of a page together."""


def programs_of(
    trial: Trial, record: Record, facts: FaultFacts, spec: Spec, programs: Programs, languages: Sequence[str]
) -> MadePrograms:
    """Programs that show a finding, or why there are none."""
    item: Trial | Case = trial
    call = (1, 1)
    try:
        calls = check(trial.check, where="trial").calls(trial, spec)
        call = (0, len(calls)) if len(calls) > 1 else (1, 1)
        by_itself = trial.check.startswith(PREFIX) and record.key.fault in _BY_ITSELF
        if by_itself and facts.call and trial.id == record.trial_id:
            # The calls of a law are made in the ordinary call mode, so that one of them is at fault by itself.
            call = (facts.call, facts.calls)
            item = calls[facts.call - 1]
        texts = programs.texts(item, languages)
    except TooManyElementsError as error:
        reason = NoProgram.CALLS if call[0] == 0 else NoProgram.ELEMENTS
        return MadePrograms(call=call, missing=reason, elements=(error.elements, MAX_ELEMENTS))
    except UsageError:
        return MadePrograms(call=call, missing=NoProgram.TRIAL)
    made = tuple(Program(language=name, text=text) for name, text in texts.items() if len(text) <= _PROGRAM_BYTES)
    return MadePrograms(programs=made, call=call, missing="" if made else NoProgram.TEXT)


def on_one_page(made: Sequence[tuple[Program, ...]]) -> list[tuple[Program, ...]]:
    """Those that a page has room for: of each finding the shortest, then the others while there is room, in order."""
    left = _PROGRAMS_BYTES
    taken: list[set[Program]] = [set() for _ in made]
    for turn in range(max(map(len, made), default=0)):
        for programs, chosen in zip(made, taken, strict=True):
            by_length = sorted(programs, key=lambda program: len(program.text))
            if turn < len(programs) and len(by_length[turn].text) <= left:
                chosen.add(by_length[turn])
                left -= len(by_length[turn].text)
    return [
        tuple(program for program in programs if program in chosen)
        for programs, chosen in zip(made, taken, strict=True)
    ]
