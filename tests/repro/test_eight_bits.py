"""Programs for calls with 8-bit floats: what they make of each code is what the harness makes of it."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from aclnn_cts import repro
from aclnn_cts.cli.main import main
from aclnn_cts.core.case import Case, Data, Tensor
from aclnn_cts.core.case_json import case_to_json
from aclnn_cts.core.dtypes import DTYPES, FLOAT8, numpy_dtype
from aclnn_cts.core.rounding import widen
from aclnn_cts.core.target import Target
from tests.support.programs import needs_compiler

ROOT = Path(repro.__file__).parents[2]
SPECS = ROOT / "tests" / "fixtures" / "hifloat8"
EVERY = np.arange(256, dtype=np.uint8)
CASE = Case(
    "aclnnHalvedGrad",
    {
        "grad": Tensor((2, 2), "HIFLOAT8", data=Data(values=(1.0, -3.0, 0.25, 6.0))),
        "factor": Tensor((2, 2), "HIFLOAT8", data=Data(values=(2.0, 5.0, 0.5, 2.0**-22))),
        "gradX": Tensor((2, 2), "HIFLOAT8"),
    },
    target=Target(product="ascend-950"),
)
MINE = f"""
import numpy as np

NUMBERS = np.frombuffer(bytes.fromhex("{widen(EVERY.view(numpy_dtype("HIFLOAT8"))).tobytes().hex()}"))
FINITE = np.where(np.isfinite(NUMBERS), NUMBERS, 1e300)


def right(grad, factor):
    values = NUMBERS[grad.view("u1")] * NUMBERS[factor.view("u1")] / 2
    return np.abs(values[..., None] - FINITE).argmin(axis=-1).astype("u1").view("V1")


def wrong(grad, factor):
    return grad


def numbers(grad, factor):
    return np.zeros(grad.shape)
"""


def program(folder: Path, *options: str) -> Path:
    file, script = folder / "case.json", folder / "repro.py"
    file.write_text(json.dumps(case_to_json(CASE)))
    assert main(["repro", str(file), "--specs", str(SPECS), *options, "-o", str(script)]) == 0
    return script


@pytest.mark.parametrize(
    ("function", "code", "said"),
    [("right", 0, "conforms"), ("wrong", 1, "elements at fault"), ("numbers", 2, "return HIFLOAT8 as its codes")],
)
def test_a_function_takes_and_returns_codes(tmp_path: Path, function: str, code: int, said: str) -> None:
    script = program(tmp_path, "--language", "numpy")
    (tmp_path / "mine.py").write_text(MINE)
    command = [sys.executable, str(script), f"mine.py:{function}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == code, done.stdout + done.stderr
    assert said in done.stdout + done.stderr


def test_a_script_for_a_library_reads_each_code(tmp_path: Path) -> None:
    text, _ = program(tmp_path, "--language", "python").read_text().rsplit("\ntry:\n    main()", 1)
    (tmp_path / "functions.py").write_text(text)
    script = runpy.run_path(str(tmp_path / "functions.py"))
    value = next(item["value"] for item in script["PROGRAM"]["calls"][0]["parameters"] if item["name"] == "gradX")
    assert np.array_equal(
        script["decode"](EVERY.tobytes(), value), widen(EVERY.view(numpy_dtype("HIFLOAT8"))), equal_nan=True
    )


@needs_compiler
def test_a_program_in_cpp_reads_each_code(tmp_path: Path) -> None:
    source, binary = tmp_path / "read.cpp", tmp_path / "read"
    codes = " ".join(f"{DTYPES[name].value}," for name in sorted(FLOAT8))
    source.write_text(
        '#include "prelude.h"\n'
        f"int main() {{ for (int dtype : {{{codes}}}) for (int code = 0; code < 256; ++code) {{\n"
        "  uint8_t bits = static_cast<uint8_t>(code);\n"
        '  std::printf("%a\\n", ReadElement(&bits, dtype)); } }\n'
    )
    includes = [f"-I{Path(repro.__file__).parent / 'templates'}", f"-I{ROOT / 'adapters/loopback/include'}"]
    subprocess.run(["g++", "-std=c++17", *includes, str(source), "-o", str(binary)], check=True)
    said = subprocess.run([str(binary)], capture_output=True, text=True, check=True).stdout.split()
    numbers = np.concatenate([widen(EVERY.view(numpy_dtype(name))) for name in sorted(FLOAT8)])
    got = np.array([float(word) if word.endswith(("nan", "inf")) else float.fromhex(word) for word in said])
    assert np.array_equal(got, numbers, equal_nan=True)
