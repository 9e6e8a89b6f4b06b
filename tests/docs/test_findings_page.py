from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from aclnn_cts.findings.waivers.file import read_waivers, shipped_waivers

ROOT = Path(__file__).parents[2]
FINDINGS = [ROOT / "docs" / f"findings-{library}-cpu.md" for library in ("torch", "jax")]


def slug(heading: str) -> str:
    """The fragment by which a heading is linked to."""
    return "".join(c for c in heading.lower().replace(" ", "-") if c.isalnum() or c in "-_")


def test_every_waiver_links_to_the_finding_that_proves_it() -> None:
    waivers = read_waivers(shipped_waivers())
    assert {waiver.link.partition("#")[0] for waiver in waivers} == {f"docs/{page.name}" for page in FINDINGS}
    for waiver in waivers:
        file, _, fragment = waiver.link.partition("#")
        text = (ROOT / file).read_text(encoding="utf-8")
        headings = {slug(line.lstrip("# ")) for line in text.splitlines() if line.startswith("## ")}
        assert fragment in headings, waiver.id
        assert f"`{waiver.id}`" in text
        assert waiver.cases, f"{waiver.id} has no pinned case"


@pytest.mark.parametrize(("library", "most"), [("torch", 15), ("jax", 22)])
def test_the_findings_print_what_they_say(library: str, most: int) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed: pip install 'aclnn-cts[{library}]'")
    page = ROOT / "docs" / f"findings-{library}-cpu.md"
    text = page.read_text(encoding="utf-8")
    # A fence ends what an example prints, as an empty line does.
    test = doctest.DocTestParser().get_doctest(text.replace("```", ""), {}, page.name, str(page), 0)
    report: list[str] = []
    results = doctest.DocTestRunner(verbose=False).run(test, out=report.append)
    assert results.failed == 0, "".join(report)
    assert results.attempted > most
