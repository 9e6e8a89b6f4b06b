"""The snippets of docs/ci.md are green as pasted: their shell lines run here, on a wheel that is built here.

Three things are substituted. The packages installed here are on PYTHONPATH, so that pip has every dependency and
downloads nothing. Images and actions are not run: a virtual environment stands in for the image's Python. The gate is
narrowed to a few tests of one operator: `make test` runs all of them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml

from aclnn_cts.cli.main import main
from aclnn_cts.findings.waivers.file import Waiver, read_waivers, shipped_waivers
from aclnn_cts.findings.waivers.matching import admits_version
from aclnn_cts.pip_constraints import CONSTRAINTS
from aclnn_cts.speclang.load import load_specs
from tests.docs.test_pages import ROOT, blocks
from tests.support.processes import done

PAGE = ROOT / "docs" / "ci.md"


def hook(name: str) -> dict[str, Any]:
    """The hook of ours that other repositories use, or the one of this repository."""
    content = yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))
    hooks = content["repos"][0]["hooks"] if isinstance(content, dict) else content
    [found] = [item for item in hooks if item["id"].endswith("spec-lint")]
    assert isinstance(found, dict)
    return found


def run_hook(found: Mapping[str, Any], files: Sequence[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit code of a hook on the files that its pattern takes, and what it says."""
    command = found["entry"].split()
    assert Path(command[0]).name == "aclnn-cts"
    code = main([*command[1:], *(file for file in files if re.search(found["files"], file))])
    return code, capsys.readouterr().err


def test_the_pre_commit_hook_lints_the_specs_of_operators_alone(capsys: pytest.CaptureFixture[str]) -> None:
    found = hook(".pre-commit-hooks.yaml")
    every = [path.relative_to(ROOT).as_posix() for path in (ROOT / "specs").rglob("*.yaml")]
    chosen = {file for file in every if re.search(found["files"], file)}
    assert all(file.count("/") == 1 for file in chosen)
    assert chosen >= {f"specs/{spec.stem}.yaml" for spec in load_specs().values()}
    few = ["specs/wording.yaml", "specs/precision.yaml", "specs/products.yaml", "specs/tanh_backward.yaml"]
    assert run_hook(found, few, capsys) == (0, "no mistake in 1 operator file: tanh_backward\n")
    assert run_hook(found, few[:3], capsys) == (0, "no spec file of an operator among 3 files\n")
    of_edition = "specs/editions/public/softmax_backward.yaml"
    own = run_hook(hook(".pre-commit-config.yaml"), [*few, of_edition, "specs/families/softmax.yaml"], capsys)
    assert own == (0, "no mistake in 2 operator files: tanh_backward, softmax_backward (public)\n")


def test_the_hook_of_another_repository_finds_mistakes_in_specs_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "specs").mkdir()
    spec = (ROOT / "specs" / "tanh_backward.yaml").read_text(encoding="utf-8")
    (tmp_path / "specs" / "mine.yaml").write_text(spec.replace("operator:", "operator: [", 1), encoding="utf-8")
    (tmp_path / "specs" / "openapi.yaml").write_text("openapi: 3.1.0\npaths: {}\n", encoding="utf-8")
    (tmp_path / "specs" / "template.yaml").write_text("{% raw %}\n", encoding="utf-8")
    code, said = run_hook(hook(".pre-commit-hooks.yaml"), ["specs/mine.yaml", "specs/openapi.yaml"], capsys)
    assert (code, said) == (1, "1 mistake\n")
    found = run_hook(hook(".pre-commit-hooks.yaml"), ["specs/openapi.yaml", "specs/template.yaml"], capsys)
    assert found == (0, "no spec file of an operator among 2 files\n")


