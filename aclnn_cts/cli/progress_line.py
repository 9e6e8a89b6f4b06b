"""How far a run or a campaign is, in a line and in a file: both have the same figures under the same names."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from aclnn_cts.cli.output import count, span
from aclnn_cts.core.finding import Finding
from aclnn_cts.findings.findings import Failures
from aclnn_cts.store.counts import Counts
from aclnn_cts.store.events import BatchJudged, Event, TrialsExpected, TrialsPlanned, TrialsSkipped
from aclnn_cts.store.manifest import timestamp
from aclnn_cts.store.output_file import OutputFile, begins_with

PROGRESS_FILE = begins_with(rb'\Z|\{"time": "[^"]*", "run": "')
"""Files that `ProgressFile` has written."""

EVERY = 60.0
"""Seconds between two lines where there is no terminal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """What is known of a run at one moment."""

    seconds: float
    counts: Counts
    planned: int | None
    """Trials in all; None where there is no plan."""
    findings: int
    """Without a waiver."""
    rate: float
    """Trials a second."""
    left: float | None
    """Seconds; None where nobody knows."""


def progress_line(moment: RunStatus, *, short: bool = False) -> str:
    """`0:00:42  1832 of 3948 trials, 44/s, 3 findings, 0:00:48 left`.

    `short`, for a narrow terminal: `1832/3948 44/s 3 findings 0:00:48 left`.
    """
    of = f" of {moment.planned}" if moment.planned is not None else ""
    left = f", {span(moment.left)} left" if moment.left is not None else ""
    findings = count(moment.findings, "finding")
    done = moment.counts.ended
    if short:
        return f"{done}{of.replace(' of ', '/')} {moment.rate:.0f}/s {findings}{left[1:]}"
    return f"{span(moment.seconds)}  {done}{of} trials, {moment.rate:.0f}/s, {findings}{left}"


def progress_document(moment: RunStatus) -> dict[str, object]:
    """The same as JSON values."""
    counts = moment.counts
    return {
        "seconds": round(moment.seconds, 1),
        "seconds_left": None if moment.left is None else round(moment.left, 1),
        "planned": moment.planned,
        "cases": counts.ended,
        "cases_per_second": round(moment.rate, 1),
        "passed": counts.passed,
        "failed": counts.failed,
        "waived": counts.waived,
        "errors": counts.errors,
        "skipped": counts.skipped,
        "out_of_scope": counts.out_of_scope,
        "findings": moment.findings,
    }


class RunMeter:
    """Counts what the events of a run say."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._counts = Counts()
        self._expected: int | None = None
        self._failures = Failures()
        self._operators: dict[str, Counts] = {}

    def __call__(self, event: Event, /) -> None:
        """Take one event."""
        if isinstance(event, TrialsExpected):
            self._expected = self._counts.cases + event.number
        elif isinstance(event, TrialsPlanned):
            self._counts.cases += event.number
        elif isinstance(event, TrialsSkipped):
            self._counts.count(event.result, reason=event.reason, number=event.number)
        elif isinstance(event, BatchJudged):
            for record in event.records:
                self._counts.add(record.verdict, waived=bool(record.waiver))
                own = self._operators.setdefault(record.trial.case.operator, Counts())
                own.add(record.verdict, waived=bool(record.waiver))
                self._failures.add(record)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Those without a waiver so far."""
        return self._failures.unwaived

    def operator_line(self, operator: str) -> str:
        """What an operator came to: `0:00:07  Softmax: 454 passed, 19 failed, all of them waived`."""
        own = self._operators.get(operator, Counts())
        waived = f", {'all of them' if own.waived == own.failed else own.waived} waived" if own.waived else ""
        seconds = span(time.monotonic() - self._began)
        return f"{seconds}  {operator.removeprefix('aclnn')}: {own.passed} passed, {own.failed} failed{waived}"

    def moment(self) -> RunStatus:
        """What is known now."""
        seconds, ended = time.monotonic() - self._began, self._counts.ended
        planned = None if self._expected is None else max(self._expected, self._counts.cases)
        rate = ended / seconds if seconds > 0 else 0.0
        left = None if planned is None or not rate else (planned - ended) / rate
        return RunStatus(
            seconds=seconds,
            counts=self._counts,
            planned=planned,
            findings=len(self.findings),
            rate=rate,
            left=left,
        )


class ProgressFile:
    """`--progress FILE`: one JSON object, written anew at most once a second; a stream gets a line each time."""

    def __init__(self, output: OutputFile, run: Path) -> None:
        self._output = output
        self._run = run
        self._written = 0.0

    def write(self, document: Mapping[str, object], *, last: bool = False) -> None:
        """Write a moment; the last one always. Raises HarnessError or OSError where it cannot be written any more."""
        if not last and time.monotonic() - self._written < 1.0:
            return
        self._written = time.monotonic()
        whole = {"time": timestamp(), "run": str(self._run.resolve()), **document}
        self._output.write(json.dumps(whole).encode() + b"\n")
