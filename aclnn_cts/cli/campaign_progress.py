"""`--progress FILE` of a campaign: what the screen shows, as one JSON object that is written anew each second."""

from __future__ import annotations

import platform
from collections import deque
from pathlib import Path
from typing import Any

from aclnn_cts.campaign.corpus.check_coverage import Share
from aclnn_cts.campaign.status import EXAMINES, OperatorStatus, Status
from aclnn_cts.cli.campaign_words import brief, moment_of, standing
from aclnn_cts.cli.progress_line import ProgressFile, progress_document
from aclnn_cts.findings.finding import Finding
from aclnn_cts.store.output_file import OutputFile
from aclnn_cts.store.run_directory import FAILURES, failure_name

__all__ = ["ProgressJson", "progress"]

LAST = 20
"""Findings, and notices, that the file has."""


class ProgressJson:
    """Writes the moment: a file whole or not at all, a line of a stream."""

    def __init__(self, output: OutputFile, run: Path) -> None:
        self._file = ProgressFile(output, run)
        self._notices: deque[str] = deque(maxlen=LAST)

    def __call__(self, status: Status, /) -> None:
        """Write a moment, at most once a second but for the last."""
        self._file.write(progress(status) | {"notices": list(self._notices)}, last=bool(status.ending))

    def notice(self, message: str, /) -> None:
        """Keep it for the moments that follow."""
        self._notices.append(message)


def progress(status: Status) -> dict[str, Any]:
    """A moment as plain JSON values."""
    found = standing(status)
    return {
        **progress_document(moment_of(status)),
        "finished": bool(status.ending),
        "host": platform.node(),
        "limit_seconds": status.limit_seconds,
        "chunks": status.chunks,
        "limit_chunks": status.limit_chunks,
        "phase": status.phase,
        "ran_on": status.ran_on,
        "to_confirm": status.waiting,
        "last_findings": [_finding(each) for each in reversed(found[-LAST:])],
        "workers": _workers(status),
        "coverage": _share(status.covered),
        "operators": [_operator(item) for item in status.operators],
        "disk_bytes": status.disk_bytes,
        "disk_limit": status.disk_limit,
        "ending": status.ending,
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "text": brief(finding),
        "file": f"{FAILURES}/{failure_name(finding.signature)}",
        "confirmed": finding.confirmed,
        "failures": finding.failures,
        "worker": finding.slot,
        "device": finding.device,
        "seconds": finding.seconds,
    }


def _workers(status: Status) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for slot, work in zip(status.slots, status.under_way, strict=True):
        words: dict[str, Any] = {
            "name": slot.name,
            "device": slot.device,
            "health": slot.health,
            "lost": slot.lost,
        }
        if work is not None:
            words |= {
                "chunk": None if work.chunk == EXAMINES else work.chunk,
                "judged": work.judged,
                "of": work.of,
                "seconds_without_news": round(work.still, 1),
            }
        found.append(words)
    return found


def _operator(item: OperatorStatus) -> dict[str, Any]:
    return {
        "name": item.name,
        "cases": item.cases,
        "failed": item.failed,
        "worst_share": item.worst,
        "coverage": {name: _share(share) for name, share in item.coverage.items()},
        "pairs_by_factor": {name: _share(share) for name, share in item.factors.items()},
        "tried_and_not_judged": {name: share.apart for name, share in item.coverage.items() if share.apart},
    }


def _share(share: Share) -> list[int]:
    return [share.met, share.of]
