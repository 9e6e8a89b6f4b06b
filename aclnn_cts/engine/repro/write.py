"""Making and writing the programs of a trial."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from aclnn_cts.core.case import Case
from aclnn_cts.core.case_json import case_id
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.trial import Trial
from aclnn_cts.engine.files import write_atomically
from aclnn_cts.engine.judges import Judges
from aclnn_cts.engine.laws import PREFIX, law_calls, law_of
from aclnn_cts.engine.repro.cpp import cpp_program
from aclnn_cts.engine.repro.facts import MAX_ELEMENTS, CallsOfTrial, Reproduction, reproduction
from aclnn_cts.engine.repro.python import python_program
from aclnn_cts.spec.evaluate import evaluate
from aclnn_cts.spec.load import Specs
from aclnn_cts.spec.model import Spec

__all__ = ["LANGUAGES", "REPLAY", "Programs", "is_one_call", "write_programs"]

REPLAY = "aclnn-cts replay FILE --adapter ADAPTER"

LANGUAGES: Mapping[str, Callable[[CallsOfTrial], str]] = {"cpp": cpp_program, "python": python_program}

_ONE_CALL = frozenset({"values", "status", "boundary", "example", "memory", "precision"})


def is_one_call(item: Trial | Case) -> bool:
    """Whether one call shows what a trial shows, so that a program can show all of it."""
    return not isinstance(item, Trial) or item.promise in _ONE_CALL


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
        self, item: Trial | Case, languages: Iterable[str], *, call: int | None = None, replay: str = REPLAY
    ) -> dict[str, str]:
        """One program a language; of a law, all of its calls one after another, or that of the number `call`.

        `replay` is the command that judges the whole trial. UsageError for a trial that is about a manner of calling,
        a number that is none of the trial's, or cases that are too large.
        """
        made = self.calls(item, call=call, replay=replay)
        return {language: LANGUAGES[language](made) for language in languages}

    def calls(self, item: Trial | Case, *, call: int | None = None, replay: str = REPLAY) -> CallsOfTrial:
        """What the programs of `texts` make."""
        if isinstance(item, Trial) and item.promise.startswith(PREFIX):
            return self._law(item, call, replay)
        if isinstance(item, Trial) and not is_one_call(item):
            raise UsageError(
                f"a trial of {item.promise!r} is about a manner of calling (streams, cache, executors, workspaces, "
                f"many calls in a row), which a program of plain calls has not; {replay} calls in that manner, and a "
                "file with the trial's case alone becomes a program"
            )
        if call is not None and call != 1:
            raise UsageError(f"--call {call}: the trial makes one call; leave --call out")
        return CallsOfTrial.one(self._facts(item.case if isinstance(item, Trial) else item))

    def _law(self, trial: Trial, call: int | None, replay: str) -> CallsOfTrial:
        spec = self.specs[trial.case.operator]
        law = law_of(spec, trial.promise)
        cases = law_calls(trial, spec)
        if not cases:
            raise UsageError(f"a trial of {trial.promise!r} takes a case that the law applies to; this one is none")
        if call is not None and not 1 <= call <= len(cases):
            raise UsageError(
                f"--call {call}: the trial of {trial.promise!r} makes {_calls(len(cases))}; name one by its number"
            )
        chosen = cases if call is None else cases[call - 1 : call]
        unlike = list({case_id(case): case for case in chosen}.values())
        elements = sum(tensor.storage_numel for case in unlike for _, tensor in case.tensors())
        if elements > MAX_ELEMENTS:
            raise UsageError(
                f"the calls of the trial have {elements} elements; a program holds at most {MAX_ELEMENTS}: name one of "
                f"its {len(cases)} calls with --call N"
            )
        which = f"call {call} of its {_calls(len(cases))}" if call is not None else f"its {_calls(len(cases))} in turn"
        order = {case_id(case): place for place, case in enumerate(unlike)}
        return CallsOfTrial(
            made=tuple(self._facts(case) for case in unlike),
            order=tuple(order[case_id(case)] for case in chosen),
            about=(
                f"Of a trial of {trial.promise}: the program makes {which}, and judges each by itself.",
                f"What the law asks beyond that: {law.en}.",
                f"Exit code 0 says nothing of that; this judges it: {replay}",
            ),
            beyond=f"each call conforms by itself; whether the law is kept, this tells: {replay}",
        )

    def _facts(self, case: Case) -> Reproduction:
        spec = self.specs[case.operator]
        evaluation = evaluate(spec, case)
        broken = ", ".join(constraint.id for constraint in evaluation.broken)
        promised = " or ".join(evaluation.statuses)
        sentence = f"breaks {broken}, promised {promised}" if broken else f"a supported call, promised {promised}"
        return reproduction(case, spec, self._judges.of(spec), sentence=sentence)


def _calls(number: int) -> str:
    return "1 call" if number == 1 else f"{number} calls"


def write_programs(
    item: Trial | Case,
    specs: Specs,
    paths: Mapping[str, Path],
    *,
    spec_folders: Sequence[Path] = (),
    call: int | None = None,
    replay: str = REPLAY,
) -> Iterator[Path]:
    """Write one program a language; yields each path. Raises UsageError as `Programs.texts` does."""
    texts = Programs(specs=specs, spec_folders=spec_folders).texts(item, paths, call=call, replay=replay)
    for language, path in paths.items():
        with contextlib.suppress(OSError):
            # What cannot be made cannot be written in either, and that message names the file.
            path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, texts[language].encode())
        yield path
