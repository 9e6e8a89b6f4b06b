"""`aclnn-cts validate`: what the document promises for case files, without running anything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aclnn_cts.cli.options import command, edition_option, json_option, specs_option
from aclnn_cts.cli.output import count, note
from aclnn_cts.cli.render import Fields, RepeatedView, TextLine, View, show
from aclnn_cts.cli.spec_show import conforming, rule_text
from aclnn_cts.core.case import Case
from aclnn_cts.core.case_json import case_id
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.outcome import ANY_ERROR, SUCCESS
from aclnn_cts.core.trial import Trial
from aclnn_cts.speclang.evaluate import Evaluation, evaluate
from aclnn_cts.speclang.kinds import Strength
from aclnn_cts.speclang.load import Specs, load_specs
from aclnn_cts.speclang.mismatch import mismatch_text
from aclnn_cts.speclang.model import Spec
from aclnn_cts.store.case_files import read_entries

if TYPE_CHECKING:
    from aclnn_cts.execution.judging import Judges
    from aclnn_cts.execution.undecided import OpenElements

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
    answered = refused = 0
    for file in files:
        for answer in _answers(file, specs, folders):
            if isinstance(answer, UsageError):
                note(f"error: {answer}")
                refused += 1
                continue
            answered += 1
            show(_document(answer), _ANSWER, _words(answer), as_json=as_json)
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
    values: OpenElements | str | None
    """Of a call that may succeed, or why nobody looked at them; None of one that has none to look at."""

    @property
    def status(self) -> tuple[str, ...]:
        return self.evaluation.statuses if self.evaluation is not None else (ANY_ERROR, SUCCESS)

    @property
    def unnamed(self) -> str:
        return f"the document speaks of {', '.join(self.spec.products)} and not of {self.case.product}"


def _answers(file: Path, specs: Specs, folders: tuple[Path, ...]) -> Iterator[_Answer | UsageError]:
    """An answer for each document of a file, or what is wrong with it."""
    from aclnn_cts.execution.judging import Judges
    from aclnn_cts.trials.checks.registry import fitted_trial

    judges = Judges(has_statuses=True)
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
        yield _Answer(entry.where, check, spec, case, evaluation, _values(judges, spec, case, evaluation))


def _values(judges: Judges, spec: Spec, case: Case, evaluation: Evaluation | None) -> OpenElements | str | None:
    from aclnn_cts.execution.undecided import open_elements

    if evaluation is None or SUCCESS not in evaluation.statuses or evaluation.strength == Strength.ACCURACY:
        return None
    if case.call.phases == 1:
        return None
    try:
        judge = judges.of(spec)
    except UsageError:
        return "no oracle for this operator ships, and only a run executes one of your own"
    return open_elements(judge, case)


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
    if isinstance(answer.values, str):
        document |= {"values": f"not looked at: {answer.values}"}
    elif answer.values is not None:
        document |= {"elements": answer.values.elements, "open": answer.values.open}
    return document | {
        "strength": answer.evaluation.strength,
        "violates": [item.id for item in broken],
        "mismatches": {item.id: text for item in broken if (text := mismatch_text(item, answer.case))},
        "clauses": {item.id: list(item.clauses) for item in broken},
        "not_applicable": [item.id for item in answer.evaluation.not_applicable],
    }


_CASE = "{file}: {operator} on {product}[, a trial of {check}]: "
_ANSWER: View = (
    _CASE + "{note}; {conforms}",
    "{!note}{!violates}" + _CASE + "valid; {conforms}",
    "{?violates}" + _CASE + "breaks {violates:constraint} ({strength}); {conforms}",
    RepeatedView(
        "rules",
        (
            TextLine("{id}: {rule}", indent=2),
            TextLine("{mismatch}", indent=4),
            TextLine("{strength}, by itself {statuses}[; clauses {sources}]", indent=4),
        ),
    ),
    TextLine("{?violates}says nothing then: {not_applicable}", indent=2),
)


def _words(answer: _Answer) -> Fields:
    """What the text has beside the document: what conforms, and each broken rule in a sentence."""
    product = answer.case.product
    broken = answer.evaluation.broken if answer.evaluation is not None else ()
    return {
        "conforms": f"{' or '.join(answer.status)} conforms{_open_text(answer.values)}",
        "rules": [
            {
                "id": item.id,
                "rule": rule_text(item, product),
                "mismatch": mismatch_text(item, answer.case),
                "strength": item.strength,
                "statuses": " or ".join(conforming(item)),
                "sources": item.clauses,
            }
            for item in broken
        ],
    }


def _open_text(values: OpenElements | str | None) -> str:
    """What cannot be judged, or was not looked at, of the values of a call that succeeds."""
    if isinstance(values, str):
        return f", but its values were not looked at: {values}"
    if values is None or not values.open:
        return ""
    if values.are_all_open:
        return f", and nothing of its values is decided: {count(values.elements, 'element')}, all of them open"
    return f"; {values.open} of {count(values.elements, 'element')} are open"
