"""Making the programs of a trial."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from aclnn_cts.core.case import Case, both_phases
from aclnn_cts.core.case_json import case_id
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.faults import fault_name
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.printable import quote
from aclnn_cts.core.trial import Trial
from aclnn_cts.execution.executor import CallRequest, PerformedCall
from aclnn_cts.execution.judging import Judges
from aclnn_cts.generate.recipes import case_arrays
from aclnn_cts.repro import OF_FUNCTIONS, OF_LIBRARIES
from aclnn_cts.repro.cpp import cpp_program
from aclnn_cts.repro.facts import (
    MAX_ELEMENTS,
    CallSequence,
    Reproduction,
    TooManyElementsError,
    reproduction,
    steps_before,
    steps_of,
)
from aclnn_cts.repro.python import numpy_program, python_program, torch_program
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.model import Spec
from aclnn_cts.store.manifest import Manifest
from aclnn_cts.store.output_file import Recognizer, begins_with
from aclnn_cts.trials.checks.equal_calls import EQUAL_CALLS, DeterminismCheck
from aclnn_cts.trials.checks.life_cycle import asked_calls
from aclnn_cts.trials.checks.registry import VALUED, as_trial, check_by_id

LANGUAGES: Mapping[str, Callable[[CallSequence], str]] = {
    "cpp": cpp_program,
    "python": python_program,
    "numpy": numpy_program,
    "torch": torch_program,
}

WRITTEN_BY_US: Mapping[str, Recognizer] = {
    "cpp": begins_with(rb"// \w+: [^\n]*\n// Case [0-9a-f]{64}, "),
    **dict.fromkeys(
        ("python", "numpy", "torch"), begins_with(rb'#!/usr/bin/env python3\n"""\w+: [^\n]*\n\nCase [0-9a-f]{64}, ')
    ),
}
"""Recognizes a program by its language."""


def languages_of(manifest: Manifest) -> tuple[str, ...]:
    """The programs that suit a run's implementation: for a library, or for a function where there are no phases."""
    return languages_for(manifest.adapter, has_phases=manifest.scope is None or manifest.scope.phases)


def languages_for(adapter: str, *, has_phases: bool) -> tuple[str, ...]:
    """The programs that suit an implementation (as `--adapter` names it)."""
    if has_phases:
        return OF_LIBRARIES
    return ("torch",) if adapter.partition(":")[0] == "torch" else ("numpy",)


_CALL_MODES = frozenset({"cache"})
"""What calls of checks that are not about a call mode may ask for: a program is a fresh process."""


