"""`--phases one`, as with a vendor's library on a machine without a device: what is refused, replayed and recorded."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from aclnn_cts.cli.main import main
from aclnn_cts.core.case import Case, Tensor, first_phase
from aclnn_cts.core.trial import Trial, trial_from_json
from aclnn_cts.core.verdict import Result, RunVerdict, SkipReason
from aclnn_cts.reports.html import render_html
from aclnn_cts.reports.markdown import markdown_bytes
from aclnn_cts.reports.model.build import acceptance
from aclnn_cts.reports.text import phrase
from tests.adapters.loopback.support import home, needs_compiler
from tests.runs.test_run import softmax, written
from tests.support.programs import OFFERED, SPECS
from tests.support.ran import Ran

Run = Callable[..., Ran]
ONE = ("--phases", "one")
REFUSES_SOFTMAX = "wrong_adapters:Refusing,when=rank(gradOutput) >= 0"


@pytest.fixture(scope="module")
def library() -> str:
    """An adapter's word for the software device without its runtime, as a host build of operators is."""
    return f"cann:library={home().host / 'lib64' / 'libloopback_host.so'}"


def test_a_refused_sentinel_drops_its_operator_alone_and_is_a_finding(ran: Run) -> None:
    run = ran(
        "run", "softmax_backward", "embedding_dense_backward", "--adapter", REFUSES_SOFTMAX, "--max-cases", "5", *ONE
    )
    assert run.code == 1
    mine = [record for record in run.records if record.trial.case.operator == "aclnnSoftmaxBackward"]
    [sentinel] = mine
    assert (sentinel.trial.check, sentinel.verdict.kind) == ("example", "rejected")
    summary = run.directory.summary()
    assert summary.operators["aclnnSoftmaxBackward"].total.skipped_by_reason == {SkipReason.SENTINEL: 1}
    verdicts = summary.conclusion.operators
    assert verdicts["aclnnSoftmaxBackward"].verdict == RunVerdict.FAILS
    assert verdicts["aclnnEmbeddingDenseBackward"].verdict == RunVerdict.CONFORMS
    assert "aclnnSoftmaxBackward: rejects the example of aclnnSoftmaxBackward, example.1" in run.err
    [file] = run.directory.failures()
    again = ran("replay", str(file), "--adapter", REFUSES_SOFTMAX)
    assert (again.code, again.kinds) == (1, ["failed rejected"])


def test_cases_of_an_operator_whose_sentinel_is_refused_are_skipped(ran: Run, tmp_path: Path) -> None:
    cases = written(tmp_path / "cases.jsonl", softmax(2, 3, out=None))
    run = ran("run", "--adapter", REFUSES_SOFTMAX, "--cases", cases, *ONE)
    assert (run.code, run.kinds) == (1, ["failed rejected"])
    assert run.directory.summary().total.skipped_by_reason == {SkipReason.SENTINEL: 1}


def test_what_needs_both_phases_is_not_judged_with_one(ran: Run, tmp_path: Path) -> None:
    cases = written(tmp_path / "cases.jsonl", Trial("memory", softmax(2, 3)), softmax(2, 3))
    run = ran("run", "--adapter", "reference", "--cases", cases, *ONE)
    assert run.kinds == ["skipped not judged", "passed"]
    assert [record.trial.case.call.phases for record in run.records] == [2, 1]


