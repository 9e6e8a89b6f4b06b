"""Writing the programs of a trial."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from aclnn_cts.core.case import Case
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.trial import Trial
from aclnn_cts.engine.files import write_atomically
from aclnn_cts.engine.judging import Judge
from aclnn_cts.engine.repro.cpp import cpp_program
from aclnn_cts.engine.repro.facts import Reproduction, reproduction
from aclnn_cts.engine.repro.python import python_program
from aclnn_cts.judge.model import load_precision
from aclnn_cts.oracles import registry
from aclnn_cts.spec.evaluate import evaluate
from aclnn_cts.spec.load import Specs

__all__ = ["LANGUAGES", "write_programs"]

LANGUAGES: Mapping[str, Callable[[Reproduction], str]] = {"cpp": cpp_program, "python": python_program}

_ONE_CALL = frozenset({"values", "status", "boundary", "example", "memory", "precision"})


def write_programs(
    item: Trial | Case, specs: Specs, paths: Mapping[str, Path], *, spec_folders: Sequence[Path] = ()
) -> Iterator[Path]:
    """Write one program a language; yields each path. UsageError for a trial that takes several calls."""
    case = item.case if isinstance(item, Trial) else item
    if isinstance(item, Trial) and item.promise not in _ONE_CALL:
        raise UsageError(
            f"a trial of {item.promise!r} takes several calls; a program shows one call: give the case file of "
            "one of them"
        )
    spec = specs[case.operator]
    judge = Judge(
        spec=spec,
        oracle=registry.load(spec.stem, folders=spec_folders),
        base_precision=load_precision(),
        has_statuses=True,
    )
    evaluation = evaluate(spec, case)
    broken = ", ".join(constraint.id for constraint in evaluation.broken)
    promised = " or ".join(evaluation.statuses)
    sentence = f"breaks {broken}, promised {promised}" if broken else f"a supported call, promised {promised}"
    facts = reproduction(case, spec, judge, sentence=sentence)
    for language, path in paths.items():
        write_atomically(path, LANGUAGES[language](facts).encode())
        yield path
