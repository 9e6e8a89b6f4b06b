"""The section on determinism: what is declared and promised, what was tried, and whether the bits were the same."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from aclnn_cts.core.faults import Fault
from aclnn_cts.core.outcome import BufferState, Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.core.verdict import Record, Result, SkipReason
from aclnn_cts.reports.html import render_html
from aclnn_cts.reports.model.acceptance import Acceptance
from aclnn_cts.reports.model.acceptance_rows import DeterminismPart, RepeatRow
from aclnn_cts.reports.model.build import acceptance
from aclnn_cts.reports.model.rows import REPEATS
from aclnn_cts.store.manifest import adapter_facts
from aclnn_cts.trials.checks.registry import CHECKS
from tests.reports.conftest import FIVE
from tests.reports.synthetic import record, softmax_case, synthetic_run


def called(item: Record, *contents: str, status: int = 0) -> Record:
    """The record of a trial with a call for each of these contents of `out`."""
    outcomes = tuple(
        Outcome(phase_one=status, phase_two=0, buffers={"out": BufferState(sha256=text * 64)}) for text in contents
    )
    return msgspec.structs.replace(item, attempts=(outcomes,))


def report_of(path: Path, *records: Record, target: Target | None = None, **facts: str) -> Acceptance:
    changes = {"target": target} if target is not None else {}
    return acceptance([synthetic_run(path / "run", records, changes=changes, environment=adapter_facts(facts))])


def part_of(report: Acceptance) -> tuple[DeterminismPart, dict[str, RepeatRow]]:
    [part] = report.determinism
    return part, {row.check: row for row in part.rows}


def test_what_was_tried_is_counted_from_the_records(tmp_path: Path) -> None:
    records = [
        called(record(softmax_case(1), check="determinism"), "a", "a"),
        called(record(softmax_case(2), check="determinism"), "a", "b"),
        called(
            record(
                softmax_case(3),
                check="determinism",
                result=Result.FAILED,
                kind=Fault.NONDETERMINISTIC,
                output="out",
                error_ratio=9.0,
            ),
            "a",
            "b",
        ),
        called(record(softmax_case(4), check="determinism"), "a", "a", status=161002),
        called(record(softmax_case(5), check="life-cycle/cold-warm"), "c", "c"),
        record(softmax_case(6), check="life-cycle/two-streams", result=Result.SKIPPED, kind=SkipReason.INEXPRESSIBLE),
    ]
    report = report_of(tmp_path, *records)
    part, rows = part_of(report)
    assert tuple(rows) == REPEATS
    assert set(REPEATS) <= set(CHECKS)
    repeat = rows["determinism"]
    assert (repeat.ends.cases, repeat.ends.passed, repeat.ends.failed) == (4, 3, 1)
    assert (repeat.compared, repeat.alike) == (3, 1)
    assert repeat.findings == ("F1",)
    assert (rows["life-cycle/cold-warm"].compared, rows["life-cycle/cold-warm"].alike) == (1, 1)
    assert rows["life-cycle/two-streams"].ends.reasons == {SkipReason.INEXPRESSIBLE: 1}
    assert rows["life-cycle/repeatable"].ends.cases == 0
    # A source says of softmax that it is deterministic by default.
    assert [when for when, *_ in part.promised] == ["always"]
    assert part.held == 1
    section = render_html(report, sections=("determinism",))
    text = re.sub(r"<[^>]+>", " ", section)
    assert "1 / 3" in text
    assert "no such trial was planned" in text
    english = re.sub(r'<span class="l" lang="zh">[^<]*</span>|<[^>]+>', "", section)
    assert "cannot be expressed for this implementation: 1" in english
    assert 'href="#F1"' in section
    assert section.count('scope="rowgroup"') == 1


def test_what_the_implementation_declares_is_told_with_how_it_is_known(tmp_path: Path) -> None:
    said = report_of(tmp_path / "a", record(softmax_case()), target=Target(product="atlas-a2", deterministic=True),
                     deterministic="true")  # fmt: skip
    section = render_html(said, sections=("determinism",))
    assert "deterministic = true" in section
    assert "declared, not checked" in section
    silent = report_of(tmp_path / "b", record(softmax_case()))
    section = render_html(silent, sections=("determinism",))
    assert "deterministic =" not in section
    assert section.count("unknown") >= 3


def test_a_real_run_names_how_each_operator_is_repeatable(five: Acceptance, faulty: Acceptance) -> None:
    report = five
    assert len(report.determinism) == len(FIVE)
    assert {when for part in report.determinism for when, *_ in part.promised} == {"always", "deterministic", "never"}
    _, rows = part_of(faulty)
    ends = {row.check: row.ends for row in faulty.checks}
    for name, row in rows.items():
        assert row.ends == ends.get(name, row.ends)
    assert rows["determinism"].compared == rows["determinism"].alike > 0
