"""`summary.json`: a summary as a run directory keeps it."""

from __future__ import annotations

from typing import Any

import msgspec

from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.printable import ECHO_LIMIT, printable
from aclnn_cts.store.counts import Counts
from aclnn_cts.store.run_verdict import OperatorVerdict, percent
from aclnn_cts.store.summary import Summary

__all__ = ["SUMMARY_FORMAT", "summary_from_json", "summary_to_json"]

SUMMARY_FORMAT = "aclnn-cts/summary/2"


def summary_to_json(summary: Summary) -> dict[str, Any]:
    """The document of `summary.json`: verdict and totals first, then each operator with its own."""
    conclusion = summary.conclusion
    return {
        "format": SUMMARY_FORMAT,
        "verdict": conclusion.verdict.value,
        "judged": percent(conclusion.share),
        "terms": msgspec.to_builtins(summary.terms),
        "scope": msgspec.to_builtins(summary.scope),
        "finished": summary.finished,
        "causes": [note.text for note in conclusion.causes],
        "reasons": [msgspec.to_builtins(reason) for reason in conclusion.reasons],
        **_counts_to_json(summary.total),
        "discrepancies": list(summary.discrepancies()),
        "violations": list(summary.violations),
        "problems": list(summary.problems),
        "notices": list(summary.notices),
        "notes": msgspec.to_builtins(summary.notes),
        "waivers": dict(sorted(summary.waivers.items())),
        "operators": {
            name: {
                **_verdict_to_json(conclusion.operators.get(name)),
                **_counts_to_json(operator.total),
                "kinds": {kind: _counts_to_json(counts) for kind, counts in operator.kinds.items()},
                "aims": {aim: _counts_to_json(counts) for aim, counts in operator.aims.items()},
                "constraints": msgspec.to_builtins(operator.constraints),
                "dtypes": msgspec.to_builtins(operator.dtypes),
                "cells": dict(sorted(operator.cells.items())),
                "rules": msgspec.to_builtins(operator.rules),
                "unjudged": msgspec.to_builtins(operator.unjudged),
                "observed": msgspec.to_builtins(operator.observed),
                "laws": msgspec.to_builtins(operator.laws),
                "coverage": msgspec.to_builtins(operator.coverage),
            }
            for name, operator in sorted(summary.operators.items())
        },
    }


def _verdict_to_json(found: OperatorVerdict | None) -> dict[str, Any]:
    """The verdict on one operator; none on one of which nothing was asked."""
    if found is None:
        return {}
    return {
        "verdict": found.verdict.value,
        "judged": percent(found.share),
        "causes": [note.text for note in found.causes],
        "scope": dict(found.scope),
    }


def _counts_to_json(counts: Counts) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(counts)
    for reasons in ("skipped_by_reason", "out_of_scope_by_reason"):
        document[reasons] = dict(sorted(document[reasons].items()))
    return document


def summary_from_json(document: object, *, where: str) -> Summary:
    """Read `summary.json` again. Totals and verdict are derived, so only the counts are read."""
    try:
        return msgspec.convert(document, Summary)
    except msgspec.ValidationError as error:
        reason = printable(str(error), ECHO_LIMIT)
        raise HarnessError(f"{where}: {reason}; the file was not written by this program or has been changed") from None
