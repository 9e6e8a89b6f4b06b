"""Every trial on one line, for the forms that hold them all."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from aclnn_cts.adapters.protocol import SOFTWARE_DEVICE
from aclnn_cts.core.acceptance import TrialRow
from aclnn_cts.core.case_json import case_to_json
from aclnn_cts.core.verdict import Record, Result
from aclnn_cts.engine.acceptance.collect import returned_word
from aclnn_cts.engine.acceptance.precision import plain
from aclnn_cts.engine.acceptance.runs import directories
from aclnn_cts.engine.manifest import is_software

__all__ = ["trial_rows"]


def trial_rows(paths: Sequence[Path], *, result: str | None = None) -> Iterator[TrialRow]:
    """All trials of the runs, or those with one result, in a stream."""
    for run in directories(paths):
        name = run.path.resolve().name
        stand_in = f" ({SOFTWARE_DEVICE})" if is_software(run.manifest) else ""
        with run.results() as results:
            for record in results.records():
                if result is None or record.verdict.result == result:
                    yield _trial_row(name, record, stand_in)


def _trial_row(run: str, record: Record, stand_in: str) -> TrialRow:
    verdict, case, signature = record.verdict, record.trial.case, record.signature
    worst = max((deviation.share for deviation in verdict.deviations), default=0.0)
    return TrialRow(
        run=run,
        trial_id=record.trial_id,
        operator=case.operator,
        product=case.product + stand_in,
        promise=record.trial.promise,
        kind=case.origin.kind,
        constraint=case.origin.constraint or signature.constraint,
        result=verdict.result,
        why=verdict.kind,
        message=verdict.message,
        waiver=record.waiver,
        dtype=signature.dtype,
        mode=verdict.mode or signature.mode,
        output=signature.output,
        status=returned_word(record),
        share=plain(worst),
        seconds=record.seconds,
        case=json.dumps(case_to_json(case, origin=False)["arguments"], ensure_ascii=False)
        if verdict.result == Result.FAILED
        else "",
    )
