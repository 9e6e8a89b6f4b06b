from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from aclnn_cts.adapters.loopback_build import Home, build
from aclnn_cts.cli.main import main
from aclnn_cts.core.case import Argument, Case, Data, Tensor
from aclnn_cts.core.case_json import case_to_json
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial, trial_to_json
from aclnn_cts.engine.judges import Judges
from aclnn_cts.engine.plan import Part
from aclnn_cts.engine.promises import PROMISES
from aclnn_cts.engine.repro.cpp import cpp_program
from aclnn_cts.engine.repro.facts import CallsOfTrial, Reproduction, reproduction
from aclnn_cts.engine.repro.python import python_program
from aclnn_cts.engine.repro.write import write_programs
from aclnn_cts.generate.listing import case_stream
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.spec.load import load_specs

SPECS = load_specs()

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")


@cache
def home() -> Home:
    return build()


def facts_of(case: Case) -> Reproduction:
    spec = SPECS[case.operator]
    return reproduction(case, spec, Judges(has_statuses=True).of(spec), sentence="a test")


def built_program(text: str, folder: Path) -> Path:
    """The program, compiled as its first lines say."""
    source, program = folder / "repro.cpp", folder / "repro"
    source.write_text(text)
    options = ["-std=c++17", "-Wall", "-Wextra", "-Werror", f"-I{home().include}", f"-L{home().lib64}"]
    links = ["-lascendcl", "-lnnopbase", "-lopapi", f"-Wl,-rpath,{home().lib64}"]
    subprocess.run(["g++", *options, str(source), *links, "-o", str(program)], check=True)
    return program


def started(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)


def run_cpp(facts: Reproduction, folder: Path) -> subprocess.CompletedProcess[str]:
    return started(built_program(cpp_program(CallsOfTrial.one(facts)), folder))


def run_again(folder: Path) -> subprocess.CompletedProcess[str]:
    """The program that was built there last."""
    return started(folder / "repro")


def run_python(facts: Reproduction, folder: Path) -> subprocess.CompletedProcess[str]:
    script = folder / "repro.py"
    script.write_text(python_program(CallsOfTrial.one(facts)))
    return started(sys.executable, script, home().lib64 / "libascendcl.so")


def one(operator: str, kind: str, index: int = 0) -> Case:
    spec = SPECS[operator]
    target = Target(product="atlas-a2")
    return next(iter(case_stream(spec, target, kind, seed=3, count=1, first=index))).case  # type: ignore[arg-type]  # a kind of case, as text


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
    finite = replace(out.expected, lower=np.zeros(4), upper=np.ones(4), judged=np.ones(4, bool))
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
        "sign",
        "guard-before",
        "guard-after",
        "gap-written",
        "workspace-overrun",
        "input-changed",
        "tail-unwritten",
    ),
    beyond: ("dim-high-accepted", "invalid-as-inner"),
    special: ("nan-to-zero",),
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
def test_a_finding_becomes_programs_through_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = tmp_path / "case.json"
    cases.write_text(json.dumps(case_to_json(softmax())))
    monkeypatch.setenv("ACLNN_LOOPBACK_FAULT", "softmax.sign")
    assert main(["run", "--adapter", "loopback", "--cases", str(cases), "-o", str(tmp_path / "run")]) == 1
    (finding,) = (path for path in (tmp_path / "run" / "failures").iterdir() if path.suffix == ".json")
    assert main(["repro", str(finding), "--language", "cpp,python", "-o", str(tmp_path / "programs")]) == 0
    capsys.readouterr()
    programs = {path.suffix: path for path in (tmp_path / "programs").iterdir()}
    assert set(programs) == {".cpp", ".py"}
    built = built_program(programs[".cpp"].read_text(), tmp_path)
    for fault, code in (("softmax.sign", 1), ("", 0)):
        monkeypatch.setenv("ACLNN_LOOPBACK_FAULT", fault)
        for result in (started(built), started(sys.executable, programs[".py"], home().lib64 / "libascendcl.so")):
            assert result.returncode == code, result.stdout + result.stderr


def law_trial(tmp_path: Path, promise: str) -> Path:
    """The file of a trial that a run would make."""
    spec = SPECS["aclnnSoftmaxBackward"]
    part = Part(spec.operator, promise, "law", first=0, count=1)
    [trial] = PROMISES[promise].trials(part, Sampler(spec, Target(product="atlas-a2")), seed=4)
    path = tmp_path / "trial.json"
    path.write_text(json.dumps(trial_to_json(trial)))
    return path


