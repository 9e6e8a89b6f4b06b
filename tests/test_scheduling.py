"""Which tests run in one process, and which `make test` leaves out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from aclnn_cts.authoring.catalogue import family_of
from aclnn_cts.speclang.load import load_specs
from tests.conftest import TOGETHER
from tests.support.targets import products_proven_by_another, proven_by_another

ROOT = Path(__file__).parents[1]


def test_what_runs_together_exists() -> None:
    assert [begin for begin in TOGETHER if not list(ROOT.glob(f"{begin}*"))] == []


def test_a_folder_runs_in_one_process_and_other_tests_in_both(tmp_path: Path) -> None:
    text = (
        "import os, time\nfrom pathlib import Path\nimport pytest\n\n"
        "@pytest.mark.parametrize('number', range(8))\n"
        "def test_it(number):\n    Path(__file__).with_name(f'{os.getpid()}.pid').touch()\n"
    )
    # One process may end all tests before the other has one. So a test waits for the other process, to the time limit.
    wait = (
        "    until = time.monotonic() + 30\n"
        "    while len(list(Path(__file__).parent.glob('*.pid'))) < 2 and time.monotonic() < until:\n"
        "        time.sleep(0.01)\n"
    )
    for name, body in (("tests/reports", text), ("tests/other", text + wait)):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "test_it.py").write_text(body, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n", encoding="utf-8")
    words = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider", "-n", "2", "tests"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list((tmp_path / "tests/reports").glob("*.pid"))) == 1
    assert len(list((tmp_path / "tests/other").glob("*.pid"))) == 2


def test_each_family_is_tested_by_one_operator_on_each_set_of_products_once() -> None:
    specs, proven, products = load_specs(), proven_by_another(), products_proven_by_another()
    tested = [spec for spec in specs.values() if spec.operator not in proven]
    families = [family_of(spec.operator) for spec in tested]
    assert len(families) == len(set(families))
    assert set(families) == {family_of(operator) for operator in specs}
    whole = [
        tuple(spec.products) for spec in tested if not {(spec.operator, item) for item in spec.products} & products
    ]
    assert len(whole) == len(set(whole))
    assert set(whole) == {tuple(spec.products) for spec in tested}