NARROWED = "--aclnn-op softmax_backward -k 'pinned or examples'"
SCHEMAS = {"github": "vendor.github-workflows", "gitlab": "vendor.gitlab-ci"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """What one CI system would run, in its shell."""

    scripts: tuple[str, ...]
    """Each in a shell of its own."""
    interpreter: tuple[str, ...]


def documents() -> dict[str, str]:
    """The text of each snippet, by CI system."""
    github, _, gitlab = blocks(PAGE, "yaml")
    [jenkins] = blocks(PAGE, "groovy")
    [shell] = blocks(PAGE, "sh")
    return {"github": github, "gitlab": gitlab, "jenkins": jenkins, "shell": shell}


def github_job() -> dict[str, Any]:
    [job] = yaml.safe_load(documents()["github"])["jobs"].values()
    assert isinstance(job, dict)
    return job


def snippet(name: str) -> Snippet:
    text = documents()[name]
    if name == "github":
        job = github_job()
        scripts = tuple(step["run"] for step in job["steps"] if "run" in step)
        return Snippet(scripts=scripts, interpreter=("bash", "-e"))
    if name == "gitlab":
        [job] = yaml.safe_load(text).values()
        return Snippet(scripts=("\n".join(job["script"]),), interpreter=("sh", "-e"))
    if name == "jenkins":
        [script] = re.findall(r"sh '''(.*?)'''", text, re.DOTALL)
        return Snippet(scripts=(script,), interpreter=("sh", "-xe"))
    return Snippet(scripts=(text,), interpreter=("sh",))


@pytest.fixture(name="image")
def make_python(tmp_path: Path, installed: Path) -> dict[str, str]:
    """The environment of a shell on a machine whose `python` has pip and this machine's packages."""
    venv.create(tmp_path / "image", with_pip=False)
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PIP_", "PYTEST_", "PYTHON"))}
    return kept | {
        "PATH": f"{tmp_path / 'image' / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(installed),
        "PIP_NO_INDEX": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PYTEST_ADDOPTS": NARROWED,
    }


@pytest.mark.parametrize(("one", "other", "number"), [("github", "gitlab", 3), ("shell", "jenkins", 4)])
def test_two_systems_run_the_same_lines(one: str, other: str, number: int) -> None:
    ours, theirs = (
        [line.strip() for script in snippet(name).scripts for line in script.split("\n") if " -m " in line]
        for name in (one, other)
    )
    assert ours == theirs
    assert len(ours) == number


@pytest.mark.parametrize("name", ["docs/ci.md", "README.md", "CONTRIBUTING.md", "Makefile", ".ci/run"])
def test_no_setting_of_pip_replaces_one_of_the_user_s(name: str) -> None:
    """A variable replaces a list that the user has set; the option of the same name adds to it."""
    assert re.findall(r"\bPIP_\w+ ?[=:]", (ROOT / name).read_text(encoding="utf-8")) == []


@pytest.mark.slow
# Of two systems with the same lines one is run.
@pytest.mark.parametrize("name", ["github", "shell"])
def test_a_snippet_is_green_as_pasted(name: str, tmp_path: Path, wheels: Path, image: Mapping[str, str]) -> None:
    pytest.importorskip("torch", reason="torch is not installed: pip install 'aclnn-cts[torch]'")
    checkout = tmp_path / "theirs"
    shutil.copytree(wheels, checkout / "wheels")
    wanted = snippet(name)
    shown = "".join(done([*wanted.interpreter, "-c", script], checkout, image) for script in wanted.scripts)
    [wheel] = (checkout / "wheels").iterdir()
    assert f"Processing ./wheels/{wheel.name}" in shown, "it is installed from the wheel, not from a checkout"
    assert " ignored: " not in shown
    [suite] = ET.parse(checkout / "gate.xml").getroot().iter("testsuite")
    assert (suite.attrib["failures"], suite.attrib["errors"]) == ("0", "0")
    assert int(suite.attrib["tests"]) - int(suite.attrib["skipped"]) >= 2, "pinned cases and the examples"


@pytest.mark.slow
def test_a_snippet_is_red_on_a_failure_and_keeps_the_findings(
    tmp_path: Path, wheels: Path, image: Mapping[str, str]
) -> None:
    checkout = tmp_path / "theirs"
    shutil.copytree(wheels, checkout / "wheels")
    shutil.copy(ROOT / "tests" / "plugin" / "wrong.py", checkout)
    [script] = snippet("shell").scripts
    wrong = script.replace("--aclnn-adapter torch", "--aclnn-adapter wrong:Wrong,fault=value").replace(
        "aclnn-cts[torch]", "aclnn-cts"
    )
    assert wrong.count("wrong") == 1
    narrowed = {"PYTEST_ADDOPTS": "--aclnn-op softmax_backward -k boundaries"}
    shown = done(["sh", "-c", wrong], checkout, {**image, **narrowed}, code=1)
    assert "FAILED" in shown
    assert list((checkout / "findings").iterdir())
    [suite] = ET.parse(checkout / "gate.xml").getroot().iter("testsuite")
    assert suite.attrib["failures"] == "1"


def action_steps(**given: str) -> list[tuple[str, dict[str, str]]]:
    """The scripts of `action.yml` and their variables, with these inputs."""
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    inputs = {name: given.get(name, entry.get("default", "")) for name, entry in action["inputs"].items()}
    assert set(given) <= set(inputs)

    def filled(text: str) -> str:
        return re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda found: inputs[found[1]], text)

    return [
        (step["run"], {name: filled(text) for name, text in step["env"].items()}) for step in action["runs"]["steps"]
    ]