@needs_compiler
def test_a_law_s_calls_are_made_in_turn_and_the_law_is_left_to_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trial = law_trial(tmp_path, "law/split")
    programs = tmp_path / "programs"
    assert main(["repro", str(trial), "--language", "cpp,python", "-o", str(programs)]) == 0
    said = " ".join(capsys.readouterr().err.split())
    replay = f"aclnn-cts replay {trial} --adapter ADAPTER -v"
    assert "Of a trial of law/split: the program makes its 3 calls in turn, and judges each by itself." in said
    assert "a batch cut in two gives the same results as the whole" in said
    assert said.endswith(f"this judges it: {replay}")
    for name in ("repro.cpp", "repro.py"):
        text = (programs / name).read_text()
        assert "law/split" in text.partition("import" if name.endswith("py") else "#include")[0]
        assert replay in text
    built = built_program((programs / "repro.cpp").read_text(), tmp_path)
    for fault, code in (("softmax.sign", 1), ("", 0)):
        monkeypatch.setenv("ACLNN_LOOPBACK_FAULT", fault)
        for result in (started(built), started(sys.executable, programs / "repro.py", home().lib64 / "libascendcl.so")):
            assert result.returncode == code, result.stdout + result.stderr
            lines = result.stdout.splitlines()
            assert [line for line in lines if line.endswith(" of 3")] == [f"call {n} of 3" for n in (1, 2, 3)]
            last = lines[-1]
            assert last == (
                "FAULT" if code else f"each call conforms by itself; whether the law is kept, this tells: {replay}"
            )


@needs_compiler
def test_one_call_of_a_law_is_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trial = law_trial(tmp_path, "law/split")
    assert main(["repro", str(trial), "--language", "python", "--call", "2", "-o", str(tmp_path / "two.py")]) == 0
    assert "call 2 of its 3 calls" in " ".join(capsys.readouterr().err.split())
    result = started(sys.executable, tmp_path / "two.py", home().lib64 / "libascendcl.so")
    assert (result.returncode, result.stdout.splitlines()[-1]) == (0, "conforms")
    assert main(["repro", str(trial), "--call", "4", "-o", str(tmp_path / "x.cpp")]) == 2
    assert "--call 4: the trial of 'law/split' makes 3 calls" in " ".join(capsys.readouterr().err.split())


def test_equal_calls_of_a_law_are_written_once(tmp_path: Path) -> None:
    trial = law_trial(tmp_path, "law/repeat")
    assert main(["repro", str(trial), "--language", "cpp,python", "-o", str(tmp_path / "out")]) == 0
    text = (tmp_path / "out" / "repro.cpp").read_text()
    assert text.count("namespace call_") == 1
    assert text.count("call_1::Run(stream)") > 1
    script = (tmp_path / "out" / "repro.py").read_text()
    document = json.loads(script.partition('json.loads(r"""')[2].partition('"""')[0])
    assert len(document["calls"]) == 1
    assert len(document["order"]) == text.count("call_1::Run(stream)")


def test_a_finding_of_a_law_names_the_adapter_of_its_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--adapter", "reference", "--product", "atlas-a2", "-o", str(tmp_path / "run")]
    assert main(["run", "--cases", str(law_trial(tmp_path, "law/zero")), *words]) == 0
    failure = tmp_path / "run" / "failures" / "trial.json"
    failure.write_bytes((tmp_path / "trial.json").read_bytes())
    assert main(["repro", str(failure), "--language", "python", "-o", str(tmp_path / "x.py")]) == 0
    assert f"aclnn-cts replay {failure} --adapter reference -v" in " ".join(capsys.readouterr().err.split())


def test_a_life_cycle_has_no_program_and_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trial.json"
    path.write_text(json.dumps(trial_to_json(Trial("life-cycle/cold-warm", softmax()))))
    assert main(["repro", str(path), "-o", str(tmp_path / "x.cpp")]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "'life-cycle/cold-warm' is about a manner of calling" in said
    assert f"aclnn-cts replay {path} --adapter ADAPTER -v calls in that manner" in said
    assert not (tmp_path / "x.cpp").exists()


def test_a_case_too_large_and_a_call_that_is_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--call 2: the trial makes one call"):
        list(write_programs(softmax(), SPECS, {"cpp": tmp_path / "a.cpp"}, call=2))
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


@pytest.mark.parametrize(
    ("library", "said"),
    [
        ("no-such-library.so", "set the toolkit's environment, or name the libraries"),
        ("libm.so.6", "no library has aclrtMalloc"),
    ],
)
def test_a_program_without_its_libraries_says_so_and_not_that_the_fault_is_there(
    tmp_path: Path, library: str, said: str
) -> None:
    script = tmp_path / "repro.py"
    script.write_text(python_program(CallsOfTrial.one(facts_of(one("aclnnSoftmaxBackward", "valid")))))
    done = started(sys.executable, script, library)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
