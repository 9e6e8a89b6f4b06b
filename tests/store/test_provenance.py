"""By what a measurement was made: the checkout's commit, the parts of the harness, and nothing that names a host."""

from __future__ import annotations

import ast
import json
import re
import subprocess
from pathlib import Path

import pytest

from aclnn_cts.store import harness_parts as parts_module
from aclnn_cts.store.harness_parts import differing_parts, harness_parts
from aclnn_cts.store.provenance import Beginning, Checkout, checkout

PERSON = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false")


def git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    for name in ("code.py", "docs/page.md", "benchmarks/figures/power/kill_matrix.json"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("before")
    for words in (["init", "-q"], ["add", "."], [*PERSON, "commit", "-qm", "x"]):
        git(root, *words)
    return root


def test_the_commit_and_whether_the_harness_was_changed_since(repository: Path) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    assert checkout(repository) == Checkout(commit=commit, clean=True)
    (repository / "benchmarks/figures/power/kill_matrix.json").write_text("what is measured")
    (repository / "docs/page.md").write_text("after")
    assert checkout(repository) == Checkout(commit=commit, clean=True)
    (repository / "more.py").write_text("new")
    assert checkout(repository) == Checkout(commit=commit, clean=False)


def test_without_a_checkout_nothing_is_said(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = repository / "venv" / "site-packages"
    installed.mkdir(parents=True)
    assert checkout(installed) is None, "an installed package in somebody's repository"
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert checkout(tmp_path) is None
    monkeypatch.setenv("PATH", "")
    assert checkout(repository) is None


def test_what_it_was_made_by_names_no_host() -> None:
    made = Beginning(["faults", "-o", "a file"]).made_by()
    assert made.command == "aclnn-cts faults -o 'a file'"
    assert made.seconds >= 0
    assert {"machine.cpu", "python.version", "library.numpy"} <= set(made.environment)
    assert not {"machine.name", "python.executable"} & set(made.environment)


ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["-o", f"{ROOT}/reports/x.json"], "-o reports/x.json"),
        (["-o", "/home/somebody/x.json"], "-o x.json"),
        (["-o/home/somebody/x.json"], "-ox.json"),
        (["--output=/home/somebody/x.json"], "--output=x.json"),
        (["--output=~/x.json"], "--output=x.json"),
        (["-o", "../../x.json"], "-o x.json"),
        (["-o", "./reports/x.json"], "-o reports/x.json"),
        (["--adapter", "own:Own,library=/home/somebody/lib.so"], "--adapter own:Own,library=lib.so"),
        (["-o", "reports/x.json", "--seed", "0:1", "--op", "a,b"], "-o reports/x.json --seed 0:1 --op a,b"),
    ],
)
def test_the_command_names_no_folder_of_the_machine(
    words: list[str], command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert Beginning(["faults", *words]).made_by().command == f"aclnn-cts faults {command}"


@pytest.mark.parametrize("folder", ["benchmarks/figures/power", "benchmarks/figures"])
def test_published_measurements_name_no_folder_of_a_machine(folder: str) -> None:
    for file in sorted((ROOT / folder).glob("*.json")):
        document = json.loads(file.read_bytes())
        command = document["command"] if "command" in document else document["made_by"]["command"]
        assert not re.search(r"(^|[\s=])-?[/~]", command), file.name


def test_the_parts_are_what_judges_and_not_what_shows() -> None:
    parts = harness_parts()
    assert set(parts) == {
        "adapters", "core", "execution", "findings", "formula", "generate", "judgement", "oracles", "selftest",
        "sandbox", "software device", "speclang", "specs", "store", "trials", "workers",
    }  # fmt: skip
    found = {path.relative_to(parts_module._PACKAGE).as_posix() for path in parts_module._imported(parts_module._ROOTS)}
    assert {
        "execution/judging.py",
        "trials/checks/equal_calls.py",
        "judgement/bound.py",
        "generate/sampler.py",
        "adapters/cann/adapter.py",
    } <= found
    assert not any(name.startswith(("cli/", "reports/", "bundle/", "runs/", "triage/")) for name in found)


def test_no_import_is_overlooked() -> None:
    for path in parts_module._imported(parts_module._ROOTS):
        parsed = set()
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                parsed |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                parsed |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        own = {name for name in parsed if name.startswith("aclnn_cts")}
        assert own <= set(parts_module._names(path)), path


def test_one_changed_file_makes_another_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("selftest/power.py", "sandbox/child.py", "adapters/cann/adapter.py", "specs/x.yaml", "oracles/x.py"):
        path = tmp_path / "aclnn_cts" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    (tmp_path / "aclnn_cts/selftest/power.py").write_text("def f():\n    from aclnn_cts.judgement import bound\n")
    bound = tmp_path / "aclnn_cts/judgement/bound.py"
    bound.parent.mkdir()
    bound.write_text("x = 1")
    monkeypatch.setattr(parts_module, "_PACKAGE", tmp_path / "aclnn_cts")
    read = harness_parts.__wrapped__  # past the cache
    before = read()
    assert read() == before
    monkeypatch.setattr(parts_module, "harness_parts", read)
    assert differing_parts(before) == ()
    bound.write_text("x = 2")
    (tmp_path / "aclnn_cts/specs/x.yaml").write_text("more")
    assert differing_parts(before) == ("judgement", "specs")
    (tmp_path / "aclnn_cts/oracles/y.py").write_text("")
    assert differing_parts(before) == ("judgement", "oracles", "specs")
