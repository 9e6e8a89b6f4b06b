"""An acceptance report in every form: HTML, Markdown, workbook, JUnit, CTRF, CSV.

May import `reports.model`, `triage.comparison` and `core`; never judges. Start reading at `html`.
"""

from __future__ import annotations
