"""docs/packages.md and docs/architecture.md tell the packages as they are."""

from __future__ import annotations

import re

import pytest

from tools.packages import MAY_IMPORT, PACKAGE, ROOT, package_of, packages_page, sizes

LARGEST = 0.12
"""Of all statements, in one package."""


def test_the_table_of_packages_is_current() -> None:
    text = (ROOT / "docs" / "packages.md").read_text(encoding="utf-8")
    assert list(packages_page()) == text.splitlines(), "docs/packages.md is not current; call `make docs`"


def test_no_package_is_too_large() -> None:
    found = sizes()
    assert sum(found.values()) > 20_000
    assert max(found.values()) <= LARGEST * sum(found.values())


STEP = re.compile(r"^\| `([\w.]+)` \| [a-z]", re.MULTILINE)


@pytest.mark.parametrize("value", ["`dim` of a call", "The fingerprint of a failure"])
def test_a_value_passes_packages_in_the_order_of_their_imports(value: str) -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = text[text.index("## Two values on their way") : text.index("## Processes")]
    steps = STEP.findall(section[section.index(value) :].partition("\n\n")[2].partition("\n\n")[0])
    assert len(steps) >= 7
    for step in steps:
        assert (ROOT / PACKAGE / f"{step.replace('.', '/')}.py").is_file(), f"{step}: no such module"
    packages = [package_of(step) for step in steps]
    for place, package in enumerate(packages):
        assert package is not None
        later = {*packages[place + 1 :]} - {package}
        assert not later & reached(package), f"{package} imports a package that the value reaches after it"


def reached(package: str) -> set[str | None]:
    """All packages that a package may import, directly or not."""
    found: set[str | None] = set()
    waiting = [package]
    while waiting:
        for name in MAY_IMPORT[waiting.pop()]:
            other = package_of(name)
            if other is not None and other not in found:
                found.add(other)
                waiting.append(other)
    return found
