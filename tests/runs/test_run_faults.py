"""What a run says of an implementation that is wrong, of one that only looks wrong, and of a harness that fails."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.case_json import case_to_json
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import TWIN_FAILED, Verdict
from aclnn_cts.execution.judging import Judge
from aclnn_cts.reports.html import render_html
from aclnn_cts.reports.model.build import acceptance
from aclnn_cts.reports.sentences import verdict_text
from aclnn_cts.reports.text import phrase
from tests.runs.test_run import softmax, written
from tests.support.ran import Ran

Run = Callable[..., Ran]
FIXTURES = Path(__file__).parents[1] / "fixtures" / "specs"


def wrong(fault: str) -> str:
    return f"wrong_adapters:Wrong,fault={fault}"


def strided(*, dtype: str = "FLOAT") -> Case:
    return softmax(2, 3, dtype=dtype, out=Tensor((2, 3), dtype, strides=(5, 1), storage_shape=(2, 5)))


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("none", "passed"),
        ("value", "failed value"),
        ("unwritten", "failed unwritten"),
        ("first-fill", "failed special-value"),
        ("input", "failed input-changed"),
        ("guard", "failed stray-write"),
        ("guard-denied", "failed stray-write"),
        ("gap", "failed stray-write"),
        ("raise", "failed rejected"),
    ],
)
def test_faults_are_found_and_nothing_else_is(ran: Run, tmp_path: Path, fault: str, expected: str) -> None:
    """By a trial of values, whose record measures values beside a stray write, and by one of memory."""
    cases = written(tmp_path / "cases.jsonl", Trial("values", strided()), Trial("memory", strided()))
    run = ran("run", "--adapter", wrong(fault), "--cases", cases)
    assert run.kinds == [expected, expected], [record.verdict for record in run.records]
    failed = expected.startswith("failed")
    assert run.code == failed
    found = {record.key for record in run.records if failed}
    assert len(run.directory.failures()) == len(found) <= 2 * failed
    if fault in ("input", "guard", "gap"):
        deviations = run.records[0].verdict.deviations
        assert [(item.output, item.elements, item.beyond) for item in deviations] == [("out", 6, 0)]


def test_a_gap_is_told_apart_from_a_guard(ran: Run, tmp_path: Path) -> None:
    cases = written(tmp_path / "cases.json", strided())
    gap = ran("run", "--adapter", wrong("gap"), "--cases", cases).records[0]
    assert gap.attempts[0][0].buffers["out"].gap == (10 - 6) * 4
    assert "inside its storage but outside its view" in gap.verdict.message
    stray = gap.attempts[0][0].buffers["out"].stray
    # The third element of a row of five is the last of its view.
    assert stray is not None
    assert (stray.offset, stray.after) == (12, "01" * 8)
    assert f"first at byte 12 of its storage: {stray.before} became {'01' * 8}" in gap.verdict.message
    guard = ran("run", "--adapter", wrong("guard"), "--cases", cases).records[0]
    assert guard.attempts[0][0].buffers["out"].guard_after == 1
    assert "1 bytes behind its memory" in guard.verdict.message
    stray = guard.attempts[0][0].buffers["out"].stray
    assert stray is not None
    assert stray.offset >= 10 * 4
    assert int(stray.before, 16) ^ int(stray.after, 16) == 1


def test_wrong_statuses(ran: Run, tmp_path: Path) -> None:
    twin = {"twin": json.loads(Path(written(tmp_path / "twin.json", softmax(2, 3))).read_text())}
    cases = written(
        tmp_path / "cases.jsonl",
        softmax(2, 3),
        softmax(2, 3, out=None),
        softmax(2, 3, dim=5),
        Trial("status", softmax(2, 3, output=None), twin),
    )
    run = ran("run", "--adapter", wrong("status"), "--cases", cases)
    assert run.kinds == ["passed", "failed status", "passed", "failed status"]
    message = run.records[1].verdict.message
    assert "ACLNN_ERR_PARAM_INVALID (161002)" in message
    assert "ACLNN_ERR_PARAM_NULLPTR" in message
    assert "out.null" in message


def test_broken_call_whose_valid_twin_fails_is_not_judged(ran: Run, tmp_path: Path) -> None:
    """Each fails with its twin, whatever the rule that it breaks; the twins' failures are one finding."""
    broken = [
        Trial("status", softmax(2, 3, output=None, dtype=dtype), {"twin": case_to_json(softmax(2, 3, dtype=dtype))})
        for dtype in ("FLOAT16", "BF16")
    ]
    fine = Trial("status", softmax(2, 3, output=None), {"twin": case_to_json(softmax(2, 3))})
    cases = written(tmp_path / "cases.jsonl", softmax(2, 3), fine, *broken)
    run = ran("run", "--adapter", "wrong_adapters:Refusing,when=dtype(gradOutput) != FLOAT", "--cases", cases)
    assert run.code == 1
    assert run.kinds == ["passed", "passed", "failed rejected", "failed rejected"]
    assert [TWIN_FAILED in record.verdict.facts for record in run.records] == [False, False, True, True]
    total = run.directory.summary().total
    assert (total.cases, total.judged, total.failed, total.twin_failed) == (4, 2, 2, 2)
    assert run.result["judged"] == 50
    assert len(run.directory.failures()) == 1
    assert total.unjudged == {TWIN_FAILED: 2}
    report = acceptance([run.path])
    assert "2 of 4 trials" in verdict_text(report, "en")
    assert phrase(f"skip.{TWIN_FAILED}", "en") in render_html(report)


