"""A report in every format: to sign, to explore, for CI, for spreadsheets.

May import `reports.model`, `store.counts` and `core`; never judges. Start reading at `html`.
"""

from __future__ import annotations
