from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from aclnn_cts.cli.main import main
from aclnn_cts.core.case import Argument, Case, Data, Tensor
from aclnn_cts.core.case_json import case_to_json
from aclnn_cts.core.dtypes import COMPONENTS
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.target import Target
from aclnn_cts.repro.python import python_program
from aclnn_cts.repro.write import Programs
from tests.support.programs import (
    OFFERED,
    SPECS,
    built_program,
    facts_of,
    home,
    needs_compiler,
    one,
    program_of,
    run_again,
    run_cpp,
    run_python,
    started,
)


@needs_compiler
@pytest.mark.parametrize("operator", OFFERED)
def test_both_programs_find_the_software_device_right(operator: str, tmp_path: Path) -> None:
    facts = facts_of(one(operator, "valid"))
    for result in (run_cpp(facts, tmp_path), run_python(facts, tmp_path)):
        assert result.returncode == 0, result.stdout + result.stderr
        assert result.stdout.endswith("conforms\n")


def sigmoid(dtype: str) -> Case:
    """Complex numbers, the output as every second element of its storage."""
    g = Tensor((1, 2), dtype, data=Data(values=(1.0, 2.0, -3.0, 0.5)))
    y = Tensor((2, 1), dtype, data=Data(values=(0.5, 0.25, 2.0, -1.0)))
    out = Tensor((2, 2), dtype, strides=(4, 2), offset=1, storage_shape=(9,))
    return Case("aclnnSigmoidBackward", {"gradOutput": g, "output": y, "gradInput": out})


@needs_compiler
@pytest.mark.parametrize("dtype", COMPONENTS)
def test_both_programs_judge_both_components(dtype: str, tmp_path: Path) -> None:
    facts = facts_of(sigmoid(dtype))
    for result in (run_cpp(facts, tmp_path), run_python(facts, tmp_path)):
        assert result.returncode == 0, result.stdout + result.stderr
    out = facts.tensors["gradInput"]
    assert out.expected is not None
    upper = out.expected.upper.copy()
    upper[3] -= 1.0
    shifted = replace(out.expected, upper=upper)
    wrong = replace(facts, tensors={**facts.tensors, "gradInput": replace(out, expected=shifted)})
    for result in (run_cpp(wrong, tmp_path), run_python(wrong, tmp_path)):
        assert result.returncode == 1, result.stdout + result.stderr
        assert "gradInput[0, 1].im is 0.15625, expected 0.15625 to -0.84375\n" in result.stdout
        assert "gradInput: 1 of 8 elements at fault" in result.stdout


@needs_compiler
def test_a_refused_call_conforms_by_its_status(tmp_path: Path) -> None:
    facts = facts_of(one("aclnnSoftmaxBackward", "invalid"))
    for result in (run_cpp(facts, tmp_path), run_python(facts, tmp_path)):
        assert result.returncode == 0, result.stdout + result.stderr
        assert "phase one returned 16100" in result.stdout


def softmax() -> Case:
    data = Data(values=(1.0, 2.0, 3.0, 4.0))
    tensor = Tensor((2, 2), "FLOAT", data=data)
    return Case(
        "aclnnSoftmaxBackward", {"gradOutput": tensor, "output": tensor, "dim": 1, "out": Tensor((2, 2), "FLOAT")}
    )


@needs_compiler
def test_both_programs_show_a_wrong_value_and_a_wrong_status(tmp_path: Path) -> None:
    facts = facts_of(softmax())
    out = facts.tensors["out"]
    assert out.expected is not None
    shifted = replace(out.expected, lower=out.expected.lower + 1.0, upper=out.expected.upper + 1.0)
    wrong_value = replace(facts, tensors={**facts.tensors, "out": replace(out, expected=shifted)})
    wrong_status = replace(facts, statuses=(("ACLNN_ERR_PARAM_INVALID", 161002),))
    for wrong, words in ((wrong_value, "out[0, 0] is"), (wrong_status, "expected")):
        for result in (run_cpp(wrong, tmp_path), run_python(wrong, tmp_path)):
            assert result.returncode == 1, result.stdout + result.stderr
            assert words in result.stdout
            assert result.stdout.endswith("FAULT\n")


@needs_compiler
def test_both_programs_require_what_every_order_of_evaluation_gives(tmp_path: Path) -> None:
    data = Data(values=(1.0, "inf", 3.0, "nan"))
    tensor = Tensor((4,), "FLOAT", data=data)
    arguments: dict[str, Argument] = {
        "gradOutput": tensor,
        "output": Tensor((4,), "FLOAT", data=Data(recipe="constant")),
        "dim": 0,
    }
    case = Case("aclnnSoftmaxBackward", {**arguments, "out": Tensor((4,), "FLOAT")}, Target(product="atlas-a2"))
    facts = facts_of(case)
    out = facts.tensors["out"]
    assert out.expected is not None
    assert out.expected.judged.any()
    finite = replace(
        out.expected, lower=np.zeros(4), upper=np.ones(4), judged=np.ones(4, bool), finite_alone=np.zeros(4, bool)
    )
    wrong = replace(facts, tensors={**facts.tensors, "out": replace(out, expected=finite)})
    for program, code in ((facts, 0), (wrong, 1)):
        for result in (run_cpp(program, tmp_path), run_python(program, tmp_path)):
            assert result.returncode == code, result.stdout + result.stderr


