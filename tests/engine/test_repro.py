from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from aclnn_cts.adapters.loopback_build import Home, build
from aclnn_cts.core.case import Case, Data, Tensor
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.engine.judging import Judge
from aclnn_cts.engine.repro.cpp import cpp_program
from aclnn_cts.engine.repro.facts import Reproduction, reproduction
from aclnn_cts.engine.repro.python import python_program
from aclnn_cts.engine.repro.write import write_programs
from aclnn_cts.generate.listing import case_stream
from aclnn_cts.judge.model import load_precision
from aclnn_cts.oracles import registry
from aclnn_cts.spec.load import load_specs

SPECS = load_specs()

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")


@cache
def home() -> Home:
    return build()


def facts_of(case: Case) -> Reproduction:
    spec = SPECS[case.operator]
    judge = Judge(spec=spec, oracle=registry.load(spec.stem), base_precision=load_precision(), has_statuses=True)
    return reproduction(case, spec, judge, sentence="a test")


def run_cpp(facts: Reproduction, folder: Path) -> subprocess.CompletedProcess[str]:
    source = folder / "repro.cpp"
    source.write_text(cpp_program(facts))
    library = home().folder / "lib64"
    options = ["-std=c++17", "-Wall", "-Wextra", "-Werror", f"-I{home().folder / 'include'}", f"-L{library}"]
    links = ["-lascendcl", "-lnnopbase", "-lopapi", f"-Wl,-rpath,{library}"]
    subprocess.run(["g++", *options, str(source), *links, "-o", str(folder / "repro")], check=True)  # noqa: S607
    return subprocess.run([str(folder / "repro")], capture_output=True, text=True, check=False)


def run_python(facts: Reproduction, folder: Path) -> subprocess.CompletedProcess[str]:
    script = folder / "repro.py"
    script.write_text(python_program(facts))
    library = home().folder / "lib64" / "libascendcl.so"
    command = [sys.executable, str(script), str(library)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))


def one(operator: str, kind: str, index: int = 0) -> Case:
    spec = SPECS[operator]
    target = Target(product="atlas-a2")
    return next(iter(case_stream(spec, target, kind, seed=3, count=1, first=index))).case  # type: ignore[arg-type]


@needs_compiler
@pytest.mark.parametrize("operator", list(SPECS))
def test_both_programs_find_the_software_device_right(operator: str, tmp_path: Path) -> None:
    facts = facts_of(one(operator, "valid"))
    for result in (run_cpp(facts, tmp_path), run_python(facts, tmp_path)):
        assert result.returncode == 0, result.stdout + result.stderr
        assert result.stdout.endswith("conforms\n")


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


def test_a_trial_of_several_calls_and_a_case_too_large_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="takes several calls"):
        list(write_programs(Trial("law/linear", softmax()), SPECS, {"cpp": tmp_path / "a.cpp"}))
    large = Tensor((300, 300), "FLOAT", data=Data(recipe="normal"))
    case = Case(
        "aclnnSoftmaxBackward", {"gradOutput": large, "output": large, "dim": 1, "out": Tensor((300, 300), "FLOAT")}
    )
    with pytest.raises(UsageError, match="shrink it first"):
        list(write_programs(case, SPECS, {"python": tmp_path / "a.py"}))
    assert list(tmp_path.iterdir()) == []


def test_programs_are_written_where_asked(tmp_path: Path) -> None:
    paths = {"cpp": tmp_path / "x.cpp", "python": tmp_path / "x.py"}
    assert list(write_programs(softmax(), SPECS, paths)) == [*paths.values()]
    assert "aclnnSoftmaxBackwardGetWorkspaceSize" in paths["cpp"].read_text()
    compile(paths["python"].read_text(), "x.py", "exec")
