"""The wheel: small, and without what authors alone need."""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path

import pytest

from aclnn_cts.cli.ops import completeness_of
from aclnn_cts.speclang.load import load_specs
from tools.release_check import MOST_BYTES


@pytest.mark.slow
def test_a_wheel_is_small_with_built_specs_and_without_what_is_for_authors(wheels: Path) -> None:
    [wheel] = wheels.glob("*.whl")
    assert wheel.stat().st_size <= MOST_BYTES
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert not [name for name in names if "/claims/" in name or name.endswith("/catalogue.json")]
    built = {Path(name).stem for name in names if name.endswith(".msgpack")}
    assert built >= {spec.stem for spec in load_specs().values()}


@pytest.mark.slow
def test_ops_of_a_wheel_lists_the_same_operators_as_complete(python: Path, tmp_path: Path) -> None:
    words = (str(python), "-m", "aclnn_cts", "ops", "--json")
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    listed = {entry["operator"]: entry["status"] for entry in map(json.loads, done.stdout.splitlines())}
    here = {name: completeness_of(spec) for name, spec in load_specs().items()}
    assert listed == {name: "complete" if found.is_complete else "partial" for name, found in here.items()}


@pytest.mark.slow
def test_an_audit_of_a_wheel_without_named_operators_is_refused(python: Path, tmp_path: Path) -> None:
    words = (str(python), "-m", "aclnn_cts", "spec", "audit", "--documents", str(tmp_path))
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no operator has a claims file" in done.stderr
