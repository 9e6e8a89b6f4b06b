"""Which failures of a run stand on one card, and that nothing is lost where they are put together."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclnn_cts.core.case import Origin
from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.finding import Confirmation, Finding
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.trial import EarlierCall
from aclnn_cts.core.verdict import Record, Result
from aclnn_cts.findings.findings import FindingIndex, merge_findings
from aclnn_cts.reports.exporters import csv_bytes, finding_text, test_units
from aclnn_cts.reports.html import render_html
from aclnn_cts.reports.model.acceptance import Acceptance
from aclnn_cts.reports.model.build import acceptance
from aclnn_cts.reports.model.clause_verdicts import ClauseVerdict
from aclnn_cts.reports.model.runs import trial_rows
from tests.reports.synthetic import record, renamed, softmax_case, synthetic_run
from tests.support.build_records import group_records

NULLPTR = 161001
EQUAL, LIFE = "determinism", "life-cycle/cold-warm"
MANY = "life-cycle/repeated-failure"


def failed(
    seed: int,
    check: str = "values",
    kind: str = Fault.VALUE,
    *,
    output: str = "out",
    constraint: str = "",
    waiver: str = "",
    dtype: str = "FLOAT",
    mode: str = "",
) -> Record:
    origin = Origin(kind="invalid", constraint=constraint) if constraint else Origin(kind="valid")
    made = record(
        softmax_case(seed, dtype=dtype, origin=origin),
        check=check,
        result=Result.FAILED,
        kind=kind,
        output=output,
        constraint=constraint,
        waiver=waiver,
        error_ratio=0.5 if kind == Fault.GUARD else 2.0,
    )
    return renamed(made, fingerprint=renamed(made.fingerprint, mode=mode))


def report_of(path: Path, records: Sequence[Record]) -> Acceptance:
    return acceptance([synthetic_run(path / "run", records)])


ONE_FAULT = [
    failed(1),
    failed(2, kind=Fault.SPECIAL),
    failed(3, "boundary", Fault.MODEL),
    failed(4, "example"),
    failed(5, "memory"),
    failed(6, "precision"),
    failed(7, EQUAL, Fault.NONDETERMINISTIC),
    failed(8, "layout", Fault.SPECIAL),
    failed(9, LIFE),
    failed(10, LIFE),
]


def test_what_one_fault_breaks_is_one_card_that_lists_all_of_it(tmp_path: Path) -> None:
    report = report_of(tmp_path, [*ONE_FAULT, record(softmax_case(11))])
    [card] = report.findings
    assert (card.id, card.check, card.kind, card.output, card.dtype) == ("F1", "values", Fault.VALUE, "out", "FLOAT")
    assert (card.number, card.of, card.waived) == (10, 11, 0)
    assert card.kinds == {Fault.VALUE: 6, Fault.SPECIAL: 2, Fault.MODEL: 1, Fault.NONDETERMINISTIC: 1}
    assert card.by_check(joined=False) == dict.fromkeys(("values", "boundary", "example", "memory", "precision"), 1) | {
        "values": 2
    }
    assert card.by_check(joined=True) == {LIFE: 2, EQUAL: 1, "layout": 1}
    assert sum(item.number for item in card.members) == 10
    for run, file in card.files:
        assert (tmp_path / run / "failures" / file).is_file()
    # The case is one that is the finding by itself, and of its gravest kind.
    shown = card.record
    assert (shown.trial.check in LIFE, shown.verdict.kind, card.chosen_of) == (False, Fault.VALUE, 4)
    rows = {row.check: row.findings for row in report.checks}
    assert {name: rows[name] for name in {item.trial.check for item in ONE_FAULT}} == dict.fromkeys(
        {item.trial.check for item in ONE_FAULT}, ("F1",)
    )
    contradicted = [row for row in report.clauses if row.verdict == ClauseVerdict.CONTRADICTED]
    assert {(row.operator, row.clause.at) for row in contradicted} == set(card.clauses)
    assert all(row.findings == {"F1": row.said.failed} for row in contradicted)


def test_every_form_names_the_card_of_a_failure(tmp_path: Path) -> None:
    report = report_of(tmp_path, [*ONE_FAULT, failed(20, kind=Fault.GUARD, dtype="BF16"), record(softmax_case(11))])
    text = csv_bytes(report, lambda: trial_rows([tmp_path / "run"], findings=report.findings), "en")
    rows = list(csv.DictReader(io.StringIO(text.decode("utf-8-sig"))))
    assert Counter(row["finding"] for row in rows) == {"F1": 1, "F2": 10, "": 1}
    assert {row["dtype"] for row in rows if row["finding"] == "F1"} == {"BF16"}
    units = {unit.name: [card.id for card in unit.unwaived] for unit in test_units(report)}
    assert (units[EQUAL], units["values"]) == (["F2"], ["F1", "F2"])
    told = finding_text(report.findings[1])
    assert "met in values (2), " in told
    assert f"looks the same in {LIFE} (2), {EQUAL} (1), layout (1); their calls were not made again one by one" in told
    page = render_html(report, sections=("findings",))
    first = page[page.index('id="F2"') :]
    assert "It looks the same in" in first
    assert "their calls were not made again one by one." in first
    assert "All 10 failures of this finding" in first
    assert "The smallest of the 4 gravest failures (of 10)" in first
    assert "fails alike" in first


@pytest.mark.parametrize(
    "other",
    [
        failed(2, output="other"),
        failed(2, kind=Fault.GUARD),
        failed(2, LIFE, Fault.GUARD),
        failed(2, EQUAL, Fault.NONDETERMINISTIC, waiver="w"),
        failed(2, waiver="w"),
    ],
)
def test_what_looks_otherwise_stands_apart(other: Record) -> None:
    first, second = group_records([failed(1), other])
    assert (first.failures, second.failures) == (1, 1)


def test_one_waiver_s_failures_stand_apart_from_another_s() -> None:
    found = group_records(
        [failed(1, waiver="v"), failed(2, waiver="w"), failed(3, EQUAL, Fault.NONDETERMINISTIC, waiver="w")]
    )
    assert {item.waiver: item.failures for item in found} == {"v": 1, "w": 2}
    assert len({item.file for item in found}) == 2


def test_dtypes_modes_equal_calls_and_life_cycles_of_one_fault_are_one_finding() -> None:
    others = [
        failed(2, dtype="BF16"),
        failed(3, mode="KEEP_DTYPE"),
        failed(4, LIFE),
        failed(5, EQUAL, Fault.NONDETERMINISTIC, mode="KEEP_DTYPE"),
    ]
    [found] = group_records([failed(1), *others])
    assert (found.failures, found.kind) == (5, Fault.VALUE)
    assert found.record in (failed(1), *others[:2]), "one call shows it best"


def test_findings_of_several_runs_are_put_together(tmp_path: Path) -> None:
    plain = synthetic_run(tmp_path / "a", [failed(1)])
    other = synthetic_run(tmp_path / "b", [failed(2, EQUAL, Fault.NONDETERMINISTIC)])
    [card] = acceptance([plain, other]).findings
    assert (card.number, card.runs, card.record.trial.check) == (2, ("a", "b"), "values")


def test_a_broken_call_joins_what_its_twin_does_and_no_status_does() -> None:
    guard = failed(1, kind=Fault.GUARD)
    twin = failed(2, "status", Fault.GUARD, constraint="gradOutput.null")
    status = failed(3, "status", Fault.STATUS, output="", constraint="gradOutput.null")
    both, alone = group_records([guard, twin, status])
    assert sorted(item.check for item in both.fingerprints) == ["status", "values"]
    assert (alone.key.fault, alone.key.clause) == (Fault.STATUS, "gradOutput.null")


def test_many_failing_calls_join_one_that_fails_so() -> None:
    once = failed(1, "status", Fault.STATUS, output="", constraint="gradOutput.null")
    many = failed(2, MANY, Fault.STATUS, output="", constraint="gradOutput.null")
    [both] = group_records([many, once])
    assert sorted(item.check for item in both.fingerprints) == [MANY, "status"]


def test_what_shows_only_after_other_calls_is_one_finding_in_all_outputs() -> None:
    calls = (EarlierCall(softmax_case(9)),)
    left = [renamed(failed(number, output=output), after=calls) for number, output in enumerate(("a", "b", "c"))]
    [found] = group_records(left)
    assert found.failures == 3
    assert found.trial is not None
    assert found.trial.after == calls


def kept(output: str, *, waiver: str = "", confirmed: str = Confirmation.ORDER) -> Finding:
    """A finding of a campaign."""
    fingerprint = Fingerprint(operator="aclnnSoftmaxBackward", check="values", fault=Fault.VALUE, output=output)
    return Finding(key=fingerprint.key, counts=((fingerprint, 3),), confirmed=confirmed, waiver=waiver)


def test_findings_of_a_campaign_are_shown_by_the_one_whose_calls_are_known() -> None:
    one, two, waived = kept("a"), kept("b"), kept("c", waiver="known")
    assert [(item.waiver, item.failures) for item in merge_findings([one, two, waived])] == [("", 6), ("known", 3)]
    two.trial = renamed(failed(1), after=(EarlierCall(softmax_case(9)),)).reproducing_trial
    assert merge_findings([one, two])[0].trial == two.trial
    flaky, always = kept("out", confirmed=Confirmation.FLAKY), kept("out", confirmed=Confirmation.ALWAYS)
    assert [(item.confirmed, item.failures) for item in merge_findings([flaky, always])] == [(Confirmation.ALWAYS, 6)]


def test_a_run_s_findings_that_lack_a_failure_are_refused() -> None:
    with pytest.raises(HarnessError, match="lack one of its failures"):
        FindingIndex(()).number_of(failed(1))


_SORTS = st.builds(
    failed,
    st.integers(0, 3),
    st.sampled_from(["values", "example", "boundary", "status", EQUAL, LIFE, MANY]),
    st.sampled_from(
        [Fault.VALUE, Fault.MODEL, Fault.NONDETERMINISTIC, Fault.GUARD, Fault.STATUS, Fault.CRASH, Fault.REJECTED]
    ),
    output=st.sampled_from(["", "out"]),
    constraint=st.sampled_from(["", "gradOutput.null"]),
    waiver=st.sampled_from(["", "v"]),
    dtype=st.sampled_from(["FLOAT", "BF16"]),
)


@given(st.lists(_SORTS, max_size=12), st.randoms(use_true_random=False))
def test_every_failure_stands_on_one_card_in_whatever_order_they_come(records: list[Record], random: Random) -> None:
    found = group_records(records)
    index = FindingIndex(found)
    numbers = Counter(map(index.number_of, records))
    assert [item.failures for item in found] == [numbers[place] for place in range(len(found))]
    for place, item in enumerate(found):
        assert item.record in records
        assert index.number_of(item.record) == place
        assert item.record.waiver == item.waiver
    random.shuffle(records)
    assert group_records(records) == found
