"""Programs of trials, built and run on the software device."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from aclnn_cts.adapters.loopback_build import BuildFolder, build
from aclnn_cts.core.case import Case
from aclnn_cts.core.target import Target
from aclnn_cts.execution.executor import CallRequest
from aclnn_cts.execution.judging import Judges
from aclnn_cts.generate.listing import Kind, list_cases
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.repro.cpp import cpp_program
from aclnn_cts.repro.facts import MAX_ELEMENTS, CallSequence, Reproduction, reproduction, steps_of
from aclnn_cts.repro.python import python_program
from aclnn_cts.speclang.load import load_specs

SPECS = load_specs()
_HEADERS = Path(__file__).parents[2] / "adapters" / "loopback" / "include"
_DECLARED = "".join(path.read_text(encoding="utf-8") for path in sorted(_HEADERS.glob("aclnnop/*.h")))
OFFERED = [operator for operator in SPECS if f"{operator}GetWorkspaceSize" in _DECLARED]
"""The operators of the software device."""

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")


@cache
def home() -> BuildFolder:
    return build()


def facts_of(case: Case) -> Reproduction:
    spec = SPECS[case.operator]
    return reproduction(case, spec, Judges(has_statuses=True).of(spec), sentence="a test")


def program_of(facts: Reproduction) -> CallSequence:
    return CallSequence(calls=(facts,), steps=steps_of([CallRequest(facts.case)], [0]))


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
    return started(built_program(cpp_program(program_of(facts)), folder))


def run_again(folder: Path) -> subprocess.CompletedProcess[str]:
    """The program that was built there last."""
    return started(folder / "repro")


def run_python(facts: Reproduction, folder: Path) -> subprocess.CompletedProcess[str]:
    return run_script(python_program(program_of(facts)), folder)


def run_script(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    script = folder / "repro.py"
    script.write_text(text)
    return started(sys.executable, script, home().lib64 / "libascendcl.so")


def one(operator: str, kind: Kind) -> Case:
    sampler = Sampler(SPECS[operator], Target(product="atlas-a2"))
    cases = list_cases(sampler, kind, seed=3, count=8, unproved=Counter())
    return next(case for case in cases if sum(tensor.numel for _, tensor in case.tensors()) <= MAX_ELEMENTS)
