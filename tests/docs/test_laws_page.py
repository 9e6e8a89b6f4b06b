"""docs/laws.md names every law, and for each the operators that have it."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.laws import pairs, specs

PAGE = Path(__file__).parents[2] / "docs" / "laws.md"


def test_the_table_has_every_law_with_its_operators() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| ([^|]+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    everyone = {spec.operator for spec in specs().values()}
    told = {
        (f"law/{law}", operator)
        for law, names in rows
        for operator in (everyone if names == "all" else {f"aclnn{name}" for name in names.split(", ")})
    }
    assert told == set(pairs())
