"""The number of a report, which its evidence makes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from aclnn_cts.reports.model.acceptance import Acceptance, EvidenceFile


def evidence_digest(files: Iterable[EvidenceFile]) -> str:
    """One SHA-256 over the files: of a line for each, sorted, as `sha256sum` prints them."""
    lines = sorted(f"{file.sha256}  {file.run}/{file.path}\n" for file in files if file.sha256)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def report_number(report: Acceptance) -> str:
    """A number that the evidence alone makes: `CTS-20261123-1A2B3C4D`, by the day that the runs began."""
    day = max(run.manifest.started[:10] for run in report.runs).replace("-", "")
    return f"CTS-{day}-{evidence_digest(report.evidence)[:8].upper()}"
