"""The programs of findings, and which of them a page shows."""

from __future__ import annotations

from collections.abc import Sequence

from aclnn_cts.checks.laws import PREFIX
from aclnn_cts.checks.registry import check
from aclnn_cts.core.case import Case
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.faults import Family, Fault
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Record
from aclnn_cts.reports.model.acceptance_findings import FaultFacts, MadePrograms, NoProgram, Program
from aclnn_cts.repro.facts import MAX_ELEMENTS, TooManyElementsError
from aclnn_cts.repro.write import Programs
from aclnn_cts.speclang.model import Spec

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
