"""The programs that a run keeps beside the trial files of its findings, and why a finding has none."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from aclnn_cts.core.errors import HarnessError
from aclnn_cts.store.run_directory import FAILURES, RunDirectory, read_run_file
from aclnn_cts.store.store_reader import ResultReader

SUFFIXES: Mapping[str, str] = {"cpp": ".cpp", "python": ".py", "numpy": "_numpy.py", "torch": "_torch.py"}
"""Of the programs' files, by language: ends of names, of which `Path.with_suffix` takes not all."""

PROGRAMS_STATE = "programs/"
"""What the keys of `StoredPrograms` in a store's state begin with; the name of the finding's trial file follows."""

PROGRAM_BYTES = 16 * 1024 * 1024
"""Longest program that is read: far more than the data that one may hold take."""


class NoProgram:
    """Why a finding has no program (values of `StoredPrograms.missing`)."""

    ELEMENTS = "elements"
    """The case has more elements than a program holds."""
    CALLS = "calls"
    """The calls of the trial together have."""
    TEXT = "text"
    """Every program is longer than a page shows."""
    ROOM = "room"
    """The page's room for programs is used up."""
    TRIAL = "trial"
    """None can be made of the trial."""
    UNSTORED = "unstored"
    """The run keeps none: it was interrupted, or is reported together with others."""


class StoredPrograms(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a run keeps of one finding's programs; their texts lie beside its trial file."""

    trial_id: str
    """Of the trial that they show."""
    languages: tuple[str, ...] = ()
    call: tuple[int, int] = (1, 1)
    """Which of how many calls of the trial they make; (1, 1) where it has one, 0 for all of them in turn."""
    missing: str = ""
    """Why there is none (`NoProgram`); empty where there is one."""
    elements: tuple[int, int] = (0, 0)
    """Elements of the case's calls, and those that a program holds, where these are too few; else zeros."""
    message: str = ""
    """Why there is none, in a sentence."""


def program_name(trial_file: str, language: str) -> str:
    """The name of the program that lies with a trial's file."""
    return trial_file.removesuffix(".json") + SUFFIXES[language]


def stored_programs(results: ResultReader) -> dict[str, StoredPrograms]:
    """What a run keeps of its findings' programs, by the names of their trial files.

    Raises HarnessError where it is damaged.
    """
    found: dict[str, StoredPrograms] = {}
    for key, value in results.states(PROGRAMS_STATE):
        try:
            found[key.removeprefix(PROGRAMS_STATE)] = stored = msgspec.convert(value, StoredPrograms)
        except msgspec.ValidationError as error:
            raise HarnessError(f"{results.path} (state {key}): {error}; the file is damaged or newer") from None
        if unknown := set(stored.languages) - set(SUFFIXES):
            raise HarnessError(f"{results.path} (state {key}): no languages of programs: {sorted(unknown)!r:.200}")
    return found


def read_programs(run: RunDirectory, trial_file: str, stored: StoredPrograms) -> dict[str, bytes]:
    """The texts of a finding's programs by language; HarnessError where one cannot be read."""
    return {
        language: read_run_file(run.path / FAILURES / program_name(trial_file, language), limit=PROGRAM_BYTES)
        for language in stored.languages
    }
