"""The programs of findings, made when a run stores them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from aclnn_cts.core.case import Case
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.faults import Family, Fault
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.printable import ECHO_LIMIT, printable
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Record
from aclnn_cts.findings.explain import call_at_fault
from aclnn_cts.findings.findings import findings_of
from aclnn_cts.repro.facts import MAX_ELEMENTS, TooManyElementsError
from aclnn_cts.repro.write import Programs, languages_of
from aclnn_cts.speclang.load import Specs
from aclnn_cts.store.output_file import write_atomically
from aclnn_cts.store.programs import PROGRAMS_STATE, NoProgram, StoredPrograms, program_name, stored_programs
from aclnn_cts.store.run_directory import FAILURES, RunDirectory
from aclnn_cts.trials.checks.equal_calls import EQUAL_CALLS
from aclnn_cts.trials.checks.registry import check_by_id

_BY_ITSELF = Fault.of(Family.REJECTED, Family.ENDED, Family.OUTPUT, Family.MEMORY)
"""Faults of one of several equal calls, whatever the others give."""


def keep_programs(
    trial_file: Path,
    trial: Trial,
    *,
    key: Fingerprint,
    record: Record | None = None,
    programs: Programs,
    languages: Sequence[str],
) -> StoredPrograms:
    """Write the programs of a finding beside its trial file.

    - `trial`: the one to show.
    - `key`: of the failure, which titles name.
    - `record`: of the trial or of one that fails like it; where one of equal calls is at fault, it tells which.

    What is given says which were written, or why none: a case may be too large, and an oracle of the user's own fail.
    """
    item: Trial | Case = trial
    call = (1, 1)
    try:
        calls = check_by_id(trial.check, where="trial").calls(trial, programs.specs[trial.case.operator])
        call = (0, len(calls)) if len(calls) > 1 else (1, 1)
        number = _call_by_itself(trial, record)
        if number is not None:
            call = (number + 1, len(calls))
            item = calls[number]
        texts = programs.texts(item, languages, fingerprint=key)
    except TooManyElementsError as error:
        reason = NoProgram.CALLS if call[0] == 0 else NoProgram.ELEMENTS
        return StoredPrograms(
            trial_id=trial.id,
            call=call,
            missing=reason,
            elements=(error.elements, MAX_ELEMENTS),
            message=str(error).splitlines()[0],
        )
    except Exception as error:  # noqa: BLE001 - an oracle of the user's own raises anything, and the run must end
        said = str(error) if isinstance(error, (HarnessError, UsageError)) else f"{type(error).__name__}: {error}"
        return StoredPrograms(
            trial_id=trial.id, call=call, missing=NoProgram.TRIAL, message=printable(said.split("\n")[0], ECHO_LIMIT)
        )
    for language, text in texts.items():
        write_atomically(trial_file.with_name(program_name(trial_file.name, language)), text.encode())
    return StoredPrograms(trial_id=trial.id, languages=tuple(texts), call=call)


def _call_by_itself(trial: Trial, record: Record | None) -> int | None:
    """Which of several equal calls alone is at fault; they are made in the ordinary call mode. None: all together."""
    if record is None or trial.id != record.trial_id:
        return None
    if trial.check not in EQUAL_CALLS or record.key.fault not in _BY_ITSELF:
        return None
    outcomes = record.attempts[0] if record.attempts else ()
    return call_at_fault(record.verdict.kind, record.fingerprint.output, outcomes)


def keep_run_programs(
    run: RunDirectory, *, specs: Specs, spec_folders: Sequence[Path] = ()
) -> Mapping[str, StoredPrograms]:
    """Write the programs of a run's findings, each of the trial that a report shows; what its store is to keep."""
    programs = Programs(specs=specs, spec_folders=spec_folders)
    languages = languages_of(run.manifest)
    with run.results() as results:
        known = stored_programs(results)
        findings = findings_of(results)
    kept: dict[str, StoredPrograms] = {}
    for item in findings:
        name, trial, record = item.file, item.trial, item.record
        if trial is None or (name in known and known[name].trial_id == trial.id):
            continue
        key = item.key if record is None else record.key
        kept[PROGRAMS_STATE + name] = keep_programs(
            run.path / FAILURES / name, trial, key=key, record=record, programs=programs, languages=languages
        )
    return kept
