"""`summary.json`: a summary as a run directory keeps it."""

from __future__ import annotations

from typing import Any

import msgspec

from aclnn_cts.core.errors import HarnessError
from aclnn_cts.engine.counts import Counts
from aclnn_cts.engine.summary import Summary

__all__ = ["SUMMARY_FORMAT", "summary_from_json", "summary_to_json"]

SUMMARY_FORMAT = "aclnn-cts/summary/1"


def summary_to_json(summary: Summary) -> dict[str, Any]:
    """The document of `summary.json`: verdict and totals first, then each operator with its own."""
    return {
        "format": SUMMARY_FORMAT,
        "verdict": summary.verdict,
        **_counts_to_json(summary.total),
        "discrepancies": list(summary.discrepancies()),
        "violations": list(summary.violations),
        "problems": list(summary.problems),
        "notices": list(summary.notices),
        "notes": msgspec.to_builtins(summary.notes),
        "waivers": dict(sorted(summary.waivers.items())),
        "operators": {
            name: {
                **_counts_to_json(operator.total),
                "kinds": {kind: _counts_to_json(counts) for kind, counts in operator.kinds.items()},
                "constraints": msgspec.to_builtins(operator.constraints),
                "laws": msgspec.to_builtins(operator.laws),
                "coverage": msgspec.to_builtins(operator.coverage),
            }
            for name, operator in sorted(summary.operators.items())
        },
    }


def _counts_to_json(counts: Counts) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(counts)
    document["skipped_by_reason"] = dict(sorted(counts.skipped_by_reason.items()))
    return document


def summary_from_json(document: object, *, where: str) -> Summary:
    """Read `summary.json` again. Totals and verdict are derived, so only the counts by kind are read."""
    try:
        return msgspec.convert(document, Summary)
    except msgspec.ValidationError as error:
        raise HarnessError(f"{where}: {error}; the file was not written by this program or has been changed") from None