def strided() -> Case:
    """An output with gaps, and a workspace behind it."""
    tensor = Tensor((4, 33), "FLOAT", data=Data(recipe="normal", seed=5))
    out = Tensor((4, 33), "FLOAT", strides=(40, 1), offset=3, storage_shape=(4, 41))
    arguments: dict[str, Argument] = {"gradOutput": tensor, "output": tensor, "dim": 1, "out": out}
    return Case("aclnnSoftmaxBackward", arguments, Target(product="atlas-a2"))


def beyond() -> Case:
    """A dim that the operator does not have."""
    return Case("aclnnSoftmaxBackward", {**softmax().arguments, "dim": 2}, Target(product="atlas-a2"))


def special() -> Case:
    """Infinities and nan."""
    tensor = Tensor((4,), "FLOAT", data=Data(values=(1.0, "inf", 3.0, "nan")))
    arguments: dict[str, Argument] = {"gradOutput": tensor, "output": tensor, "dim": 0, "out": Tensor((4,), "FLOAT")}
    return Case("aclnnSoftmaxBackward", arguments, Target(product="atlas-a2"))


FAULTS = {
    strided: (
        "guard-before",
        "guard-after",
        "gap-written",
        "workspace-overrun",
        "input-changed",
        "tail-unwritten",
    ),
    special: ("input-changed",),
}


@needs_compiler
@pytest.mark.parametrize("make", FAULTS, ids=lambda make: make.__name__)
def test_both_programs_show_a_fault_of_the_software_device_and_no_more_once_it_is_gone(
    make: Callable[[], Case], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = facts_of(make())
    for result in (run_cpp(facts, tmp_path), run_python(facts, tmp_path)):
        assert result.returncode == 0, result.stdout + result.stderr
    for fault in FAULTS[make]:
        monkeypatch.setenv("ACLNN_LOOPBACK_FAULT", f"softmax.{fault}")
        for result in (run_again(tmp_path), run_python(facts, tmp_path)):
            assert result.returncode == 1, (fault, result.stdout + result.stderr)
            assert result.stdout.endswith("FAULT\n")


@needs_compiler
def test_both_programs_show_a_fault_of_the_device_and_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = facts_of(softmax())
    assert run_cpp(facts, tmp_path).returncode == 0
    monkeypatch.setenv("ACLNN_LOOPBACK_INJECT", "fault@numel=4")
    for result in (run_again(tmp_path), run_python(facts, tmp_path)):
        assert (result.returncode, result.stdout.splitlines()[-1]) == (1, "FAULT"), result.stdout + result.stderr
        assert "aclrtSynchronizeStream returned 507015" in result.stdout
    monkeypatch.setenv("ACLNN_LOOPBACK_INJECT", "abort@numel=4")
    for result in (run_again(tmp_path), run_python(facts, tmp_path)):
        assert result.returncode == -signal.SIGABRT


@needs_compiler
def test_both_programs_show_another_status_of_a_broken_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = facts_of(beyond())
    assert run_cpp(facts, tmp_path).returncode == 0
    monkeypatch.setenv("ACLNN_LOOPBACK_INJECT", "refuse/one@1")
    for result in (run_again(tmp_path), run_python(facts, tmp_path)):
        assert (result.returncode, result.stdout.splitlines()[-1]) == (1, "FAULT"), result.stdout + result.stderr


@needs_compiler
def test_a_finding_becomes_programs_through_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = tmp_path / "case.json"
    cases.write_text(json.dumps(case_to_json(softmax())))
    monkeypatch.setenv("ACLNN_LOOPBACK_FAULT", "softmax.input-changed")
    assert main(["run", "--adapter", "loopback", "--cases", str(cases), "-o", str(tmp_path / "run")]) == 1
    (finding,) = (path for path in (tmp_path / "run" / "failures").iterdir() if path.suffix == ".json")
    assert main(["repro", str(finding), "--language", "cpp,python", "-o", str(tmp_path / "programs")]) == 0
    capsys.readouterr()
    programs = {path.suffix: path for path in (tmp_path / "programs").iterdir()}
    assert set(programs) == {".cpp", ".py"}
    built = built_program(programs[".cpp"].read_text(), tmp_path)
    for fault, code in (("softmax.input-changed", 1), ("", 0)):
        monkeypatch.setenv("ACLNN_LOOPBACK_FAULT", fault)
        for result in (started(built), started(sys.executable, programs[".py"], home().lib64 / "libascendcl.so")):
            assert result.returncode == code, result.stdout + result.stderr


def test_a_case_too_large_and_a_call_that_is_none_are_refused() -> None:
    programs = Programs(specs=SPECS)
    with pytest.raises(UsageError, match="--call 2: the trial of 'values' makes 1 call; leave --call out"):
        programs.texts(softmax(), ["cpp"], call=2)
    large = Tensor((300, 300), "FLOAT", data=Data(recipe="normal"))
    case = Case(
        "aclnnSoftmaxBackward", {"gradOutput": large, "output": large, "dim": 1, "out": Tensor((300, 300), "FLOAT")}
    )
    with pytest.raises(UsageError, match="shrink it first"):
        programs.texts(case, ["python"])


@pytest.mark.parametrize(
    ("library", "said"),
    [
        ("no-such-library.so", "set the toolkit's environment, or name the libraries"),
        ("libm.so.6", "no library has aclCreateTensor"),
    ],
)
def test_a_program_without_its_libraries_says_so_and_not_that_the_fault_is_there(
    tmp_path: Path, library: str, said: str
) -> None:
    script = tmp_path / "repro.py"
    script.write_text(python_program(program_of(facts_of(one("aclnnSoftmaxBackward", "valid")))))
    done = started(sys.executable, script, library)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
