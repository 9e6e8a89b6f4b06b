"""Programs for implementations in Python: they need nothing of ours and call the user's function."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from aclnn_cts.cli.main import main
from aclnn_cts.core.case import Case, Data, Tensor, first_phase
from aclnn_cts.core.case_json import case_to_json
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial, trial_to_json
from aclnn_cts.core.verdict import Result
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.trials.checks.registry import check_by_id
from aclnn_cts.trials.plan import Part
from tests.reports.synthetic import record, softmax_case, synthetic_run
from tests.runs.test_run import softmax
from tests.support.programs import SPECS

LANGUAGES = ("numpy", "torch")
NUMPY = """
def right(gradOutput, output, dim):
    if gradOutput.ndim > 8 or not -gradOutput.ndim <= dim < gradOutput.ndim:
        raise ValueError("dim")
    g, y = gradOutput.astype("float64"), output.astype("float64")
    return (y * (g - (g * y).sum(axis=dim, keepdims=True))).astype(gradOutput.dtype)


def doubled(gradOutput, output, dim):
    return {"out": right(gradOutput, output, dim) * gradOutput.dtype.type(2) + gradOutput.dtype.type(1)}


def lenient(gradOutput, output, dim):
    return gradOutput


def refusing(**arguments):
    raise NotImplementedError("no kernel")


def in_double(gradOutput, output, dim, dtypes):
    return right(gradOutput.astype("float64"), output, dim)


def another_shape(gradOutput, output, dim):
    return right(gradOutput, output, dim)[..., None]


def fewer(gradOutput, output):
    return output


def further(gradOutput, output, dim, eps):
    return output


no_function = 7


def conjugate(gradOutput, output):
    return gradOutput * (output * (1 - output)).conj()


def plain(gradOutput, output):
    return gradOutput * (output * (1 - output))
