"""Parts of programs are files that a compiler and a linter read by themselves."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import pytest

from aclnn_cts import repro
from tests.support.programs import needs_compiler

ROOT = Path(repro.__file__).parents[2]
TEMPLATES = Path(repro.__file__).parent / "templates"


@needs_compiler
@pytest.mark.parametrize("header", [path.name for path in sorted(TEMPLATES.glob("*.h"))])
def test_each_header_compiles_alone(header: str, tmp_path: Path) -> None:
    source = tmp_path / "alone.cpp"
    source.write_text(f'#include "{header}"\n', encoding="utf-8")
    includes = [f"-I{TEMPLATES}", f"-I{ROOT / 'adapters/loopback/include'}"]
    command = ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", *includes, str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", [path.name for path in sorted(TEMPLATES.glob("*.py"))])
def test_each_script_is_python_that_python_3_8_reads(name: str) -> None:
    ast.parse((TEMPLATES / name).read_text(encoding="utf-8"), feature_version=(3, 8))
