"""Tolerances on calls and on the command line: which are computed when, what they gate, and what a person sees."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from aclnn_cts.cli.main import main
from aclnn_cts.core.case import Argument, Case, Data, Tensor
from aclnn_cts.core.case_json import case_to_json
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.rounding import BINARY_FORMATS, round_to, to_dtype
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import FINER_FACT, TOLERANCE_FACT, Result, ToleranceVerdict, Verdict
from aclnn_cts.execution.executor import CallPerformer, CallRequest, PerformedCall
from aclnn_cts.execution.judging import Judge, Judges
from aclnn_cts.execution.measuring import Measuring, chosen_tolerances
from aclnn_cts.execution.settings import RunnerSettings
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.judgement.tolerances.registry import TOLERANCES
from aclnn_cts.judgement.verdict import judge_status
from aclnn_cts.sandbox.open_host import open_host
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.store.record_codec import decode_record, encode_record
from aclnn_cts.store.run_directory import RunDirectory
from aclnn_cts.trials.trial_runner import TrialRunner
from tests.support.drawn import drawn

SPECS = load_specs()


def judge_of(operator: str, *, gate: tuple[str, ...] = (), always: bool = False) -> Judge:
    return Judges(has_statuses=True, measuring=Measuring(gate=gate, always=always)).of(SPECS[operator])


def performed(case: Case) -> PerformedCall:
    """The case as the reference answers it, its outputs kept."""
    with open_host("reference", target=case.target, specs=SPECS) as host:
        [result] = CallPerformer(host=host, specs=SPECS).perform([CallRequest(case)])
        return msgspec.structs.replace(result, got={name: view.copy() for name, view in result.got.items()})


def softmax(*, dtype: str = "FLOAT", scale: float = 1.0) -> Case:
    y = Tensor((2, 3), dtype, data=Data(values=(0.3, 0.5, 0.2, 0.1, 0.7, 0.2)))
    g = Tensor((2, 3), dtype, data=Data(values=tuple(scale * value for value in (1.1, 2.3, 3.7, -1.9, 0.6, 7.3))))
    return Case("aclnnSoftmaxBackward", {"gradOutput": g, "output": y, "dim": 1, "out": Tensor((2, 3), dtype)})


SMALL = softmax(dtype="FLOAT16", scale=2.0**-18)
"""A right answer that `mere-mare` fails: the spacing of subnormal numbers is more than its limit."""


CONV_VALUES = (1.0 + 2.0**-14 + 2.0**-20, 3.0 - 2.0**-18, 0.75 + 2.0**-17)
"""Of self, input and weight: HFLOAT32 and FLOAT16 hold none of them."""


def conv(mode: int, values: tuple[float, float, float] = CONV_VALUES) -> Case:
    def tensor(value: float | None = None, layout: str = "NCL") -> Tensor:
        return Tensor((1, 1, 1), "FLOAT", format=layout, data=None if value is None else Data(values=(value,)))

    arguments: dict[str, Argument] = {
        "self": tensor(values[0], "ND"),
        "input": tensor(values[1]),
        "weight": tensor(values[2]),
        "bias": Tensor((1,), "FLOAT", data=Data(values=(0.5,))),
        "pad": 0,
        "cubeMathType": mode,
        "gradInput": tensor(),
        "gradWeight": tensor(),
        "gradBias": Tensor((1,), "FLOAT"),
    }
    return Case("aclnnConvTbcBackward", arguments)


def off(item: PerformedCall, factor: float) -> PerformedCall:
    return msgspec.structs.replace(item, got={name: view * view.dtype.type(factor) for name, view in item.got.items()})


def test_a_pass_has_no_tolerances_unless_they_are_asked_for() -> None:
    item = performed(softmax())
    assert judge_of("aclnnSoftmaxBackward").values(item).tolerances == {}
    gated = judge_of("aclnnSoftmaxBackward", gate=("mixed",)).values(item)
    assert (gated.result, list(gated.tolerances)) == (Result.PASSED, ["mixed"])
    assert gated.tolerances["mixed"]["out"].verdict == ToleranceVerdict.PASS
    assert list(judge_of("aclnnSoftmaxBackward", always=True).values(item).tolerances) == list(TOLERANCES)
    assert list(judge_of("aclnnSoftmaxBackward").thorough.values(item).tolerances) == list(TOLERANCES)


def test_a_failure_has_all_tolerances_and_keeps_its_kind() -> None:
    verdict = judge_of("aclnnSoftmaxBackward", gate=("mere-mare",)).values(off(performed(softmax()), 1.001))
    assert (verdict.result, verdict.kind) == (Result.FAILED, Fault.VALUE)
    assert list(verdict.tolerances) == list(TOLERANCES)
    assert verdict.tolerances["mere-mare"]["out"].verdict == ToleranceVerdict.FAIL
    assert verdict.facts["second oracle"].startswith("agrees")


def test_outputs_that_cannot_be_compared_have_no_tolerances() -> None:
    item = performed(softmax())
    wrong = msgspec.structs.replace(item, got={"out": item.got["out"].astype(np.float64)})
    verdict = judge_of("aclnnSoftmaxBackward", always=True).values(wrong)
    assert (verdict.kind, verdict.tolerances["mixed"]) == (Fault.DTYPE, {})


def test_a_gate_fails_what_the_bound_passes() -> None:
    item = performed(SMALL)
    assert judge_of("aclnnSoftmaxBackward").values(item).result == Result.PASSED
    assert judge_of("aclnnSoftmaxBackward", gate=("mixed",)).values(item).result == Result.PASSED
    verdict = judge_of("aclnnSoftmaxBackward", gate=("mixed", "mere-mare")).values(item)
    assert (verdict.result, verdict.kind) == (Result.FAILED, Fault.TOLERANCE)
    assert verdict.message.startswith("the tolerance mere-mare fails on out: M")
    assert verdict.facts[TOLERANCE_FACT] == "mere-mare"
    assert verdict.facts["second oracle"].startswith("agrees"), "failures are put to the second oracle"
    assert list(verdict.tolerances) == list(TOLERANCES)


@pytest.mark.parametrize("always", [False, True])
def test_a_gate_that_holds_passes(always: bool) -> None:
    verdict = judge_of("aclnnSoftmaxBackward", gate=("mixed", "dual-l2"), always=always).values(performed(softmax()))
    assert verdict.result == Result.PASSED


def test_the_second_implementation_is_named_and_follows_the_mode() -> None:
    verdict = judge_of("aclnnConvTbcBackward", always=True).values(performed(conv(3)))
    named = {output: result.benchmark for output, result in verdict.tolerances["dual-l0"].items()}
    assert named["gradInput"] == "NumPy in FLOAT, sums in order, operands rounded to HFLOAT32, rounded to FLOAT"
    assert named["gradBias"] == "NumPy in FLOAT, sums in order, operands as stored, rounded to FLOAT"
    through = judge_of("aclnnConvTbcBackward", always=True).values(performed(conv(2)))
    assert through.tolerances["dual-l0"]["gradInput"].benchmark.endswith(
        "operands rounded to FLOAT16, rounded to FLOAT by way of FLOAT16"
    )


def test_hfloat32_has_its_own_row_where_the_mode_rounds_to_it() -> None:
    limits = {}
    for mode in (0, 3):
        verdict = judge_of("aclnnConvTbcBackward", always=True).values(performed(conv(mode)))
        limits[mode] = {output: result.figures[0].limit for output, result in verdict.tolerances["mere-mare"].items()}
    assert limits[0] == {"gradInput": 2.0**-13, "gradWeight": 2.0**-13, "gradBias": 2.0**-13}
    assert limits[3] == {"gradInput": 2.0**-11, "gradWeight": 2.0**-11, "gradBias": 2.0**-13}


def test_without_a_benchmark_the_rules_that_need_one_do_not_apply() -> None:
    judge = replace(judge_of("aclnnSoftmaxBackward", gate=("dual-l0",)), benchmark=None)
    verdict = judge.values(performed(softmax()))
    assert (verdict.result, verdict.tolerances["dual-l0"]["out"].verdict) == (
        Result.PASSED,
        ToleranceVerdict.NOT_APPLICABLE,
    )


def rounded_operands(case: Case, form: str) -> PerformedCall:
    """What a device gives that rounds operands to the format and does all else exactly."""
    item = performed(case)
    a, x, w = (
        round_to(item.arrays[name].astype(np.float64), BINARY_FORMATS[form]) for name in ("self", "input", "weight")
    )
    outputs = {"gradInput": a * w, "gradWeight": a * x, "gradBias": item.arrays["self"].reshape(1).astype(np.float64)}
    return msgspec.structs.replace(item, got={name: to_dtype(value, "FLOAT") for name, value in outputs.items()})


def test_finer_than_asked_is_a_fact_where_the_mode_rounds() -> None:
    judge = judge_of("aclnnConvTbcBackward")
    assert judge.values(performed(conv(3))).facts == {FINER_FACT: True}
    assert judge.values(performed(conv(0))).facts == {}
    verdict = judge.values(rounded_operands(conv(3), "HFLOAT32"))
    assert (verdict.result, verdict.facts) == (Result.PASSED, {}), "just as asked"


def test_finer_than_asked_needs_operands_that_rounding_changes() -> None:
    item = performed(conv(3, (1.5, 1.5, 1.5)))
    assert judge_of("aclnnConvTbcBackward").values(item).facts == {}


def test_one_trial_in_64_is_put_to_all_tolerances() -> None:
    spec = SPECS["aclnnSoftmaxBackward"]
    trials = [
        Trial("values", case) for case in drawn(Sampler(spec, Target(spec.usual_product)), 200, stream="tolerances")
    ]
    with open_host("reference", target=Target(), specs=SPECS) as host:
        runner = TrialRunner(specs=SPECS, host=host, settings=RunnerSettings(adapter="reference", target=Target()))
        records = [record for judged in runner.run(trials) for record in judged.records]
    passed = [record for record in records if record.verdict.result == Result.PASSED]
    measured = [record for record in passed if record.verdict.tolerances]
    assert 0 < len(measured) < len(passed) / 16
    assert all(int(record.trial_id[:2], 16) % 64 == 0 for record in measured)
    [back] = [decode_record(encode_record(record), where="test") for record in measured[:1]]
    assert back.verdict.tolerances == measured[0].verdict.tolerances


def test_values_beyond_a_limit_keep_their_tolerances() -> None:
    inner = judge_of("aclnnSoftmaxBackward", always=True).values(performed(softmax()))
    verdict: Verdict = judge_status(
        outcome=Outcome(phase_one=0, phase_two=0),
        allowed=("ACLNN_ERR_*", "ACLNN_SUCCESS"),
        strength="limit",
        constraint="some.limit",
        values=lambda: inner,
    )
    assert verdict.tolerances == inner.tolerances


def test_words_of_the_option_may_be_joined_by_commas() -> None:
    assert chosen_tolerances(("dual-l1,mixed", " dual-l0 ,dual-l1")) == ("mixed", "dual-l0", "dual-l1")
    assert chosen_tolerances(()) == ()


def cases_file(folder: Path, *cases: Case) -> Path:
    file = folder / "cases.jsonl"
    file.write_text("".join(json.dumps(case_to_json(case)) + "\n" for case in cases), encoding="utf-8")
    return file


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(list(words))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize("command", ["run", "replay"])
def test_an_unknown_tolerance_is_a_mistake_of_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    file = cases_file(tmp_path, softmax())
    source = [str(file)] if command == "replay" else ["--cases", str(file)]
    out = tmp_path / "run"
    code, _, error = run(
        capsys, command, *source, "--adapter", "reference", "--tolerance", "mixed,dual-l00", "-o", str(out)
    )
    assert (code, out.exists()) == (2, False)
    assert error.startswith("error: --tolerance: 'dual-l00' is not a tolerance; expected any of mixed, mere-mare")
    assert error.rstrip().endswith("did you mean 'dual-l0'?")


def test_run_is_gated_by_the_tolerances_that_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = cases_file(tmp_path, softmax(), SMALL)
    base = ["run", "--cases", str(file), "--adapter", "reference"]
    code, out, _ = run(capsys, *base, "-o", str(tmp_path / "plain"))
    assert (code, "verdict=conforms" in out) == (0, True)
    code, out, _ = run(capsys, *base, "--tolerance", "mixed", "-o", str(tmp_path / "mixed"))
    assert (code, "verdict=conforms" in out) == (0, True)
    gated = tmp_path / "gated"
    code, out, _ = run(capsys, *base, "--tolerance", "mixed", "--tolerance", "mere-mare", "-o", str(gated))
    assert (code, "verdict=fails judged=100% cases=2 passed=1 failed=1" in out) == (1, True)
    said = " ".join(out.split())
    assert "within the derived bound, but not within a tolerance" in said
    assert "the tolerance mere-mare fails on out: M" in said
    manifest = json.loads((gated / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["settings"]["tolerances"] == ["mixed", "mere-mare"]
    with RunDirectory(gated).results() as results:
        records = list(results.records())
    tolerances = {record.verdict.result: list(record.verdict.tolerances) for record in records}
    assert [record.fingerprint.fault for record in records if record.verdict.result == Result.FAILED] == [
        Fault.TOLERANCE
    ]
    assert tolerances == {Result.PASSED: ["mixed", "mere-mare"], Result.FAILED: list(TOLERANCES)}
    # The run's tolerances gate again; a copy of the trial file lies in no run, and passes without them.
    [file] = RunDirectory(gated).failures()
    copied = Path(shutil.copy(file, tmp_path))
    for source, named, code in (
        (gated, (), 1),
        (file, (), 1),
        (copied, (), 0),
        (copied, ("--tolerance", "mere-mare"), 1),
    ):
        found, out, _ = run(capsys, "replay", str(source), "--adapter", "reference", *named)
        assert found == code
        assert ("--adapter reference --tolerance mere-mare -v" in out) == bool(named)


def test_replay_shows_all_tolerances_in_one_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    file = cases_file(tmp_path, SMALL)
    base = ["replay", str(file), "--adapter", "reference"]
    code, out, _ = run(capsys, *base, "-v", "-o", str(tmp_path / "verbose"))
    assert code == 0, "nobody asked for a gate"
    lines = out.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("tolerance "))
    assert lines[first].split() == ["tolerance", "output", "says", "headroom", "because"]
    table = [line.split(maxsplit=4) for line in lines[first + 1 : first + 2 + len(TOLERANCES)]]
    assert [row[0] for row in table] == ["derived", *TOLERANCES]
    by_name = {row[0]: row[1:] for row in table}
    assert by_name["mixed"][:3] == ["out", "pass", "100%"]
    assert by_name["mere-mare"][:2] == ["out", "fail"]
    assert by_name["dual-l0"][1] == "pass"
    assert "benchmark of out: NumPy in FLOAT, sums in order, operands as stored, rounded to FLOAT16" in out
    code, out, _ = run(capsys, *base, "-o", str(tmp_path / "short"))
    assert (code, "headroom" in out) == (0, False)
