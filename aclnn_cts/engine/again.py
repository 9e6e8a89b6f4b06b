"""A failure is run again by itself before it is reported: does it fail alone, or only in company?"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from aclnn_cts.core.outcome import Ended
from aclnn_cts.core.verdict import Record, Result, Verdict
from aclnn_cts.engine.perform import Performed

__all__ = ["ALONE_FACT", "COMPANY_ALLOWED", "confirmed"]

ALONE_FACT = "alone"
"""Key of `Verdict.facts` on a failure that was run again: `fails too`, `conforms`, or what else came of it."""

COMPANY_ALLOWED = 2
"""Failures of one signature that are run again; those after them are of a finding that is known by then."""


def confirmed(record: Record, attempt: Sequence[Performed], verdict: Verdict) -> Record:
    """The record with its second attempt, and what that says of the first.

    The verdict stays a failure: what fails only after other calls fails. But it is marked, since it will not show
    when the trial is replayed.
    """
    if any(item.outcome.ended == Ended.NOT_RUN for item in attempt):
        said = "could not be run"
    elif verdict.result == Result.FAILED:
        said = "fails too" if verdict.kind == record.verdict.kind else f"fails otherwise ({verdict.kind})"
    elif verdict.result == Result.PASSED:
        said = "conforms"
    else:
        said = f"{verdict.result} ({verdict.kind})"
    message = record.verdict.message
    if verdict.result == Result.PASSED:
        message = f"{message}; run again alone in a fresh process it conforms: it fails only in company"
    first = msgspec.structs.replace(record.verdict, message=message, facts={**record.verdict.facts, ALONE_FACT: said})
    outcomes = tuple(item.outcome for item in attempt)
    return msgspec.structs.replace(record, attempts=(*record.attempts, outcomes), verdict=first)
