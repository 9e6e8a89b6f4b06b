"""`aclnn-cts validate`: what the document promises for case files, without running anything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from aclnn_cts.cli.options import command, edition_option, json_option, specs_option
from aclnn_cts.cli.output import console, count, emit, note, wrap
from aclnn_cts.cli.spec_show import conforming, rule_text
from aclnn_cts.core.case import Case
from aclnn_cts.core.case_json import case_id
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.outcome import ANY_ERROR, SUCCESS
from aclnn_cts.core.trial import Trial
from aclnn_cts.speclang.evaluate import Evaluation, evaluate
from aclnn_cts.speclang.kinds import Strength
from aclnn_cts.speclang.load import Specs, load_specs
from aclnn_cts.speclang.model import Spec
from aclnn_cts.store.case_files import read_entries

USAGE = 2


@command(example="aclnn-cts validate case.json")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@specs_option
@edition_option
@json_option
def validate(*, files: tuple[Path, ...], folders: tuple[Path, ...], edition: str, as_json: bool) -> int:
    """Say for each case of the files (.json, or .jsonl with one a line) what the document promises; run nothing.

    Trial files are read too. The exit code is 2 where a file has a mistake; what can be read is
    answered all the same.
    """
    specs = load_specs(folders, edition=edition)
    out = None if as_json else console()
    answered = refused = 0
    for file in files:
        for answer in _answers(file, specs):
            if isinstance(answer, UsageError):
                note(f"error: {answer}")
                refused += 1
                continue
            answered += 1
            if out is None:
                emit(_document(answer))
            else:
                _show(out, answer)
    if refused:
        note(f"{count(answered, 'case')} answered, {count(refused, 'mistake')} in the files")
        return USAGE
    return 0


@dataclass(frozen=True, slots=True)
class _Answer:
    """What the document promises for one case; no evaluation where it does not name the product."""

    where: str
    check: str | None
    spec: Spec
    case: Case
    evaluation: Evaluation | None

    @property
    def status(self) -> tuple[str, ...]:
        return self.evaluation.statuses if self.evaluation is not None else (ANY_ERROR, SUCCESS)

    @property
    def unnamed(self) -> str:
        return f"the document speaks of {', '.join(self.spec.products)} and not of {self.case.product}"


def _answers(file: Path, specs: Specs) -> Iterator[_Answer | UsageError]:
    """An answer for each document of a file, or what is wrong with it."""
    from aclnn_cts.checks.registry import fitted_trial

    for entry in read_entries(file):
        if isinstance(entry, UsageError):
            yield entry
            continue
        check = entry.content.check if isinstance(entry.content, Trial) else None
        case = entry.content.case if isinstance(entry.content, Trial) else entry.content
        try:
            spec = fitted_trial(specs, entry.content, where=entry.where)
        except UsageError as error:
            yield error
            continue
        evaluation = evaluate(spec, case) if case.product in spec.products else None
        yield _Answer(entry.where, check, spec, case, evaluation)


def _document(answer: _Answer) -> dict[str, Any]:
    document: dict[str, Any] = {"file": answer.where}
    if answer.check is not None:
        document["check"] = answer.check
    document |= {
        "operator": answer.case.operator,
        "product": answer.case.product,
        "case": case_id(answer.case),
        "status": list(answer.status),
    }
    if answer.evaluation is None:
        return document | {"strength": Strength.OPEN, "violates": [], "note": answer.unnamed}
    broken = answer.evaluation.broken
    return document | {
        "strength": answer.evaluation.strength,
        "violates": [item.id for item in broken],
        "clauses": {item.id: list(item.clauses) for item in broken},
        "not_applicable": [item.id for item in answer.evaluation.not_applicable],
    }


def _show(out: Console, answer: _Answer) -> None:
    head = f"{answer.where}: {answer.case.operator} on {answer.case.product}"
    if answer.check is not None:
        head += f", a trial of {answer.check}"
    expected = " or ".join(answer.status)
    evaluation = answer.evaluation
    if evaluation is None:
        wrap(out, f"{head}: {answer.unnamed}; {expected} conforms")
        return
    if not evaluation.broken:
        wrap(out, f"{head}: valid; {expected} conforms")
        return
    wrap(
        out,
        f"{head}: breaks {count(len(evaluation.broken), 'constraint')} ({evaluation.strength}); {expected} conforms",
    )
    for item in evaluation.broken:
        wrap(out, f"{item.id}: {rule_text(item, answer.case.product)}", indent=2)
        source = f"; clauses {', '.join(item.clauses)}" if item.clauses else ""
        wrap(out, f"{item.strength}, by itself {' or '.join(conforming(item))}{source}", indent=4)
    if evaluation.not_applicable:
        wrap(out, f"says nothing then: {', '.join(item.id for item in evaluation.not_applicable)}", indent=2)
