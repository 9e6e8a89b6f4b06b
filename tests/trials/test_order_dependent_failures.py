"""A failure that does not show alone is kept, shown and bundled with the calls after which it does."""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import jsonschema
import msgspec
import pytest

from aclnn_cts.bundle.records import record_from_json, record_to_json
from aclnn_cts.cli.main import main
from aclnn_cts.core.case import Data, Tensor
from aclnn_cts.core.trial import EarlierCall, Trial, trial_from_json
from aclnn_cts.reports.model.build import acceptance
from tests.runs.test_run import softmax, stray_index, written
from tests.support.programs import built_program, home, needs_compiler, started
from tests.support.ran import Ran

Run = Callable[..., Ran]

FAULT = "ACLNN_LOOPBACK_FAULT"
FIRST = softmax(4, 3)
OTHER = softmax(2, 3)
LAST = softmax(4, 3, gradOutput=Tensor((4, 3), "FLOAT", data=Data(recipe="constant", mean=2.0)))


@pytest.mark.slow
@needs_compiler
def test_a_stale_result(ran: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FAULT, "softmax.stale-result")
    cases = written(tmp_path / "cases.jsonl", OTHER, FIRST, LAST)
    run = ran("run", "--adapter", "loopback", "--cases", cases)
    assert run.kinds == ["passed", "passed", "failed value"]
    failed = run.records[-1]
    assert failed.verdict.facts["alone"] == "conforms"
    assert failed.after == (EarlierCall(FIRST),)
    assert failed.verdict.message.endswith(
        "it conforms; order-dependent: it fails again after one call that came before it, which its trial makes first"
    )
    assert failed.reproducing_trial == msgspec.structs.replace(failed.trial, after=failed.after)

    [file] = run.directory.failures()
    kept = trial_from_json(json.loads(file.read_text()), where=str(file))
    assert kept == failed.reproducing_trial
    again = ran("replay", str(file), "--adapter", "loopback", "-v")
    assert again.code == 1
    assert again.kinds == ["failed value"]
    assert "made first, as the failure does not show without it: aclnnSoftmaxBackward" in again.out

    [card] = acceptance([run.path]).findings
    assert (card.after, card.file_is_case, card.figures_of) == (1, True, "")
    assert {program.language for program in card.made.programs} == {"cpp", "python"}

    bundle = tmp_path / "bundle.zip"
    assert main(["bundle", str(run.path), "-o", str(bundle)]) == 0
    assert main(["verify", str(bundle), "--recompute", "3"]) == 0
    with zipfile.ZipFile(bundle) as archive:
        [records] = [archive.read(name) for name in archive.namelist() if name.endswith(".jsonl")]
        schema = json.loads(archive.read("schemas/record.schema.json"))
    line = json.loads(records.splitlines()[-1])
    jsonschema.Draft202012Validator(schema).validate(line)
    assert record_from_json(line, where="here").after == failed.after
    assert json.loads(json.dumps(record_to_json(failed)))["after"] == line["after"]


@pytest.mark.slow
@needs_compiler
def test_a_trial_is_shrunk_with_the_calls_before_it(ran: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FAULT, "softmax.stale-result")
    file = written(tmp_path / "trial.json", Trial("values", LAST, after=(EarlierCall(FIRST),)))
    assert ran("shrink", file, "--adapter", "loopback", "--executions", "20", out=tmp_path / "small.json").code == 1
    small = trial_from_json(json.loads((tmp_path / "small.json").read_text()), where="small.json")
    assert isinstance(small, Trial)
    assert small.after == (EarlierCall(FIRST),)
    assert small.case != LAST


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize(
    ("fault", "after"),
    [("softmax.stale-result", EarlierCall(FIRST)), ("softmax.crash-now-and-then", EarlierCall(LAST, times=999))],
    ids=["one call", "many calls"],
)
def test_its_programs_make_them_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str, after: EarlierCall
) -> None:
    file = written(tmp_path / "trial.json", Trial("values", LAST, after=(after,)))
    assert main(["repro", file, "--language", "cpp,python", "-o", str(tmp_path / "programs")]) == 0
    built = built_program((tmp_path / "programs" / "repro.cpp").read_text(), tmp_path)
    script = (sys.executable, tmp_path / "programs" / "repro.py", home().lib64 / "libascendcl.so")
    for words in ((built,), script):
        monkeypatch.setenv(FAULT, fault)
        shown = started(*words)
        assert shown.returncode not in (0, 2), shown.stdout + shown.stderr
        monkeypatch.delenv(FAULT)
        fixed = started(*words)
        assert fixed.returncode == 0, fixed.stdout + fixed.stderr
        assert fixed.stdout.count("phase one returned") == 1


@needs_compiler
def test_calls_before_it_that_could_do_harm_are_not_made(ran: Run, tmp_path: Path) -> None:
    harmful = stray_index()
    run = ran(
        "run",
        "--adapter",
        "loopback",
        "--cases",
        written(tmp_path / "a.json", Trial("values", LAST, after=(EarlierCall(harmful),))),
    )
    assert run.kinds == ["skipped unsafe"]
    many = Trial("values", LAST, after=(EarlierCall(FIRST, times=4000),))
    run = ran("run", "--adapter", "loopback", "--cases", written(tmp_path / "b.json", many), "--max-bytes", "100000")
    assert run.kinds == ["skipped too large"]