@dataclass(slots=True, kw_only=True)
class Programs:
    """Makes programs, of many trials where need be: what they share is loaded once."""

    specs: Mapping[str, Spec]
    spec_folders: Sequence[Path] = ()
    _judges: Judges = field(init=False)

    def __post_init__(self) -> None:
        """Programs tell of the statuses that a real implementation returns."""
        self._judges = Judges(has_statuses=True, spec_folders=self.spec_folders)

    def texts(
        self,
        item: Trial | Case,
        languages: Iterable[str],
        *,
        call: int | None = None,
        fingerprint: Fingerprint | None = None,
    ) -> dict[str, str]:
        """One program a language: all calls of the trial in its call mode, or that of the number `call` by itself.

        `fingerprint`: of the failure that they show, which their titles name.

        UsageError for a number that is none of the trial's, for a trial
        whose check cannot take its case, and for cases that are too large.
        """
        wanted = list(languages)
        texts: dict[str, str] = {}
        for whole in (False, True):
            chosen = [name for name in wanted if (name in OF_FUNCTIONS) == whole]
            if chosen:
                made = replace(self.program(item, call=call, whole=whole), fails=_failure(fingerprint))
                texts |= {language: LANGUAGES[language](made) for language in chosen}
        return {language: texts[language] for language in wanted}

    def program(self, item: Trial | Case, *, call: int | None = None, whole: bool = False) -> CallSequence:
        """What the programs of `texts` do; `whole`: each call with its data, for a function that has no phases."""
        spec = self.specs[(item.case if isinstance(item, Trial) else item).operator]
        trial = as_trial(spec, item)
        entry = check_by_id(trial.check, where="trial")
        cases = entry.calls(trial, spec)
        if call is not None and not 1 <= call <= len(cases):
            raise UsageError(
                f"--call {call}: the trial of {quote(trial.check)} makes {_calls(len(cases))}; "
                + ("name one by its number" if len(cases) > 1 else "leave --call out")
            )
        if call is not None:
            alone = self._made([CallRequest(cases[call - 1])], msgspec.structs.replace(trial, after=()), whole=whole)
            about = f"Of a trial of {trial.check}: call {call} of its {_calls(len(cases))}, by itself."
            return replace(alone, about=(about,) if len(cases) > 1 else ())
        asked = asked_calls(trial, spec, cases, known=_CALL_MODES)
        made = self._made(asked, trial, whole=whole)
        if trial.check in EQUAL_CALLS:
            made = self._of_equal_calls(made, trial, spec)
        elif len(cases) == 1 and not asked[0].call_mode:
            return replace(made, about=_about_before(trial))
        return replace(made, about=(f"A trial of {trial.check}: {entry.sentence}.", *made.about, *_about_before(trial)))

    def _of_equal_calls(self, made: CallSequence, trial: Trial, spec: Spec) -> CallSequence:
        """The program of calls that must be equal, where one program can compare them."""
        if isinstance(EQUAL_CALLS[trial.check], DeterminismCheck):
            judge = self._judges.of(spec)
            arrays = case_arrays(trial.case, spec.given_inputs(trial.case))
            promised = judge.repeatable_outputs(PerformedCall(case=trial.case, outcome=Outcome(), arrays=arrays))
            outputs = made.calls[0].outputs
            return replace(made, equal=outputs) if promised.issuperset(outputs) else made
        return made

    def _made(self, asked: Sequence[CallRequest], trial: Trial, *, whole: bool) -> CallSequence:
        if whole:
            asked = [msgspec.structs.replace(item, case=both_phases(item.case)) for item in asked]
            trial = msgspec.structs.replace(trial, after=())
        # Calls that are made together have memory of their own each, however alike they are.
        own = [(case_id(item.case), None if item.group is None else place) for place, item in enumerate(asked)]
        before = [(case_id(item.case), None) for item in trial.after]
        keys = [*own, *before]
        unlike = list(dict.fromkeys(keys))
        every = [*(item.case for item in asked), *(item.case for item in trial.after)]
        cases = dict(zip(keys, every, strict=True))
        elements = sum(
            tensor.storage_numel for case in cases.values() if case.call.phases == 2 for _, tensor in case.tensors()
        )
        if elements > MAX_ELEMENTS and len(asked) > 1:
            raise TooManyElementsError(
                f"the calls of the trial have {elements} elements; a program holds at most {MAX_ELEMENTS}: name one of "
                f"its {len(asked)} calls with --call N",
                elements,
            )
        return CallSequence(
            calls=tuple(self._facts(cases[key], valued=trial.check in VALUED, judged=key in own) for key in unlike),
            outputs=self.specs[trial.case.operator].outputs,
            steps=(
                *steps_before(trial.after, [unlike.index(key) for key in before]),
                *steps_of(asked, [unlike.index(key) for key in own]),
            ),
        )

    def _facts(self, case: Case, *, valued: bool, judged: bool) -> Reproduction:
        spec = self.specs[case.operator]
        evaluation = evaluate(spec, case)
        broken = ", ".join(constraint.id for constraint in evaluation.broken)
        promised = " or ".join(evaluation.statuses)
        sentence = f"breaks {broken}, promised {promised}" if broken else f"a supported call, promised {promised}"
        return reproduction(case, spec, self._judges.of(spec), sentence=sentence, valued=valued, judged=judged)


def _failure(fingerprint: Fingerprint | None) -> str:
    """What fails, in a few words: `value of gradWeight`."""
    if fingerprint is None:
        return ""
    return " of ".join(filter(None, (fault_name(fingerprint.fault), fingerprint.output)))


def _about_before(trial: Trial) -> tuple[str, ...]:
    number = sum(item.times for item in trial.after)
    return (f"It shows after {_calls(number)} before it, made first and not judged.",) if number else ()


def _calls(number: int) -> str:
    return "1 call" if number == 1 else f"{number} calls"
