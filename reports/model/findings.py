"""A card for each finding: its smallest case whole, with figures, its programs and the command that replays it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from aclnn_cts.adapters.results import dtype_fact, shape_fact
from aclnn_cts.core.case import argument_text
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.faults import Fault, severity
from aclnn_cts.core.finding import Finding
from aclnn_cts.core.outcome import ANY_ERROR, GROWN_BYTES, SUCCESS, BufferState, Outcome, status_name
from aclnn_cts.core.trial import Trial, trial_from_json, trial_to_json
from aclnn_cts.core.verdict import Record
from aclnn_cts.findings.explain import call_at_fault, replay_command, shrink_command
from aclnn_cts.findings.findings import message_of
from aclnn_cts.findings.fingerprint import gravity_of_fault
from aclnn_cts.reports.model.acceptance_rows import (
    FaultFacts,
    FindingCard,
    FindingMember,
    MadePrograms,
    ReproductionProgram,
)
from aclnn_cts.reports.model.collect import CollectedRecords
from aclnn_cts.reports.model.finding_tally import FailureSort, FindingTally
from aclnn_cts.speclang.model import Spec
from aclnn_cts.store.programs import NoProgram, StoredPrograms, read_programs
from aclnn_cts.store.run_directory import FAILURES, RunDirectory, read_document

_TRIAL_BYTES = 6 * 1024
_MESSAGE = 2_000
"""Characters of a message from outside."""


def finding_cards(
    collected: CollectedRecords,
    ids: Mapping[int, str],
    clauses: Mapping[str, Sequence[tuple[str, str]]],
    runs: Sequence[RunDirectory],
    programs: Sequence[Mapping[str, StoredPrograms]],
) -> tuple[FindingCard, ...]:
    """The cards of the findings with these ids, in their order; `clauses` are those that each finding contradicts.

    `programs` are those that each run keeps.
    """
    cards = [
        _card(collected.findings.tallies[number], identifier, clauses.get(identifier, ()), collected, runs, programs)
        for number, identifier in ids.items()
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
    tally: FindingTally,
    identifier: str,
    clauses: Sequence[tuple[str, str]],
    collected: CollectedRecords,
    runs: Sequence[RunDirectory],
    programs: Sequence[Mapping[str, StoredPrograms]],
) -> FindingCard:
    finding = tally.finding
    number, small = _shown(tally)
    run = runs[number]
    record = small.record or tally.best
    trial = small.trial or record.reproducing_trial
    operator = collected.operators[finding.key.operator]
    facts = fault_facts(record, operator.spec)
    file = run.path / FAILURES / small.file
    folders = run.manifest.spec_folders
    document = msgspec.json.format(msgspec.json.encode(trial_to_json(trial)), indent=1).decode()
    grave = gravity_of_fault(record.verdict.kind)
    alone = msgspec.structs.replace(trial, after=())
    members = tuple(_members(tally.sorts, runs))
    is_hidden = finding.key.symptom in record.fingerprint.also
    kinds: Counter[str] = Counter()
    for item in members:
        kinds[item.kind] += item.number
    return FindingCard(
        id=identifier,
        severity=severity(finding.kind).value,
        operator=finding.key.operator,
        check="values" if any(sort.is_plain and not sort.clause for sort in tally.sorts) else record.trial.check,
        kind=finding.kind,
        kinds=dict(kinds.most_common()) if len(kinds) > 1 else {},
        members=members,
        constraint=finding.key.clause,
        output=finding.key.output if is_hidden else record.fingerprint.output,
        mode=", ".join(sorted({item.mode for item in finding.fingerprints if item.mode})),
        dtype=deciding_dtypes(tally, operator.dtypes),
        number=finding.failures,
        waived=finding.failures if finding.waiver else 0,
        waivers=(finding.waiver,) if finding.waiver else (),
        of=sum(operator.judged[sort] for sort in tally.judged_as),
        runs=tuple(_name(runs[place]) for place in sorted(tally.parts)),
        files=frozenset((_name(runs[place]), name) for place, parts in tally.parts.items() for name in parts),
        message=message_of(record, finding.key.symptom)[:_MESSAGE],
        clauses=tuple(clauses),
        case=tuple((name, argument_text(value)) for name, value in trial.case.arguments.items()),
        record=record,
        chosen_of=sum(item.number for item in members if not item.joined and gravity_of_fault(item.kind) == grave),
        shrunk=small.shrunk,
        executions=small.executions,
        shrunk_whole=small.complete,
        shrink=shrink_command(
            run.path,
            adapter=run.manifest.adapter,
            benchmark=run.manifest.settings.get("benchmark", ""),
            spec_folders=folders,
        ),
        change=trial.case.origin.change or "",
        trial_id=trial.id,
        figures_of=record.trial_id if record.trial_id not in (trial.id, alone.id) else "",
        after=sum(item.times for item in trial.after),
        trial=document if len(document) <= _TRIAL_BYTES else "",
        fault=facts,
        outcome=tuple(_brief(outcome) for outcomes in record.attempts[:1] for outcome in outcomes[:8]),
        made=programs_of(run, file.name, trial, programs[number].get(file.name)),
        replay=replay_command(
            file,
            run.manifest.adapter,
            spec_folders=folders,
            edition=run.manifest.edition,
            strict_limits=bool(run.manifest.settings.get("strict_limits", False)),
            benchmark=run.manifest.settings.get("benchmark", ""),
        ),
        file=str(Path(_name(run), FAILURES, file.name)),
        file_is_case=_id_of(file) == trial.id,
        campaigns=tuple(
            (_name(runs[place]), tally.of_run(place))
            for place in sorted(tally.parts)
            if runs[place].manifest.is_campaign
        ),
        alone=dict(sorted(tally.alone.items())),
        second_oracle=dict(sorted(tally.second.items())),
        shared=finding.condition,
    )


def _shown(tally: FindingTally) -> tuple[int, Finding]:
    """The run, and what it has stored of a finding, that shows it best: the smallest that was shrunk, else the best."""
    parts = [(run, item) for run, found in sorted(tally.parts.items()) for item in found.values()]
    shrunk = [(item.trial.case.nbytes, place) for place, (_, item) in enumerate(parts) if item.shrunk and item.trial]
    if shrunk:
        return parts[min(shrunk)[1]]
    own = [pair for pair in parts if pair[0] == tally.best_run]
    shown = [pair for pair in own if pair[1].record is not None and pair[1].record.trial_id == tally.best.trial_id]
    return next(iter(shown or own))


def deciding_dtypes(tally: FindingTally, judged: Mapping[tuple[str, str, str, str], int]) -> str:
    """The dtypes of all failures: of the first output, and (named) of the argument that decides.

    `judged` are trials by check, dtype of the first output, argument and its dtype. An argument decides where at
    least half of the trials with its dtypes fail, and others have further ones; of several, the one whose dtypes are
    rarest.
    """
    sorts = {(check, dtype) for check, _, dtype in tally.judged_as}
    failed: dict[str, Counter[str]] = {}
    for (name, dtype), number in tally.dtypes.items():
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


def _members(sorts: Counter[FailureSort], runs: Sequence[RunDirectory]) -> Iterator[FindingMember]:
    """Those that are the finding by themselves, then those that look like it, the most frequent first."""
    some_plain = any(item.is_plain for item in sorts)

    def joined(item: FailureSort) -> bool:
        # A campaign makes the calls of what it keeps again, one by one.
        return some_plain and not item.is_plain and not runs[item.run].manifest.is_campaign

    for item, number in sorted(sorts.items(), key=lambda pair: (joined(pair[0]), -pair[1], pair[0])):
        yield FindingMember(
            run=_name(runs[item.run]),
            check=item.check,
            constraint=item.clause,
            kind=item.kind,
            answer=item.answer,
            number=number,
            joined=joined(item),
        )


def _name(run: RunDirectory) -> str:
    return run.path.resolve().name


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


_PROGRAM_BYTES = 96 * 1024
"""Longest program that a page shows."""
_PROGRAMS_BYTES = 3 * 1024 * 1024
"""All programs of a page together."""


def programs_of(run: RunDirectory, trial_file: str, trial: Trial, stored: StoredPrograms | None) -> MadePrograms:
    """The programs that a run keeps of a finding's trial, or why there are none."""
    if stored is None or stored.trial_id != trial.id:
        return MadePrograms(missing=NoProgram.UNSTORED)
    if stored.missing:
        return MadePrograms(call=stored.call, missing=stored.missing, elements=stored.elements)
    texts = read_programs(run, trial_file, stored)
    made = tuple(
        ReproductionProgram(language=name, text=text.decode("utf-8", errors="replace"))
        for name, text in texts.items()
        if len(text) <= _PROGRAM_BYTES
    )
    return MadePrograms(programs=made, call=stored.call, missing="" if made else NoProgram.TEXT)


def on_one_page(made: Sequence[tuple[ReproductionProgram, ...]]) -> list[tuple[ReproductionProgram, ...]]:
    """Those that a page has room for: of each finding the shortest, then the others while there is room, in order."""
    left = _PROGRAMS_BYTES
    taken: list[set[ReproductionProgram]] = [set() for _ in made]
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
