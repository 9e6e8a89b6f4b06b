"""docs/laws.md names every law, and for those of single operators which have it."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.laws import pairs

PAGE = Path(__file__).parents[2] / "docs" / "laws.md"


def test_the_table_has_every_law_with_its_operators() -> None:
    rows = dict(re.findall(r"^\| `([a-z-]+)` \| ([^|]+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    found: dict[str, set[str]] = {}
    for law, operator in pairs():
        found.setdefault(law.removeprefix("law/"), set()).add(operator)
    assert set(rows) == set(found)
    named = {law: words for law, words in rows.items() if re.fullmatch(r"[A-Z]\w+(, [A-Z]\w+)*", words)}
    assert len(named) >= 6
    for law, words in named.items():
        assert {f"aclnn{name}" for name in words.split(", ")} == found[law]
