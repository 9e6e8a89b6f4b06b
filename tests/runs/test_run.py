"""Runs end to end on the reference: what they print, keep and end with, and what they refuse before they begin."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from aclnn_cts.core.case import CallOptions, Case, Data, Origin, Tensor
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.store.case_files import write_case_file
from aclnn_cts.store.counts import PINNED, Counts
from aclnn_cts.store.output_file import OutputFile
from aclnn_cts.store.run_directory import RunDirectory
from aclnn_cts.store.summary import summary_to_json
from tests.support.ran import Ran

Run = Callable[..., Ran]
ROOT = Path(__file__).parents[2]
SOFTMAX = "aclnnSoftmaxBackward"


def softmax(*shape: int, dim: int = 0, dtype: str = "FLOAT", kind: str = "mine", **changes: object) -> Case:
    inputs = Data(recipe="integers", low=-4, high=4, seed=1)
    arguments = {
        "gradOutput": Tensor(shape, dtype, data=inputs),
        "output": Tensor(shape, dtype, data=inputs),
        "dim": dim,
        "out": Tensor(shape, dtype),
        **changes,
    }
    return Case(SOFTMAX, arguments, origin=Origin(kind=kind))  # type: ignore[arg-type]  # a kind of case, as text


def stray_index() -> Case:
    """A call that reads beyond its table, which no real device must be given."""
    return Case(
        "aclnnEmbeddingDenseBackward",
        {
            "grad": Tensor((2, 3), "FLOAT", data=Data(recipe="normal")),
            "indices": Tensor((2,), "INT64", data=Data(values=(1, 4))),
            "numWeights": 4,
            "paddingIdx": 0,
            "scaleGradByFreq": False,
            "out": Tensor((4, 3), "FLOAT"),
        },
    )


def written(path: Path, *entries: Trial | Case) -> str:
    write_case_file(OutputFile(path, force=True), entries)
    return str(path)


WAIVERS = """\
subject: s
waivers:
  - id: mine
    scope: {adapter: "wrong_adapters:Wrong,fault=value", operator: aclnnSoftmaxBackward, kind: value}
    reason: known
    owner: nobody
    expiry: 2999-12-31
  - id: elsewhere
    scope: {adapter: "wrong_adapters:Wrong,fault=value", operator: aclnnSoftmaxBackward, kind: crash}
    reason: known
    owner: nobody
    expiry: 2999-12-31