"""
TORCH = NUMPY.replace('.astype("float64")', ".double()").replace(".astype(gradOutput.dtype)", ".to(gradOutput.dtype)")
TORCH = TORCH.replace("axis=dim, keepdims", "dim=dim, keepdim")
TORCH = TORCH.replace("* gradOutput.dtype.type(2) + gradOutput.dtype.type(1)", "* 2 + 1")


def ran(folder: Path, language: str, item: Case | Trial, function: str) -> subprocess.CompletedProcess[str]:
    """The program of a file, made on the command line and run where nothing of ours can be imported."""
    if language == "torch":
        pytest.importorskip("torch", reason="torch is not installed: pip install 'aclnn-cts[torch]'")
    document = trial_to_json(item) if isinstance(item, Trial) else case_to_json(item)
    file, program = folder / "trial.json", folder / "repro.py"
    file.write_text(json.dumps(document))
    program.unlink(missing_ok=True)
    assert main(["repro", str(file), "--language", language, "-o", str(program)]) == 0
    assert "import aclnn_cts" not in program.read_text()
    (folder / "mine.py").write_text(NUMPY if language == "numpy" else TORCH)
    blocked = "import sys; sys.modules['aclnn_cts'] = None; import runpy; sys.argv = sys.argv[1:]; "
    return subprocess.run(
        [sys.executable, "-c", f"{blocked}runpy.run_path(sys.argv[0], run_name='__main__')", str(program), function],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("function", "code", "said"),
    [
        ("mine:right", 0, "conforms"),
        ("mine.py:right", 0, "conforms"),
        ("mine:doubled", 1, "elements at fault"),
        ("mine:in_double", 1, "out has the dtype "),
        ("mine:refusing", 1, "raised NotImplementedError: no kernel"),
        ("mine:another_shape", 1, "out has the shape [2, 3, 1], expected [2, 3]"),
    ],
)
def test_a_valid_call_is_judged_element_by_element(
    tmp_path: Path, language: str, function: str, code: int, said: str
) -> None:
    case = softmax(2, 3, gradOutput=Tensor((2, 3), "FLOAT", strides=(1, 2), offset=1, storage_shape=(8,),
                                           data=Data(recipe="uniform", seed=3)))  # fmt: skip
    done = ran(tmp_path, language, case, function)
    assert done.returncode == code, done.stdout + done.stderr
    assert said in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("function", "code", "said"), [("conjugate", 0, "conforms"), ("plain", 1, "gradInput[1].im is ")]
)
def test_complex_elements_are_judged_by_component(
    tmp_path: Path, language: str, function: str, code: int, said: str
) -> None:
    g = Tensor((2,), "COMPLEX64", strides=(2,), offset=1, storage_shape=(4,), data=Data(values=(1, 2, -3, 0.5)))
    y = Tensor((2,), "COMPLEX64", data=Data(values=(0.5, 0.0, 2, -1)))
    case = Case("aclnnSigmoidBackward", {"gradOutput": g, "output": y, "gradInput": Tensor((2,), "COMPLEX64")})
    done = ran(tmp_path, language, case, f"mine:{function}")
    assert done.returncode == code, done.stdout + done.stderr
    assert said in done.stdout


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("function", "code"), [("mine:right", 0), ("mine:lenient", 1)])
def test_a_broken_call_must_be_rejected(tmp_path: Path, language: str, function: str, code: int) -> None:
    done = ran(tmp_path, language, softmax(2, 3, dim=5), function)
    assert done.returncode == code, done.stdout + done.stderr
    assert ("must be rejected" in done.stdout) == bool(code)


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_twin_and_a_layout_are_made_with_all_of_their_calls(tmp_path: Path, language: str) -> None:
    twin = {"twin": case_to_json(softmax(2, 3), origin=False)}
    done = ran(tmp_path, language, Trial("status", first_phase(softmax(2, 3, dim=5)), twin), "mine:right")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "call 1: conforms" in done.stdout
    assert "call 2: the function raised ValueError: dim" in done.stdout
    sampler = Sampler(SPECS["aclnnSoftmaxBackward"], Target(product="atlas-a2"))
    part = Part("aclnnSoftmaxBackward", "layout", "layout", count=1)
    [trial] = check_by_id("layout", where="test").trials(part, sampler, seed=1)
    done = ran(tmp_path, language, trial, "mine:right")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "call 2: conforms" in done.stdout


@pytest.mark.parametrize("function", ["mine", "mine:wrong", "nowhere:right", "nowhere.py:right"])
def test_a_function_that_is_not_there_says_nothing_of_the_fault(tmp_path: Path, function: str) -> None:
    done = ran(tmp_path, "numpy", softmax(2, 3), function)
    assert done.returncode == 2
    assert "expected module:function or path/to/file.py:function" in done.stderr


@pytest.mark.parametrize(
    ("function", "said"), [("fewer", "'dim'"), ("further", "'eps'"), ("no_function", "is no function, but int")]
)
@pytest.mark.parametrize("dim", [1, 5])
def test_a_function_with_another_signature_says_nothing_of_the_fault(
    tmp_path: Path, function: str, said: str, dim: int
) -> None:
    """Neither of a call that must succeed nor of one that must be rejected."""
    done = ran(tmp_path, "numpy", softmax(2, 3, dim=dim), f"mine:{function}")
    assert done.returncode == 2, done.stdout + done.stderr
    assert said in done.stderr
    assert "FAULT" not in done.stdout


@pytest.mark.parametrize("language", ["cpp", "python", "numpy"])
def test_equal_elements_are_written_once(tmp_path: Path, language: str) -> None:
    """1,025 ones took 130 KB."""
    sizes = []
    for number in (1, 1025):
        ones = Tensor((number,), "FLOAT", data=Data(recipe="constant", mean=1.0))
        file, program = tmp_path / "case.json", tmp_path / f"repro{number}"
        file.write_text(json.dumps(case_to_json(softmax(number, dim=0, gradOutput=ones, output=ones))))
        assert main(["repro", str(file), "--language", language, "-o", str(program)]) == 0
        sizes.append(program.stat().st_size)
    assert sizes[1] < sizes[0] + 500


def test_a_program_of_a_run_s_finding_is_titled_by_what_fails(tmp_path: Path) -> None:
    wrong = record(softmax_case(), result=Result.FAILED, kind=Fault.VALUE, output="out")
    [file] = (synthetic_run(tmp_path / "run", [wrong]) / "failures").glob("*.json")
    program = tmp_path / "repro.py"
    assert main(["repro", str(file), "--language", "numpy", "-o", str(program)]) == 0
    title = program.read_text().splitlines()[1]
    assert title == '"""aclnnSoftmaxBackward: value of out; a supported call, promised ACLNN_SUCCESS'


def test_several_programs_have_names_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "case.json"
    file.write_text(json.dumps(case_to_json(softmax(2, 3))))
    assert main(["repro", str(file), "--language", "cpp,python,numpy,torch", "-o", str(tmp_path / "all")]) == 0
    names = {path.name for path in (tmp_path / "all").iterdir()}
    assert names == {"repro.cpp", "repro.py", "repro_numpy.py", "repro_torch.py"}
