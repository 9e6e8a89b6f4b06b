"""The table of operators by check, which is made before it is shown."""

from __future__ import annotations

from aclnn_cts.reports.model.acceptance import Acceptance
from aclnn_cts.reports.model.acceptance_rows import CheckRow


def check_matrix(report: Acceptance) -> list[tuple[str, list[CheckRow | None]]]:
    """By check, its row in each operator; None where the operator has none."""
    rows = {(row.operator, row.check): row for row in report.checks}
    return [
        (check, [rows.get((part.operator, check)) for part in report.operators])
        for check in dict.fromkeys(row.check for row in report.checks)
    ]