"""


@pytest.mark.parametrize("command", ["replay", "run"])
def test_chosen_cases_count_where_waivers_pin_them(ran: Run, tmp_path: Path, command: str) -> None:
    (tmp_path / "own.yaml").write_text(WAIVERS, encoding="utf-8")
    case = written(tmp_path / "case.jsonl", softmax(2, 3, kind=PINNED))
    words = [case] if command == "replay" else ["--cases", case]
    run = ran(command, *words, "--adapter", "wrong_adapters:Wrong,fault=value", "--waivers", "own.yaml")
    assert (run.result["verdict"], run.result["cases"], run.result["waived"]) == ("conforms-with-waivers", 1, 1)
    assert not run.directory.summary().notices  # waivers that chosen cases do not need may be needed by others


def test_a_run_of_one_operator(ran: Run) -> None:
    run = ran("run", "softmax_backward", "--adapter", "reference")
    assert run.code == 0, run.err
    result = run.result
    assert result["verdict"] == "conforms"
    assert result["run"] == str(run.path)
    assert result["failed"] == result["waived"] == result["errors"] == 0
    assert result["cases"] == result["passed"] + result["skipped"] + result["out_of_scope"] > 400
    summary = json.loads((run.path / "summary.json").read_text())
    assert {key: summary[key] for key in ("cases", "passed", "failed", "waived", "errors", "skipped")} == {
        key: result[key] for key in ("cases", "passed", "failed", "waived", "errors", "skipped")
    }
    assert summary["interrupted"] is False
    assert summary["discrepancies"] == summary["problems"] == summary["violations"] == []
    assert list(summary["operators"]) == [SOFTMAX]
    assert sum(summary["skipped_by_reason"].values()) == summary["skipped"]
    for counts in summary["operators"][SOFTMAX]["constraints"].values():
        assert counts["held"] > 0
        assert counts["broken"] > 0


def test_the_summary_is_that_of_the_records(ran: Run) -> None:
    run = ran("run", "upsample_nearest_exact1d_backward", "--adapter", "reference", "--max-cases", "10")
    assert run.code == 0, run.err
    counted: dict[str, Counts] = {}
    for record in run.records:
        counts = counted.setdefault(record.trial.case.origin.kind, Counts())
        counts.cases += 1
        counts.add(record.verdict, waived=False)
    document = summary_to_json(run.directory.summary())
    kinds = document["operators"]["aclnnUpsampleNearestExact1dBackward"]["kinds"]
    for kind, counts in counted.items():
        found = kinds[kind]
        assert (found["cases"], found["passed"], found["failed"], found["skipped"]) == (
            counts.cases, counts.passed, counts.failed, counts.skipped,
        )  # fmt: skip
        assert (
            found["cases"]
            == found["passed"] + found["failed"] + found["errors"] + found["skipped"] + found["out_of_scope"]
        )


def outline(run: Ran) -> list[tuple[str, str, str]]:
    return [(item.trial_id, item.verdict.result, item.verdict.kind) for item in run.records]


@pytest.mark.slow
def test_any_number_of_workers_makes_the_same_run(ran: Run) -> None:
    call = ("run", "upsample_nearest_exact1d_backward", "--adapter", "reference", "--seed", "5")
    one, two = ran(*call), ran(*call, "--workers", "2")
    assert (one.code, two.code) == (0, 0)
    assert outline(one) == outline(two)
    assert {**one.result, "run": ""} == {**two.result, "run": ""}


def test_phase_one_alone(ran: Run) -> None:
    run = ran("run", "softmax_backward", "--adapter", "reference", "--phases", "one")
    assert run.code == 0, run.err
    assert run.result["passed"] > 300
    for record in run.records:
        for attempt in record.attempts:
            assert all(outcome.phase_two is None and not outcome.buffers for outcome in attempt)


def test_case_files_instead_of_a_plan(ran: Run, tmp_path: Path) -> None:
    cases = written(
        tmp_path / "cases.jsonl",
        softmax(2, 3),
        softmax(2, 3, dim=2),
        softmax(2, 3, out=None),
        softmax(2, 3, output=Tensor((3, 2), "FLOAT", data=Data(recipe="zeros"))),
        softmax(0, 3),
        Trial("memory", softmax(3, 3)),
        softmax(4, 3, kind=""),
    )
    run = ran("run", "--adapter", "reference", "--cases", cases)
    assert run.code == 0, run.err
    assert run.kinds == ["passed"] * 4 + ["skipped open"] + ["passed"] * 2
    assert [record.trial.check for record in run.records] == ["values"] + ["status"] * 4 + ["memory", "values"]
    manifest = json.loads((run.path / "manifest.json").read_text())
    assert list(manifest["inputs"]) == [cases]


def test_cases_of_other_operators_than_those_named_are_skipped_with_that_reason(ran: Run, tmp_path: Path) -> None:
    cases = written(tmp_path / "cases.json", softmax(2, 3))
    run = ran("run", "rms_norm_grad", "--adapter", "reference", "--cases", cases)
    assert run.code == 3
    assert run.directory.summary().total.skipped_by_reason == {"operator not chosen": 1}


def test_the_target_is_that_of_the_cases(ran: Run, tmp_path: Path) -> None:
    case = softmax(2, 3)
    there = Case(case.operator, case.arguments, Target(product="atlas-inference", core_count=8))
    run = ran("run", "--adapter", "reference", "--cases", written(tmp_path / "there.json", there))
    assert run.code == 0
    assert json.loads((run.path / "manifest.json").read_text())["target"] == {
        "product": "atlas-inference",
        "core_count": 8,
    }


def test_cases_beyond_max_bytes_are_skipped_with_that_reason(ran: Run, tmp_path: Path) -> None:
    cases = written(tmp_path / "cases.jsonl", softmax(2, 3), softmax(100, 100))
    run = ran("run", "--adapter", "reference", "--cases", cases, "--max-bytes", "1000")
    assert (run.code, run.result["verdict"], run.result["judged"]) == (3, "inconclusive", 50)
    assert run.kinds == ["passed", "skipped too large"]
    assert "120000 bytes of arguments; --max-bytes allows 1000" in run.records[1].verdict.message
    run = ran("run", "--adapter", "reference", "--cases", cases, "--max-bytes", "8")
    assert (run.code, run.result["verdict"], run.kinds) == (3, "inconclusive", ["skipped too large"] * 2)
    assert "2 too large: " in run.out
    assert "too large: too large" not in run.out


def test_descriptors_of_any_size_reach_the_first_phase(ran: Run, tmp_path: Path) -> None:
    large = Tensor((2147483646, 2147483646), "FLOAT")
    case = Case(
        SOFTMAX,
        {"gradOutput": large, "output": large, "dim": 1, "out": large},
        call=CallOptions(phases=1),
    )
    run = ran("run", "--adapter", "reference", "--cases", written(tmp_path / "cases.json", case))
    assert (run.code, run.kinds) == (0, ["passed"])


def test_unsafe_cases_are_skipped_unless_asked_for(ran: Run, tmp_path: Path) -> None:
    cases = written(tmp_path / "cases.json", stray_index())
    run = ran("run", "--adapter", "reference", "--cases", cases)
    assert (run.code, run.kinds) == (3, ["skipped unsafe"])
    assert "indices.range" in run.records[0].verdict.message
    assert run.records[0].attempts == ((),)
    run = ran("run", "--adapter", "reference", "--cases", cases, "--unsafe")
    assert run.kinds == ["skipped open"]


def test_an_operator_that_the_product_does_not_have_is_skipped_with_that_reason(ran: Run) -> None:
    run = ran("run", "rms_norm_grad", "--adapter", "reference", "--product", "atlas-training")
    assert run.code == 3
    assert run.directory.summary().total.skipped_by_reason == {"product not supported": 1}


MISTAKES = [
    (("run", "softmax", "--adapter", "reference"), "operator: 'softmax' is not known"),
    (("run", "--adapter", "refrence"), "no adapter is called 'refrence'; expected one of reference"),
    (("run", "--adapter", "refrence"), "did you mean 'reference'?"),
    (("run", "--adapter", "nothing.of:Mine"), "no module 'nothing'"),
    (("run", "--adapter", "wrong_adapters:Nobody"), "wrong_adapters has no callable 'Nobody'"),
    (("run", "--adapter", "wrong_adapters:Wrong,falt=value"), "unknown option 'falt'; expected fault"),
    (("run", "--adapter", "reference", "--product", "atlas-a9"), "--product: 'atlas-a9' is not known"),
    (("run", "--adapter", "reference", "--profile", "quik"), "--profile 'quik': expected one of quick"),
    (("run", "--adapter", "reference", "--profile", "quik", "--cases", "good.json"), "did you mean 'quick'?"),
    (("run", "--adapter", "reference", "--cases", "none.json"), "none.json: cannot be read"),
    (("run", "--adapter", "reference", "--cases", "bad.json"), "bad.json: not valid JSON"),
    (("run", "--adapter", "reference", "--cases", "broken.json"), "broken.json: a trial of 'values' takes a case that"),
    (("run", "--adapter", "reference", "--cases", "valid.json"), "a trial of 'status' takes a case that breaks"),
    (("run", "--adapter", "reference", "--cases", "twin.json"), "twin.json: trial: $.parameters.twin"),
    (("run", "--adapter", "reference", "--cases", "check.json"), "check 'value': expected one of"),
    (("run", "--adapter", "reference", "--cases", "two.jsonl"), "two.jsonl: cases of atlas-a2, atlas-training; a run"),
    (("run", "--adapter", "reference", "--cases", "good.json", "--product", "atlas-training"), "leave it out"),
    (("run", "--adapter", "reference", "--specs", "nowhere"), "nowhere: is no folder"),
    (("run", "--adapter", "reference", "--progress", "no/p"), "--progress no/p: "),
    (("run", "--adapter", "reference", "--workers", "0"), "--workers"),
    (("run", "--adapter", "reference", "--seed", "-1"), "--seed"),
    (("replay", "none.json", "--adapter", "reference"), "none.json: cannot be read"),
    (("replay", ".", "--adapter", "reference"), "bad.json: not valid JSON"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), MISTAKES)
def test_mistakes_are_told_before_anything_is_run(
    ran: Run, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    written(tmp_path / "good.json", softmax(2, 3))
    (tmp_path / "bad.json").write_text("{")
    written(tmp_path / "broken.json", Trial("values", softmax(2, 3, dim=7)))
    written(tmp_path / "valid.json", Trial("status", softmax(2, 3)))
    written(tmp_path / "twin.json", Trial("status", softmax(2, 3, dim=7), {"twin": {"format": "x"}}))
    good = softmax(2, 3)
    written(tmp_path / "two.jsonl", good, Case(good.operator, good.arguments, Target(product="atlas-training")))
    written(tmp_path / "check.json", Trial("value", softmax(2, 3)))
    run = ran(*arguments)
    assert run.code == 2, run.err
    assert message in " ".join(run.err.split())
    assert run.err.startswith("error: ")
    assert "Traceback" not in run.err
    assert run.out == ""
    assert not run.path.exists()


def test_a_directory_that_cannot_be_used(ran: Run, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for out, message in ((file, "cannot be used"), (file / "below", "cannot be used"), (tmp_path, "other files")):
        run = ran("run", "softmax_backward", "--adapter", "reference", out=out)
        assert run.code == 2
        assert message in run.err
    first = ran("run", "--adapter", "reference", "--cases", written(tmp_path / "c.json", softmax(2, 3)))
    run = ran("run", "softmax_backward", "--adapter", "reference", out=first.path)
    assert run.code == 2
    assert "holds a run already" in run.err
    assert first.kinds == ["passed"]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(Path(__file__).parents[1] / "support")))}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workers", "number"), [("1", signal.SIGINT), ("2", signal.SIGINT), ("2", signal.SIGTERM), ("2", signal.SIGHUP)]
)
def test_an_interrupted_run_keeps_what_had_finished(tmp_path: Path, workers: str, number: signal.Signals) -> None:
    out = tmp_path / "run"
    # A shell's background job inherits ignored signals, which is not what is tested.
    heard = ["env", "--default-signal=INT,TERM,HUP"]
    command = [*heard, sys.executable, "-m", "aclnn_cts", "run", "softmax_backward", "--adapter", "reference"]
    options = ["--profile", "thorough", "--workers", workers, "-o", str(out)]
    with subprocess.Popen(
        [*command, *options],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        results = out / "results.sqlite-wal"
        while process.poll() is None and not (results.exists() and results.stat().st_size > 300_000):
            time.sleep(0.02)
        assert process.poll() is None, process.communicate()
        # As a terminal and a batch system do it: the whole group.
        os.killpg(process.pid, number)
        output, errors = process.communicate()
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    sent = "" if number == signal.SIGINT else f"{number.name} was sent; "
    assert errors.splitlines() == [f"error: interrupted; {sent}what had finished is kept in {out}"]
    assert "RESULT verdict=inconclusive " in output
    directory = RunDirectory(out)
    assert json.loads((out / "summary.json").read_text())["interrupted"] is True
    summary = directory.summary()
    with directory.results() as records:
        assert sum(1 for _ in records.records()) == summary.total.ended > 0
    assert summary.total.failed == summary.total.errors == 0
