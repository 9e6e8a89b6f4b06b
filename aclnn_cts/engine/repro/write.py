"""Making and writing the programs of a trial."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from aclnn_cts.core.case import Case
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.trial import Trial
from aclnn_cts.engine.files import write_atomically
from aclnn_cts.engine.judging import Judge
from aclnn_cts.engine.repro.cpp import cpp_program
from aclnn_cts.engine.repro.facts import Reproduction, reproduction
from aclnn_cts.engine.repro.python import python_program
from aclnn_cts.judge.model import Precision, load_precision
from aclnn_cts.oracles import registry
from aclnn_cts.spec.evaluate import evaluate
from aclnn_cts.spec.load import Specs
from aclnn_cts.spec.model import Spec

__all__ = ["LANGUAGES", "Programs", "is_one_call", "write_programs"]

LANGUAGES: Mapping[str, Callable[[Reproduction], str]] = {"cpp": cpp_program, "python": python_program}

_ONE_CALL = frozenset({"values", "status", "boundary", "example", "memory", "precision"})


def is_one_call(item: Trial | Case) -> bool:
    """Whether one call shows what a trial shows, so that a program can."""
    return not isinstance(item, Trial) or item.promise in _ONE_CALL


@dataclass(slots=True, kw_only=True)
class Programs:
    """Makes programs, of many trials where need be: what they share is loaded once."""

    specs: Mapping[str, Spec]
    spec_folders: Sequence[Path] = ()
    _judges: dict[str, Judge] = field(default_factory=dict)
    _precision: Precision | None = None

    def texts(self, item: Trial | Case, languages: Iterable[str]) -> dict[str, str]:
        """One program a language. UsageError for a trial that takes several calls, or a case that is too large."""
        case = item.case if isinstance(item, Trial) else item
        if isinstance(item, Trial) and not is_one_call(item):
            raise UsageError(
                f"a trial of {item.promise!r} takes several calls; a program shows one call: give the case file of "
                "one of them"
            )
        spec = self.specs[case.operator]
        evaluation = evaluate(spec, case)
        broken = ", ".join(constraint.id for constraint in evaluation.broken)
        promised = " or ".join(evaluation.statuses)
        sentence = f"breaks {broken}, promised {promised}" if broken else f"a supported call, promised {promised}"
        facts = reproduction(case, spec, self._judge(spec), sentence=sentence)
        return {language: LANGUAGES[language](facts) for language in languages}

    def _judge(self, spec: Spec) -> Judge:
        if spec.operator not in self._judges:
            if self._precision is None:
                self._precision = load_precision()
            self._judges[spec.operator] = Judge(
                spec=spec,
                oracle=registry.load(spec.stem, folders=self.spec_folders),
                base_precision=self._precision,
                has_statuses=True,
            )
        return self._judges[spec.operator]


def write_programs(
    item: Trial | Case, specs: Specs, paths: Mapping[str, Path], *, spec_folders: Sequence[Path] = ()
) -> Iterator[Path]:
    """Write one program a language; yields each path. UsageError for a trial that takes several calls."""
    texts = Programs(specs=specs, spec_folders=spec_folders).texts(item, paths)
    for language, path in paths.items():
        with contextlib.suppress(OSError):
            # What cannot be made cannot be written in either, and that message names the file.
            path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, texts[language].encode())
        yield path