@pytest.mark.slow
@needs_compiler
def test_a_finding_of_first_phases_is_replayed_shrunk_and_shown_without_a_device(
    ran: Run, tmp_path: Path, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACLNN_LOOPBACK_INJECT", "refuse/one@numel=1")
    run = ran("run", "softmax_backward", "--adapter", library, "--product", "atlas-a2", *ONE)
    assert run.code == 1
    file = run.directory.failures()[0]
    trial = trial_from_json(json.loads(file.read_text()), where="file")
    assert isinstance(trial, Trial)
    assert trial.case.call.phases == 1
    command = next(line[6:] for line in run.out.splitlines() if line.startswith("Next: aclnn-cts replay"))
    replayed = ran(*command.split()[1:])
    assert (replayed.code, replayed.kinds) == (1, ["failed rejected"])
    assert all(outcome.phase_two is None for outcome in replayed.records[0].attempts[0])
    all_of_it = ran("replay", str(run.path), "--adapter", library)
    assert all_of_it.code == 1
    assert "same: " in all_of_it.out
    small = tmp_path / "small.json"
    shrunk = ran("shrink", str(file), "--adapter", library, "--executions", "40", out=small)
    assert shrunk.code == 1, shrunk.err
    smallest = trial_from_json(json.loads(small.read_text()), where="file")
    assert isinstance(smallest, Trial)
    assert smallest.case.call.phases == 1
    assert ran("replay", str(small), "--adapter", library).kinds == ["failed rejected"]
    programs = tmp_path / "programs"
    assert ran("repro", str(small), "--language", "cpp,python", out=programs).code == 0
    file_of_library = home().host / "lib64" / "libloopback_host.so"
    build = ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", str(programs / "repro.cpp"), f"-I{home().include}"]
    build += [str(file_of_library), f"-Wl,-rpath,{file_of_library.parent}"]
    subprocess.run([*build, "-o", str(programs / "repro")], check=True)
    for words in ([programs / "repro"], [sys.executable, programs / "repro.py", file_of_library]):
        done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
        assert done.returncode == 1, done.stdout + done.stderr
        assert "phase one returned 561000" in done.stdout


@needs_compiler
def test_both_phases_are_refused_where_there_is_no_runtime_and_one_can_be_asked_for(
    ran: Run, tmp_path: Path, library: str
) -> None:
    cases = written(tmp_path / "case.json", softmax(2, 3))
    assert "give --phases one" in ran("replay", cases, "--adapter", library).err
    run = ran("replay", cases, "--adapter", library, *ONE)
    assert (run.code, run.kinds) == (0, ["passed"])


def test_a_campaign_of_first_phases_calls_no_second_one(ran: Run) -> None:
    run = ran("fuzz", "softmax_backward", "--adapter", "reference", "--chunks", "12", "--chunk-trials", "64", *ONE)
    assert run.code == 0, run.err
    assert run.directory.manifest.settings["phases"] == 1
    operator = run.directory.summary().operators["aclnnSoftmaxBackward"]
    assert operator.aim("values").judged
    assert set(operator.kinds) == {"example", "boundary", "invalid", "valid", "search", "life-cycle"}
    assert not operator.dtypes
    other = ran(
        "fuzz", "softmax_backward", "--adapter", "reference", "--chunks", "13", "--phases", "both", "--resume",
        out=run.path,
    )  # fmt: skip
    assert other.code == 2
    assert "--phases both: the campaign in" in other.err


@pytest.mark.slow
@pytest.mark.parametrize("names", [("softmax_backward", "embedding_dense_backward"), ("softmax_backward",)])
def test_a_campaign_drops_an_operator_that_rejects_its_example_and_finds_that(ran: Run, names: tuple[str, ...]) -> None:
    chunks = ("--chunks", "2", "--chunk-trials", "16")
    run = ran("fuzz", *names, "--adapter", REFUSES_SOFTMAX, *chunks, *ONE)
    assert run.code == 1, run.err
    mine = [record for record in run.records if record.trial.case.operator == "aclnnSoftmaxBackward"]
    assert {(record.trial.check, record.verdict.kind) for record in mine} == {("example", "rejected")}
    others = run.directory.summary().operators.get("aclnnEmbeddingDenseBackward")
    assert (others is not None and others.total.cases > 0) == (len(names) > 1)
    assert "aclnnSoftmaxBackward: rejects the example" in " ".join((run.out + run.err).split())
    again = ran("fuzz", *names, "--adapter", REFUSES_SOFTMAX, "--chunks", "3", "--resume", out=run.path)
    assert again.code == 1, again.err
    after = [record for record in again.records if record.trial.case.operator == "aclnnSoftmaxBackward"]
    assert len(after) == len(mine)


def test_an_example_is_the_known_good_call_where_it_keeps_its_document_s_rules(ran: Run) -> None:
    # The example of ConvTbc breaks a rule of its own document: another valid call stands for it.
    refuses = "wrong_adapters:Refusing,when=rank(weight) >= 0"
    run = ran("run", "conv_tbc_backward", "--adapter", refuses, *ONE)
    [record] = run.records
    assert (record.trial.check, record.verdict.kind) == ("values", "rejected")
    assert record.trial == first_phase_of(record.trial)


def first_phase_of(trial: Trial) -> Trial:
    return Trial(trial.check, first_phase(trial.case), trial.parameters, trial.after)


LIMIT = softmax(*(2,) * 9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("adapter", "kind", "case"),
    [
        ("wrong_adapters:Lenient", "limit not enforced", LIMIT),
        ("wrong_adapters:Wrong,fault=executor", "executor written after an error", softmax(2, 3, out=None)),
        ("wrong_adapters:Wrong,fault=inner", "status of another class", LIMIT),
    ],
)
def test_what_documents_only_suggest_is_a_table_and_with_strict_limits_a_failure(
    ran: Run, tmp_path: Path, adapter: str, kind: str, case: object
) -> None:
    cases = written(tmp_path / "case.json", case)  # type: ignore[arg-type]
    run = ran("run", "--adapter", adapter, "--cases", cases, *ONE)
    assert run.code != 1, run.out
    [seen] = run.directory.summary().operators["aclnnSoftmaxBackward"].observed.values()
    assert (seen.kind, seen.number) == (kind, 1)
    row = next(line for line in run.out.splitlines() if kind in line)
    assert seen.constraint in row
    assert seen.trial[:16] in row
    stored = json.loads((run.path / "summary.json").read_text())["operators"]["aclnnSoftmaxBackward"]["observed"]
    assert [item["kind"] for item in stored.values()] == [kind]
    report = acceptance([run.path])
    table = markdown_bytes(report, None, "en").decode().replace("\\", "")
    assert f"| {phrase(f'fact.{kind}', 'en')} | {seen.constraint} | 1 |" in table
    page = render_html(report, sections=["statuses"])
    [listed] = re.findall(r'<table class="observations">.*?</table>', page, re.DOTALL)
    assert phrase(f"fact.{kind}", "en") in listed
    assert phrase(f"fact.{kind}", "zh") in listed
    assert f"<code>{seen.trial[:16]}</code>" in listed
    strict = ran("run", "--adapter", adapter, "--cases", cases, *ONE, "--strict-limits")
    assert (strict.code, strict.kinds) == (1, ["failed status"])
    assert kind in strict.records[0].verdict.message
    command = next(line[6:] for line in strict.out.splitlines() if line.startswith("Next: aclnn-cts replay"))
    assert ran(*command.split()[1:]).code == 1


def test_the_reference_does_as_documents_suggest(ran: Run) -> None:
    run = ran("run", "softmax_backward", "--adapter", "reference", *ONE, "--strict-limits")
    assert run.code == 0, run.out
    assert Result.FAILED not in {record.verdict.result for record in run.records}


@needs_compiler
def test_doctor_says_what_first_phases_can_judge_with_a_library_alone(
    library: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", library, "--json"]) == 0
    [item] = json.loads(capsys.readouterr().out)["adapters"]
    assert (item["name"], item["usable"]) == (library, False)
    assert "set_env.sh" not in item["problem"]
    assert "name libascendcl.so too (cann:library=FILE,FILE)" in item["problem"]
    assert item["phases_one"]["operators"] == OFFERED
    assert item["phases_one"]["missing"] == [name for name in SPECS if name not in OFFERED]
    assert item["phases_one"]["command"] == f"aclnn-cts run --adapter {library} --phases one --product P"
    assert main(["doctor", library]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert f"--phases one can judge the statuses of {len(OFFERED)} operators: {OFFERED[0]}, " in told


@needs_compiler
def test_doctor_says_that_a_library_alone_lacks_descriptors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "empty.cpp"
    source.write_text("")
    file = tmp_path / "libempty.so"
    subprocess.run(["g++", "-shared", "-o", str(file), str(source)], check=True)
    assert main(["doctor", f"cann:library={file}", "--json"]) == 0
    [item] = json.loads(capsys.readouterr().out)["adapters"]
    assert (item["usable"], item["phases_one"]) == (False, None)
    assert "name libnnopbase.so too" in item["problem"]
    file.write_text("no library")
    assert main(["doctor", f"cann:library={file}", "--json"]) == 0
    [item] = json.loads(capsys.readouterr().out)["adapters"]
    assert f"{file} cannot be loaded: {file}: file too short" in item["problem"]
    assert "set_env.sh" not in item["problem"]


@needs_compiler
def test_a_library_without_a_runtime_is_asked_what_must_not_reach_a_device(
    ran: Run, tmp_path: Path, library: str
) -> None:
    upsample = Case(
        "aclnnUpsampleNearestExact1dBackward",
        {
            "gradOutput": Tensor((1, 1, 4), "FLOAT", "NCL"),
            "outputSizeOptional": None,
            "inputSize": (1, 1, 2),
            "scalesOptional": 2.0,
            "out": Tensor((1, 1, 2), "FLOAT", "NCL"),
        },
    )
    run = ran("run", "--adapter", library, "--cases", written(tmp_path / "case.json", upsample), *ONE)
    [record] = run.records
    assert record.verdict.kind != SkipReason.UNSAFE
    assert record.attempts[0][0].phase_one is not None or record.verdict.kind == "crash"


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize(("soc", "suspected"), [("Ascend910A", True), ("Ascend910B3", False)])
def test_a_library_for_another_soc_is_suspected(
    ran: Run, library: str, soc: str, *, suspected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACLNN_LOOPBACK_SOC", soc)
    run = ran("run", "softmax_backward", "--adapter", library, "--product", "atlas-a2", *ONE)
    said = "the library may be built for another SoC"
    assert (said in run.err) == suspected
    assert any(said in notice for notice in run.directory.summary().notices) == suspected


@pytest.mark.slow
@needs_compiler
def test_the_time_limit_of_a_call_has_an_option_and_hangs_of_one_cause_cost_little_after_three(
    ran: Run, tmp_path: Path, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACLNN_LOOPBACK_INJECT", "hang/one@numel=35")
    cases = written(
        tmp_path / "cases.jsonl",
        *(softmax(5, 7, dtype=dtype, dim=dim) for dtype in ("FLOAT", "FLOAT16", "BF16") for dim in (0, 1)),
    )
    words = ("--cases", cases, "--call-timeout", "3", *ONE)
    run = ran("run", "--adapter", library, *words)
    assert run.kinds == ["failed hang"] * 6
    assert run.directory.manifest.settings["call_seconds"] == 3
    messages = [record.attempts[0][0].message.partition(";")[0] for record in run.records]
    # One that is the first of its process tells as much as three: it owes nothing to the calls before it.
    in_full = messages.count("no answer within 3 s")
    assert 1 <= in_full <= 3
    rest = messages[in_full:]
    assert all(said.startswith("no answer within 2 s, the limit since calls like it took 3 s") for said in rest)
    wrong = ran("run", "--adapter", library, "--call-timeout", "0")
    assert wrong.code == 2
    assert "--call-timeout" in wrong.err


@pytest.mark.slow
def test_valid_twins_that_are_rejected_for_one_cause_are_one_finding(ran: Run) -> None:
    # The example has two dimensions, and is accepted.
    run = ran("run", "softmax_backward", "--adapter", "wrong_adapters:Refusing,when=rank(gradOutput) == 3", *ONE)
    twins = [
        record.fingerprint
        for record in run.records
        if record.verdict.kind == "rejected" and "twin" in record.trial.parameters
    ]
    assert len(twins) > 20
    [finding] = set(twins)
    assert (finding.clause, finding.dtype, finding.answer) == ("", "", "ACLNN_ERR_PARAM_INVALID")