def test_the_action_keeps_the_schema_of_github(tmp_path: Path) -> None:
    pytest.importorskip("check_jsonschema", reason="check-jsonschema is not installed: pip install 'aclnn-cts[dev]'")
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-actions"]
    done([*check, str(ROOT / "action.yml")], tmp_path)


def test_no_input_of_the_action_is_pasted_into_a_script() -> None:
    """It would be run as code."""
    assert [script for script, _ in action_steps() if "${{" in script] == []


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "code"), [("none", 0), ("value", 1)])
def test_the_action_tests_an_adapter(
    fault: str, code: int, tmp_path: Path, wheels: Path, image: Mapping[str, str]
) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    shutil.copy(ROOT / "tests" / "plugin" / "wrong.py", theirs)
    adapter = "reference" if fault == "none" else f"wrong:Wrong,fault={fault}"
    install, test = action_steps(
        adapter=adapter, op="softmax_backward", shard="1/2", product="atlas-a2", sarif="gate.sarif"
    )
    # What builds is installed here; pip would fetch it.
    variables = {**install[1], "SOURCE": str(wheels.parent), "PIP_NO_BUILD_ISOLATION": "0"}
    done(["bash", "-e", "-c", install[0]], theirs, {**image, **variables})
    shown = done(["bash", "-e", "-c", test[0]], theirs, {**image, **test[1], "PYTEST_ADDOPTS": ""}, code=code)
    assert "deselected" in shown
    assert (theirs / "aclnn-cts.xml").is_file()
    assert bool(list((theirs / "findings").glob("*.json"))) == bool(code)
    [results] = [run["results"] for run in json.loads((theirs / "gate.sarif").read_text(encoding="utf-8"))["runs"]]
    assert len(results) == code
    # What it leaves is the baseline of the next one, with a finding or without.
    _, (script, variables) = action_steps(adapter=adapter, op="softmax_backward", shard="1/2", baseline="findings")
    done(["bash", "-e", "-c", script], theirs, {**image, **variables, "PYTEST_ADDOPTS": ""})


def torch_waivers() -> list[Waiver]:
    found = [waiver for waiver in read_waivers(shipped_waivers()) if waiver.id.startswith("torch-cpu.")]
    assert found
    return found


def test_waivers_cover_the_torch_that_the_constraints_install() -> None:
    [pin] = re.findall(r"^torch==(\S+)$", CONSTRAINTS.read_text(encoding="utf-8"), re.MULTILINE)
    assert [waiver.id for waiver in torch_waivers() if not admits_version(waiver, pin)] == []


@pytest.mark.parametrize("name", SCHEMAS)
def test_yaml_keeps_the_schema_of_its_system(name: str, tmp_path: Path) -> None:
    pytest.importorskip("check_jsonschema", reason="check-jsonschema is not installed: pip install 'aclnn-cts[dev]'")
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", SCHEMAS[name]]
    text = documents()[name]
    (tmp_path / "right.yml").write_text(text, encoding="utf-8")
    (tmp_path / "wrong.yml").write_text(re.sub(r"steps:|script:", "stpes:", text), encoding="utf-8")
    done([*check, "right.yml"], tmp_path)
    assert "stpes" in done([*check, "wrong.yml"], tmp_path, code=1)


def test_the_workflow_checks_out_the_repository_that_holds_the_wheel() -> None:
    first, second, *_ = github_job()["steps"]
    assert first["uses"].startswith("actions/checkout@")
    assert second["uses"].startswith("actions/setup-python@")


def test_the_constraints_of_the_package_are_those_of_the_checkout() -> None:
    assert CONSTRAINTS.read_bytes() == (ROOT / "constraints.txt").read_bytes()


@pytest.mark.slow
def test_the_constraints_of_a_wheel_are_those_of_the_checkout(wheels: Path, tmp_path: Path) -> None:
    [wheel] = wheels.iterdir()
    shutil.unpack_archive(wheel, tmp_path, "zip")
    # Before anything else is installed, and far from the checkout.
    printed = done([sys.executable, "-S", "-E", "-m", "aclnn_cts.pip_constraints"], tmp_path).strip()
    assert Path(printed) == tmp_path / "aclnn_cts" / "constraints.txt"
    assert Path(printed).read_bytes() == CONSTRAINTS.read_bytes()
