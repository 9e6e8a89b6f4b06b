"""docs/architecture.md tells the packages as they are."""

from __future__ import annotations

import re

from docs.packages import ROOT, packages_page, sizes

LARGEST = 0.12
"""Of all statements, in one package."""

FIGURES = re.compile(r"\| ([\d,]+) \| ([\d.]*)%? ?\|$", re.MULTILINE)


def test_the_table_of_packages_is_current() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    made = packages_page(text)
    assert FIGURES.sub("", made) == FIGURES.sub("", text), "docs/architecture.md is not current; call `make docs`"
    # A change of a few lines leaves the table as good as it was.
    for (then, _), (now, _) in zip(FIGURES.findall(text), FIGURES.findall(made), strict=True):
        old, new = (int(number.replace(",", "")) for number in (then, now))
        assert abs(new - old) <= max(25, old // 20), "call `make docs`"


def test_no_package_is_too_large() -> None:
    found = sizes()
    assert sum(found.values()) > 20_000
    assert max(found.values()) <= LARGEST * sum(found.values())
