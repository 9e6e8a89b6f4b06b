"""Every trial on one line, for the forms that hold them all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from aclnn_cts.adapters.protocol import SOFTWARE_DEVICE
from aclnn_cts.core.case_json import case_to_json
from aclnn_cts.core.strict_json import spelled
from aclnn_cts.core.verdict import Record, Result
from aclnn_cts.reports.model.acceptance import TrialRow
from aclnn_cts.reports.model.acceptance_findings import FindingCard
from aclnn_cts.reports.model.collect import returned_word
from aclnn_cts.reports.model.runs import directories
from aclnn_cts.store.manifest import is_software
from aclnn_cts.store.run_directory import failure_name


def trial_rows(
    paths: Sequence[Path], *, result: str | None = None, findings: Iterable[FindingCard] = ()
) -> Iterator[TrialRow]:
    """All trials of the runs, or those with one result, in a stream; `findings` are the cards of the runs' report."""
    cards: dict[tuple[str, ...], str] = {
        (
            item.run,
            item.file,
            item.member.check,
            item.member.kind,
            item.member.fingerprint.answer,
            item.member.waiver,
        ): card.id
        for card in findings
        for item in card.members
    }
    for run in directories(paths):
        name = run.path.resolve().name
        stand_in = f" ({SOFTWARE_DEVICE})" if is_software(run.manifest) else ""
        verdict = run.summary().verdict.words
        with run.results() as results:
            for record in results.records():
                if result is None or record.verdict.result == result:
                    yield _trial_row(name, record, stand_in, _card_of(name, record, cards), verdict)


def _card_of(run: str, record: Record, cards: Mapping[tuple[str, ...], str]) -> str:
    if record.verdict.result != Result.FAILED or not cards:
        return ""
    file, kind = failure_name(record.key), record.verdict.kind
    return cards.get((run, file, record.trial.check, kind, record.fingerprint.answer, record.waiver), "")


def _trial_row(run: str, record: Record, stand_in: str, finding: str, of_run: str) -> TrialRow:
    verdict, case, fingerprint = record.verdict, record.trial.case, record.fingerprint
    worst = max((deviation.share for deviation in verdict.deviations), default=0.0)
    return TrialRow(
        run=run,
        trial_id=record.trial_id,
        operator=case.operator,
        product=case.product + stand_in,
        check=record.trial.check,
        kind=case.origin.kind,
        constraint=case.origin.constraint or fingerprint.clause,
        result=verdict.result,
        why=verdict.kind,
        message=verdict.message,
        waiver=record.waiver,
        dtype=fingerprint.dtype,
        mode=verdict.mode or fingerprint.mode,
        output=fingerprint.output,
        status=returned_word(record),
        share=spelled(worst),
        seconds=record.seconds,
        case=json.dumps(case_to_json(case, origin=False)["arguments"], ensure_ascii=False)
        if verdict.result == Result.FAILED
        else "",
        finding=finding,
        verdict=of_run,
    )
