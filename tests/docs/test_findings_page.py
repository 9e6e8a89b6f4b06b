from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from aclnn_cts.findings.waivers.file import read_waivers, shipped_waivers
from tests.support.targets import first_fast

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FINDINGS = [*sorted(DOCS.glob("findings-*-cpu.md")), *sorted(DOCS.glob("findings-*-cpu/*.md"))]


def slug(heading: str) -> str:
    """The fragment by which a heading is linked to."""
    return "".join(c for c in heading.lower().replace(" ", "-") if c.isalnum() or c in "-_")


def test_every_waiver_links_to_the_finding_that_proves_it() -> None:
    waivers = read_waivers(shipped_waivers())
    linked = {waiver.link.partition("#")[0] for waiver in waivers}
    assert {*linked, "docs/findings-torch-cpu.md"} == {str(page.relative_to(ROOT)) for page in FINDINGS}
    for waiver in waivers:
        file, _, fragment = waiver.link.partition("#")
        text = (ROOT / file).read_text(encoding="utf-8")
        headings = {slug(line.lstrip("# ")) for line in text.splitlines() if line.startswith("## ")}
        assert fragment in headings, waiver.id
        assert f"`{waiver.id}`" in text
        assert waiver.cases, f"{waiver.id} has no pinned case"


def library_of(page: Path) -> str:
    return page.relative_to(DOCS).parts[0].split("-")[1]


def processes(page: Path) -> int:
    """How many examples start processes, since what they show ends one. Each of these imports the library."""
    return page.read_text(encoding="utf-8").count("sys.executable")


PAGES = first_fast(
    sorted(FINDINGS, key=processes),
    of=lambda page: library_of(page) if processes(page) else page,
    name=lambda page: str(page.relative_to(DOCS)),
)
"""Of the pages with processes, one of each library is fast."""


@pytest.mark.parametrize("page", PAGES)
def test_the_findings_print_what_they_say(page: Path) -> None:
    library = library_of(page)
    pytest.importorskip(library, reason=f"{library} is not installed: pip install 'aclnn-cts[{library}]'")
    text = page.read_text(encoding="utf-8")
    # A fence ends what an example prints, as an empty line does.
    test = doctest.DocTestParser().get_doctest(text.replace("```", ""), {}, page.name, str(page), 0)
    report: list[str] = []
    results = doctest.DocTestRunner(verbose=False).run(test, out=report.append)
    assert results.failed == 0, "".join(report)
    assert results.attempted > text.count("\n## ")
