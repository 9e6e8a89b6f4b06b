"""`replay` on a directory of findings: an answer for each."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from aclnn_cts.core.faults import Fault
from aclnn_cts.core.finding import Confirmation, Finding
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.trial import EarlierCall, Trial
from aclnn_cts.core.verdict import ALONE_FACT, Record, Result, Verdict
from aclnn_cts.findings.findings import findings_in
from aclnn_cts.store.case_files import write_case_file
from aclnn_cts.store.output_file import OutputFile
from aclnn_cts.store.run_directory import RunDirectory
from aclnn_cts.store.run_writer import create_run
from aclnn_cts.store.summary import Summary
from aclnn_cts.triage.replay_status import (
    RUNS,
    ReplayStatus,
    recorded_findings,
    repeat_rounds,
    replay_findings,
)
from tests.support.build_records import make_manifest
from tests.support.ran import Ran
from tests.triage.test_shrink import softmax

Run = Callable[..., Ran]
FAULT = "rare_adapter:Rare,fault=tail"
VALUES = Fingerprint(operator="aclnnSoftmaxBackward", check="values", fault=Fault.VALUE, output="out", dtype="FLOAT16")


@pytest.mark.slow
def test_answers_of_a_run(ran: Run, tmp_path: Path) -> None:
    cases = tmp_path / "cases.json"
    write_case_file(OutputFile(cases), [softmax((11,))])
    first = ran("run", "softmax_backward", "--adapter", FAULT, "--cases", str(cases))
    assert first.code == 1
    [file] = first.directory.failures()
    assert list(recorded_findings(first.path)) == [file.name]
    still = ran("replay", str(first.path), "--adapter", FAULT)
    assert still.code == 1
    assert "same: " in still.out
    fixed = ran("replay", str(first.path / "failures"), "--adapter", "reference")
    assert fixed.code == 0
    assert "fixed: " in fixed.out
    other = ran("replay", str(first.path), "--adapter", "rare_adapter:Rare,fault=die")
    assert other.code == 1
    assert "different: " in other.out
    # Without the run that it came from, nobody knows how a finding failed.
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "one.json").write_text(file.read_text())
    alone = ran("replay", str(folder), "--adapter", FAULT)
    assert alone.code == 1
    assert "fails: " in alone.out
    trial = json.loads(file.read_text())
    for name in ("gradOutput", "output", "out"):
        trial["case"]["arguments"][name]["tensor"]["format"] = "NCL"
    empty = tmp_path / "empty"
    empty.mkdir()
    nothing = ran("replay", str(empty), "--adapter", FAULT)
    assert nothing.code == 2
    assert "holds no findings to replay" in nothing.err


def test_what_was_not_run_is_no_mending() -> None:
    trial = softmax((3,))
    [missing] = replay_findings([(Path("a.json"), trial)], {"a.json": Finding(key=VALUES.key)}, {})
    assert missing.answer == ReplayStatus.CANNOT
    assert (missing.runs, missing.message) == (0, "")


def test_a_finding_that_did_not_always_fail_is_not_fixed_since_it_did_not_fail_once() -> None:
    trial = softmax((3,))
    file = Path("a.json")
    passed, failed = judged(trial, Result.PASSED), judged(trial, Result.FAILED)
    for confirmed, alone, said in (
        (Confirmation.FLAKY, (1, 3), "it was flaky (1 of 3 times alone)"),
        (Confirmation.FLAKY, (0, 3), "it was flaky (0 of 3 times alone)"),
        (
            Confirmation.ORDER,
            (0, 3),
            "it was order-dependent, and which calls it needs is not known (0 of 3 times alone)",
        ),
        (Confirmation.DEVICE, (3, 3), "it failed on worker 1 alone: run it there"),
        (Confirmation.UNKNOWN, (0, 3), "it was flaky (0 of 3 times alone)"),
    ):
        before = Finding(key=VALUES.key, confirmed=confirmed, alone=alone, slot="worker 1")
        recorded = {file.name: before}
        again = repeat_rounds([(file, trial)], recorded)
        assert again == (trial,) * (RUNS - 1)
        [entry] = replay_findings([(file, trial)], recorded, {trial.id: [passed] * RUNS})
        assert entry.answer == ReplayStatus.UNSEEN
        assert entry.message == f"it did not fail in 20 runs; before {said}"
        [entry] = replay_findings([(file, trial)], recorded, {trial.id: [passed, failed, *[passed] * 18]})
        assert entry.answer == ReplayStatus.SAME
        assert entry.message.endswith(" (failed in 1 of 20 runs)")


def test_a_finding_that_always_failed_is_made_once() -> None:
    trial = softmax((3,))
    file = Path("a.json")
    after = msgspec.structs.replace(trial, after=(EarlierCall(trial.case),))
    for given, before in (
        (trial, Finding(key=VALUES.key)),
        (trial, Finding(key=VALUES.key, confirmed=Confirmation.ALWAYS, alone=(3, 3))),
        # The calls before it are known, and made.
        (after, Finding(key=VALUES.key, confirmed=Confirmation.ORDER, alone=(0, 3))),
    ):
        recorded = {file.name: before}
        assert repeat_rounds([(file, given)], recorded) == ()
        [entry] = replay_findings([(file, given)], recorded, {given.id: [judged(given, Result.PASSED)]})
        assert entry.answer == ReplayStatus.FIXED
    assert repeat_rounds([(file, trial)], {}) == ()


def test_wrong_values_of_all_kinds_are_the_same_failure() -> None:
    trial = softmax((3,))
    file = Path("a.json")
    for fault, said in ((Fault.SPECIAL, ReplayStatus.SAME), (Fault.GUARD, ReplayStatus.OTHER)):
        before = Finding(key=msgspec.structs.replace(VALUES, fault=fault).key)
        [entry] = replay_findings([(file, trial)], {file.name: before}, {trial.id: [judged(trial, Result.FAILED)]})
        assert entry.answer == said


@pytest.mark.slow
def test_what_came_now_and_then_is_asked_for_again_and_again(
    ran: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counter = tmp_path / "counter"
    monkeypatch.setenv("RARE_COUNTER", str(counter))
    sometimes = "rare_adapter:Rare,fault=sometimes"
    found = ran("fuzz", "softmax_backward", "--chunk-trials", "64", "--chunks", "4", "--adapter", sometimes)
    assert found.code == 1
    files = found.directory.failures()
    recorded = recorded_findings(found.path)
    unsteady = sum(item.confirmed == Confirmation.FLAKY for item in recorded.values())
    assert unsteady
    cases = len(files) + unsteady * (RUNS - 1)
    still = ran("replay", str(found.path), "--adapter", sometimes)
    assert still.code == 1
    assert still.result["cases"] == cases
    assert len(re.findall("^same: ", still.out, re.MULTILINE)) == len(files)
    # An implementation in which it does not come is not known to be mended.
    unseen = ran("replay", str(found.path), "--adapter", "reference")
    assert unseen.code == 0
    assert len(re.findall("^did not fail this time: ", unseen.out, re.MULTILINE)) == unsteady
    # A file in a run is asked as often as its finding needs; one that nobody knows, once.
    unsteady_file = next(file for file in files if recorded[file.name].confirmed == Confirmation.FLAKY)
    assert ran("replay", str(unsteady_file), "--adapter", "reference").result["cases"] == RUNS
    alone = tmp_path / "alone.json"
    alone.write_text(unsteady_file.read_text())
    assert ran("replay", str(alone), "--adapter", "reference").result["cases"] == 1


def test_a_failure_of_a_run_that_conformed_alone_is_not_fixed(ran: Run, tmp_path: Path) -> None:
    trial = softmax((11,))
    with create_run(tmp_path / "made", manifest=make_manifest(), specs={}, grouping=findings_in) as writer:
        record = judged(trial, Result.FAILED)
        verdict = msgspec.structs.replace(record.verdict, facts={ALONE_FACT: "conforms"})
        writer.append_part(Summary(), [msgspec.structs.replace(record, verdict=verdict)])
        writer.finish()
    [file] = RunDirectory(tmp_path / "made").failures()
    recorded = recorded_findings(tmp_path / "made")
    assert recorded[file.name].confirmed == Confirmation.ORDER
    again = ran("replay", str(tmp_path / "made"), "--adapter", "reference")
    assert again.code == 0
    assert "did not fail this time: " in again.out


@pytest.mark.slow
def test_json(ran: Run, tmp_path: Path) -> None:
    cases = tmp_path / "cases.json"
    write_case_file(OutputFile(cases), [softmax((11,))])
    first = ran("run", "softmax_backward", "--adapter", FAULT, "--cases", str(cases))
    [file] = first.directory.failures()
    still = ran("replay", str(first.path), "--adapter", FAULT, "--json", "-v")
    assert still.code == 1
    [line] = still.out.splitlines()
    entry = json.loads(line)
    assert entry["finding"] == file.stem
    assert entry["file"] == str(file)
    assert entry["answer"] == "same"
    assert (entry["runs"], entry["failures"]) == (1, 1)
    assert entry["before"] == entry["now"]
    # What is for a person, the RESULT line too, goes to standard error.
    assert still.err.splitlines()[-1].startswith("RESULT verdict=fails judged=100% cases=1 ")
    fixed = ran("replay", str(first.path), "--adapter", "reference", "--json")
    entry = json.loads(fixed.out)
    assert (entry["answer"], entry["now"], entry["because"]) == ("fixed", None, "")
    one = ran("replay", str(file), "--adapter", FAULT, "--json")
    entry = json.loads(one.out)
    assert (entry["answer"], entry["now"]) == ("same", entry["before"])


def judged(trial: Trial, result: str) -> Record:
    kind = VALUES.fault if result == Result.FAILED else ""
    return Record(
        trial_id=trial.id,
        trial=trial,
        attempts=((Outcome(phase_one=0, phase_two=0),),),
        verdict=Verdict(result=result, kind=kind, message="wrong"),
        fingerprint=VALUES,
    )
