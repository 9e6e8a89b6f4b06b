"""A tensor that is input and output across the C interface: in calls, and in the programs that reproduce them."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from aclnn_cts.cli.main import main
from aclnn_cts.core.case import Case, Data, Tensor
from aclnn_cts.core.case_json import case_to_json
from aclnn_cts.execution.executor import CallRequest
from aclnn_cts.execution.judging import Judges
from aclnn_cts.repro.cpp import cpp_program
from aclnn_cts.repro.facts import CallSequence, reproduction, steps_of
from aclnn_cts.repro.python import python_program
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.store.run_directory import RunDirectory
from tests.adapters.loopback.support import LIBRARIES, compiler, home, needs_compiler

pytestmark = needs_compiler
FOLDER = Path(__file__).parents[1] / "fixtures" / "inout"


@pytest.fixture(scope="module", name="library")
def make_library(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Builds the operator with options of the compiler, once."""
    return functools.cache(lambda *options: _library(tmp_path_factory.mktemp("library"), *options))


def _library(folder: Path, *options: str) -> Path:
    library = folder / "libdecay.so"
    words = ["-std=c++17", "-shared", "-fPIC", f"-I{FOLDER}", f"-I{home().include}", *options, "-o", str(library)]
    subprocess.run([compiler(), *words, str(FOLDER / "decay_grad.cpp"), *_links()], check=True)
    return library


def _links() -> list[str]:
    return [f"-L{home().lib64}", *LIBRARIES, f"-Wl,-rpath,{home().lib64}"]


def _case(*, strided: bool) -> Case:
    data = Data(recipe="integers", seed=3, low=1, high=9)
    view = {"strides": (8, 2), "storage_shape": (3, 8)} if strided else {}
    total = Tensor((3, 4), "FLOAT", data=Data(recipe="integers", seed=4, low=1, high=9), **view)  # type: ignore[arg-type]
    return Case("aclnnDecayGrad", {"grad": Tensor((3, 4), "FLOAT", data=data), "total": total, "decay": 0.5})


@pytest.mark.parametrize(("options", "code"), [((), 0), (("-DWITHOUT_FORMER",), 1)])
def test_its_contents_reach_the_device_and_its_result_comes_back(
    options: tuple[str, ...], code: int, tmp_path: Path, library: Callable[..., Path]
) -> None:
    libraries = [str(home().lib64 / name) for name in ("libascendcl.so", "libnnopbase.so", "libopapi.so")]
    word = f"cann:library={','.join([*libraries, str(library(*options))])}"
    cases = tmp_path / "cases.jsonl"
    cases.write_text("".join(json.dumps(case_to_json(_case(strided=strided))) + "\n" for strided in (False, True)))
    words = ["run", "--adapter", word, "--specs", str(FOLDER), "--cases", str(cases), "-o", str(tmp_path / "run")]
    assert main(words) == code
    with RunDirectory(tmp_path / "run").results() as results:
        records = list(results.records())
    assert [record.verdict.kind for record in records] == ["value" if code else ""] * 2
    assert {item.output for record in records for item in record.verdict.deviations} == {"total"}


@pytest.mark.parametrize("strided", [False, True])
def test_programs_give_it_contents_and_compare_it(
    tmp_path: Path, library: Callable[..., Path], *, strided: bool
) -> None:
    case = _case(strided=strided)
    spec = load_specs([FOLDER])["aclnnDecayGrad"]
    facts = reproduction(case, spec, Judges(has_statuses=True, spec_folders=(FOLDER,)).of(spec), sentence="a test")
    program = CallSequence(calls=(facts,), steps=steps_of([CallRequest(case)], [0]), outputs=spec.outputs)
    (tmp_path / "repro.cpp").write_text(cpp_program(program))
    (tmp_path / "repro.py").write_text(python_program(program))
    for options, code in ((), 0), (("-DWITHOUT_FORMER",), 1):
        operator = library(*options)
        built = [compiler(), "-std=c++17", "-Wall", "-Wextra", "-Werror", f"-I{FOLDER}", f"-I{home().include}"]
        subprocess.run(
            [*built, str(tmp_path / "repro.cpp"), str(operator), *_links(), "-o", str(tmp_path / "repro")], check=True
        )
        runtime = home().lib64 / "libascendcl.so"
        for words in ([tmp_path / "repro"], [sys.executable, tmp_path / "repro.py", runtime, operator]):
            done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
            assert done.returncode == code, done.stdout + done.stderr