def test_a_crash_costs_one_case(ran: Run, tmp_path: Path) -> None:
    cases = written(tmp_path / "cases.jsonl", softmax(3, 3), softmax(2, 3), softmax(4, 3), softmax(2, 4))
    run = ran("run", "--adapter", wrong("crash"), "--cases", cases)
    assert run.kinds == ["passed", "failed crash", "passed", "failed crash"]
    assert "SIGSEGV" in run.records[1].attempts[0][0].message
    assert run.code == 1
    assert run.result["errors"] == 0


@pytest.mark.slow
def test_a_failure_is_replayed_from_its_file_and_from_its_run(ran: Run, tmp_path: Path) -> None:
    cases = written(tmp_path / "cases.jsonl", softmax(3, 3), softmax(2, 3), softmax(2, 3, out=None))
    run = ran("run", "--adapter", wrong("value"), "--cases", cases)
    assert (run.code, run.result["failed"]) == (1, 2)
    (file,) = run.directory.failures()
    assert str(file) in run.out.replace("\n", "").replace(" ", "")
    for source in (file, run.path):
        still = ran("replay", str(source), "--adapter", wrong("value"))
        assert still.code == 1
        assert still.kinds == ["failed value"]
        verdicts = {record.trial_id: record.verdict for record in run.records}
        assert still.records[0].verdict == verdicts[still.records[0].trial_id]
        mended = ran("replay", str(source), "--adapter", "reference")
        assert (mended.code, mended.kinds) == (0, ["passed"])
    told = ran("replay", str(file), "--adapter", wrong("value"), "-v")
    for word in ("got", "expected", "gradOutput", "value"):
        assert word in told.out
    nothing = ran("replay", str(mended.path), "--adapter", "reference")
    assert nothing.code == 2
    assert "no findings to replay" in nothing.err


@pytest.fixture
def sixth(tmp_path: Path) -> Path:
    """The sixth operator's folder, to be changed."""
    folder = tmp_path / "specs"
    shutil.copytree(FIXTURES, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.mark.slow
def test_a_mistake_of_the_harness_is_an_error_and_no_fault(
    ran: Run, sixth: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_given: object, **_options: object) -> Verdict:
        raise RuntimeError("the judge is broken")

    monkeypatch.setattr(Judge, "values", broken)
    run = ran("run", "aclnnLogisticBackward", "--specs", str(sixth), "--adapter", "wrong_adapters:Faithful")
    errors = [record for record in run.records if record.verdict.result == "error"]
    assert len(errors) == run.result["errors"] > 300
    assert {record.verdict.message for record in errors} == {"the harness failed: RuntimeError: the judge is broken"}
    assert not {record.trial_id for record in errors} & {
        record.trial_id for record in run.records if record.verdict.result == "failed"
    }
    cases = written(sixth.parent / "case.json", *[errors[0].trial])
    run = ran("run", "--specs", str(sixth), "--adapter", "wrong_adapters:Faithful", "--cases", cases)
    assert (run.code, run.kinds, run.result["verdict"]) == (3, ["error"], "inconclusive")
    assert run.directory.failures() == ()


def test_a_mistake_in_a_users_oracle_ends_the_run_with_its_line(ran: Run, sixth: Path) -> None:
    oracle = sixth / "logistic_backward.py"
    oracle.write_text("def backward(f, output):\n    raise RuntimeError('the oracle is broken')\n")
    run = ran("run", "aclnnLogisticBackward", "--specs", str(sixth), "--adapter", "wrong_adapters:Faithful")
    assert run.code == 2
    assert "logistic_backward.py:2: backward: RuntimeError: the oracle is broken" in " ".join(run.err.split())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import nothing_like_it\n", "the oracle cannot be imported (ModuleNotFoundError"),
        ("expected = 3\n", "the oracle states no formula"),
        (None, "no oracle for this operator"),
    ],
)
def test_an_oracle_that_cannot_be_used_is_told_before_anything_is_run(
    ran: Run, sixth: Path, text: str | None, message: str
) -> None:
    oracle = sixth / "logistic_backward.py"
    oracle.unlink() if text is None else oracle.write_text(text)
    run = ran("run", "aclnnLogisticBackward", "--specs", str(sixth), "--adapter", "wrong_adapters:Faithful")
    assert run.code == 2
    assert message in run.err
    assert not run.path.exists()


def test_an_input_without_contents_is_for_the_first_phase(ran: Run, tmp_path: Path) -> None:
    cases = written(tmp_path / "cases.json", softmax(2, 3, gradOutput=Tensor((2, 3), "FLOAT")))
    run = ran("run", "--adapter", "reference", "--cases", cases)
    assert (run.code, run.kinds) == (0, ["passed"])
    assert run.records[0].attempts[0][0].phase_two is None
    run = ran("run", "--adapter", "own_adapter:Softmax", "--cases", cases)
    assert (run.code, run.kinds) == (3, ["skipped inexpressible"])
    assert "the first phase alone" in run.records[0].verdict.message
