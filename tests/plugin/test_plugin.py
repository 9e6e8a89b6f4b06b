"""The gate as its users have it: pytest in a folder of its own, on a software implementation."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from aclnn_cts.cli.main import main
from aclnn_cts.core.case import Argument, Case, Data, Tensor
from aclnn_cts.core.case_json import case_to_json
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.store.case_files import read_case_file
from tests.reports.test_formats import SARIF

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
USAGE, NO_VERDICT = 4, 3
EXPIRY = "2999-12-31"
WAIVERS = f"""\
subject: an implementation that is wrong on purpose
waivers:
  - id: wrong.fourth-column
    scope: {{adapter: "wrong:Wrong", operator: aclnnSoftmaxBackward, kind: [value, beyond-model]}}
    reason: it adds to the fourth element of a row
    owner: nobody
    expiry: {EXPIRY}
"""

Run = Callable[..., pytest.RunResult]


@pytest.fixture
def gate(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Call pytest on the installed suites, from a folder that holds nothing but an adapter."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("CI", "true")  # where pytest cuts nothing short
    pytester.makepyfile(wrong=(Path(__file__).parent / "wrong.py").read_text(encoding="utf-8"))

    pytester.syspathinsert()

    def call(*arguments: str, workers: str = "") -> pytest.RunResult:
        """`workers`: how many processes a process of its own asks xdist for; empty: all is done in this process."""
        words = ("-p", "aclnn_cts.plugin", "--pyargs", "aclnn_cts.suites", *arguments)
        if not workers:
            return pytester.runpytest_inprocess(*words)
        return pytester.runpytest_subprocess(*words, "-n", workers)

    return call


def ended(result: pytest.RunResult, code: int, *lines: str) -> str:
    """The exit code and lines that must stand in the output; no traceback in any case. All that was printed."""
    shown = result.stdout.str() + result.stderr.str()
    assert result.ret == code, shown
    for line in lines:
        assert line in shown
    assert "Traceback" not in shown
    assert "INTERNALERROR" not in shown
    return shown


def test_there_is_one_test_for_each_check_and_operator(gate: Run) -> None:
    result = gate(
        "--aclnn-adapter", "reference", "--collect-only", "-q", "--aclnn-op", "softmax_backward,aclnnConvTbcBackward"
    )
    shown = ended(result, 0)
    ids = {line.rpartition("::")[2] for line in shown.splitlines() if "::" in line}
    for name in ("SoftmaxBackward", "ConvTbcBackward"):
        for suite in ("examples", "boundaries", "statuses", "memory", "precision", "values"):
            assert f"test_{suite}[{name}]" in ids
    assert {"test_determinism[SoftmaxBackward]", "test_layouts[ConvTbcBackward]"} <= ids
    assert all("SoftmaxBackward" in name or "ConvTbcBackward" in name for name in ids)


@pytest.mark.slow
def test_a_selection_on_two_processes_with_a_junit_file(gate: Run, pytester: pytest.Pytester) -> None:
    options = ("--aclnn-op", "softmax_backward", "--aclnn-op", "conv_tbc_backward", "--junitxml=j.xml", "-rs")
    product = ("--aclnn-product", "atlas-inference")
    result = gate("--aclnn-adapter", "reference", *product, "-k", "values or memory", *options, workers="2")
    shown = ended(result, 0, "2 passed, 2 skipped", "aclnnConvTbcBackward: atlas-inference is not supported")
    assert re.search(r"trials: \d{3} passed, 0 failed \(0 of these waived\), 0 errors; skipped: .*2 product not", shown)
    assert "verdict of the selected tests: conforms" in shown
    cases = ET.parse(pytester.path / "j.xml").getroot().iter("testcase")
    skipped = {case.get("name"): case.find("skipped") is not None for case in cases}
    assert skipped == {
        f"test_{suite}[{name}]": name == "ConvTbcBackward"
        for suite in ("values", "memory")
        for name in ("SoftmaxBackward", "ConvTbcBackward")
    }


@pytest.mark.slow
def test_a_wrong_value_is_shrunk_told_and_replayed_and_can_be_waived(gate: Run, pytester: pytest.Pytester) -> None:
    options = (
        "--aclnn-adapter",
        "wrong:Wrong,fault=value",
        "--aclnn-op",
        "softmax_backward",
        "--aclnn-failures",
        "found",
    )
    result = gate(*options, "-k", "values or memory")
    shown = ended(result, 1, "2 failed", "FAILED", "test_values[SoftmaxBackward]", "test_memory[SoftmaxBackward]")
    for line in (
        r"SoftmaxBackward: value of out, .*\(\d+ trials\); an element is wrong",
        r"aclnnSoftmaxBackward, check values, atlas-a2: failed",
        r"gradOutput +FLOAT",
        r"promised: ACLNN_SUCCESS, as the case holds every constraint",
        r"out: \d+ of \d+ beyond the bound, \d+ open; worst out\[.*3\]: got \S+, expected \S+, bound \S+,",
    ):
        assert re.search(line, shown), shown
    commands = re.findall(r"^replay: aclnn-cts (.+)$", shown, re.MULTILINE)
    shrunk = [trial for trial in map(_trial, commands) if trial.case.origin.source == "hypothesis"]
    # Both tests show one finding, whose file holds its smallest trial.
    assert {_shape(trial) for trial in shrunk} == {(4,)}
    # Whatever the dtype and mode, the wrong element is one finding.
    of_values = re.split(r"^_+ test_(?=\w+\[)", shown, flags=re.MULTILINE)[-1]
    assert of_values.startswith("values")
    assert len(re.findall(r"^SoftmaxBackward: value of out, .*\(\d+ trials\);", of_values, re.MULTILINE)) == 1

    again = subprocess.run(
        [sys.executable, "-m", "aclnn_cts", *shlex.split(commands[0])],
        cwd=pytester.path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert again.returncode == 1, again.stderr
    assert re.search(r"RESULT verdict=fails judged=100% cases=1 passed=0 failed=1 ", again.stdout)

    (pytester.path / "own.yaml").write_text(WAIVERS, encoding="utf-8")
    result = gate(*options, "-k", "values or memory", "--lf", "--aclnn-waivers", "own.yaml")
    shown = ended(result, 0, "2 passed")
    waived = re.search(r"trials: \d+ passed, (\d+) failed \((\d+) of these waived\)", shown)
    assert waived is not None
    assert waived[1] == waived[2] != "0"
    assert f"waived by wrong.fourth-column: {waived[1]}" in shown

    (pytester.path / "own.yaml").write_text(WAIVERS.replace(EXPIRY, "2020-01-01"), encoding="utf-8")
    result = gate(*options, "-k", "memory", "--aclnn-waivers", "own.yaml")
    ended(result, 1, "waiver wrong.fourth-column expired on 2020-01-01")


def _pinning(folder: Path, name: str, size: int, more: str = "") -> str:
    bare = Tensor((size,), "FLOAT")
    given = Tensor((size,), "FLOAT", data=Data(recipe="zeros"))
    arguments: dict[str, Argument] = {"gradOutput": given, "output": given, "dim": 0, "out": bare}
    case = Case("aclnnSoftmaxBackward", arguments, Target(product="atlas-a2"))
    (folder / f"{name}.json").write_text(json.dumps(case_to_json(case)), encoding="utf-8")
    kinds = "[value, value beyond the assumed model]"
    return (
        f'  - {{id: {name}, scope: {{adapter: "wrong:Wrong", operator: aclnnSoftmaxBackward, kind: {kinds}{more}}}, '
        f"reason: it is wrong, owner: nobody, expiry: {EXPIRY}, cases: [{name}.json]}}\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["", "2"])
def test_pinned_cases_are_tests_that_come_first(gate: Run, pytester: pytest.Pytester, workers: str) -> None:
    waivers = [
        _pinning(pytester.path, "needed", 4),
        _pinning(pytester.path, "mended", 3),
        _pinning(pytester.path, "elsewhere", 5, ', version: ">=9"'),
    ]
    (pytester.path / "own.yaml").write_text("subject: s\nwaivers:\n" + "".join(waivers), encoding="utf-8")
    options = (
        "--aclnn-adapter",
        "wrong:Wrong,fault=value",
        "--aclnn-op",
        "softmax_backward",
        "--aclnn-waivers",
        "own.yaml",
    )
    result = gate(*options, "-k", "pinned or examples", "-rs", "-v", workers=workers)
    shown = ended(
        result,
        0,
        "3 passed, 1 skipped",
        "its waiver does not cover wrong:Wrong,fault=value",
        "\n1 waiver ignored: wrong:Wrong names no version, expected >=9\n",
        "waived by needed: 1",
        "waiver mended: its pinned cases pass now; remove it",
    )
    assert "waiver needed: " not in shown
    if not workers:
        order = re.findall(r"(test_\w+\[[\w.-]+\]) (?:PASSED|FAILED|SKIPPED)", shown)
        assert order == [
            "test_pinned[SoftmaxBackward-needed-1]",
            "test_pinned[SoftmaxBackward-mended-1]",
            "test_pinned[SoftmaxBackward-elsewhere-1]",
            "test_examples[SoftmaxBackward]",
        ]
    # Without such waivers there is no such test.
    ended(gate(*options[:4], "-k", "pinned"), pytest.ExitCode.NO_TESTS_COLLECTED)


def _trial(command: str) -> Trial:
    (entry,) = read_case_file(Path(shlex.split(command)[1]))
    assert isinstance(entry.content, Trial)
    return entry.content


def _shape(trial: Trial) -> tuple[int, ...]:
    tensor = trial.case.arguments["out"]
    assert isinstance(tensor, Tensor)
    return tensor.shape


@pytest.mark.slow
def test_a_wrong_status_is_told_with_constraint_and_clause(gate: Run) -> None:
    result = gate("--aclnn-adapter", "wrong:Wrong,fault=status", "--aclnn-op", "softmax_backward", "-k", "statuses")
    shown = ended(result, 1, "1 failed")
    for line in (
        r"aclnnSoftmaxBackward, check status, atlas-a2: failed",
        r"gradOutput +null pointer",
        r"promised: ACLNN_ERR_PARAM_NULLPTR \(listed\)",
        r"broken: gradOutput\.null: ",
        r"clause [a-zA-Z.0-9]+: \w+",
        r"ACLNN_ERR_PARAM_INVALID",
    ):
        assert re.search(line, shown), shown
    files = re.findall(r"^replay: aclnn-cts replay (\S+) --adapter wrong:Wrong,fault=status -v$", shown, re.MULTILINE)
    # Every rule is a finding of its own.
    rules = ["gradOutput.null", "out.null", "output.null"]
    assert sorted(re.findall(r"aclnnSoftmaxBackward-(\S+)-status-", " ".join(files))) == rules
    assert Path(files[0]).is_file()


def test_tests_behind_the_last_finding_are_skipped(gate: Run) -> None:
    words = ("--aclnn-op", "softmax_backward,tanh_backward", "-k", "boundaries or memory", "-rs")
    shown = gate("--aclnn-adapter", "wrong:Wrong,fault=value", *words, "--aclnn-max-findings", "1")
    ended(shown, 1, "1 failed, 3 skipped", "stopped after 1 finding")
    mistake = gate("--aclnn-adapter", "reference", *words, "--aclnn-max-findings", "0")
    assert mistake.ret == pytest.ExitCode.USAGE_ERROR
    mistake.stderr.fnmatch_lines(["*--aclnn-max-findings 0: expected a number of findings, at least 1"])


def test_a_finding_of_the_baseline_fails_no_test_and_a_new_one_does(gate: Run, pytester: pytest.Pytester) -> None:
    words = ("--aclnn-adapter", "wrong:Wrong,fault=value", "--aclnn-op", "softmax_backward", "-k", "memory")
    ended(gate(*words, "--aclnn-failures", "before"), 1)
    [finding] = (pytester.path / "before").glob("*.json")
    again = gate(*words, "--aclnn-baseline", "before", "--aclnn-failures", "after", "--aclnn-max-findings", "1")
    ended(again, 0, f"findings of the baseline, which fail no test: {finding.stem}")
    assert not list((pytester.path / "after").glob("*.json"))
    assert "verdict of the selected tests: fails; all its findings are of the baseline" in again.stdout.str()
    pytester.mkdir("empty")
    for folder in ("nowhere", "empty"):
        shown = f"--aclnn-baseline {folder}: holds neither a finding nor gate.baseline; expected the directory of a run"
        ended(gate(*words, "--aclnn-baseline", folder), USAGE, shown)


def test_a_gate_without_findings_leaves_a_baseline(gate: Run, pytester: pytest.Pytester) -> None:
    words = ("--aclnn-op", "softmax_backward", "-k", "memory")
    ended(gate("--aclnn-adapter", "reference", *words, "--aclnn-failures", "main"), 0)
    assert [path.name for path in (pytester.path / "main").iterdir()] == ["gate.baseline"]
    ended(gate("--aclnn-adapter", "reference", *words, "--aclnn-baseline", "main"), 0)
    ended(gate("--aclnn-adapter", "wrong:Wrong,fault=value", *words, "--aclnn-baseline", "main"), 1)


def test_a_gate_that_judged_nothing_leaves_no_baseline(gate: Run, pytester: pytest.Pytester) -> None:
    gate("--aclnn-adapter", "nowhere:Nothing", "-k", "values", "--aclnn-failures", "main")
    assert not list((pytester.path / "main").glob("*"))


@pytest.mark.parametrize(
    ("before", "after", "selected"), [("float", "value", "memory or boundaries"), ("value", "everywhere", "boundaries")]
)
def test_a_failure_of_another_dtype_or_condition_than_the_baseline_fails_its_test(
    gate: Run, pytester: pytest.Pytester, before: str, after: str, selected: str
) -> None:
    words = ("--aclnn-op", "softmax_backward", "-k", selected)
    ended(gate("--aclnn-adapter", f"wrong:Wrong,fault={before}", *words, "--aclnn-failures", "before"), 1)
    assert len(list((pytester.path / "before").glob("*.json"))) == 1
    baseline = ("--aclnn-baseline", "before")
    ended(gate("--aclnn-adapter", f"wrong:Wrong,fault={before}", *words, *baseline), 0)
    shown = ended(gate("--aclnn-adapter", f"wrong:Wrong,fault={after}", *words, *baseline), 1)
    assert "findings of the baseline, which fail no test: " in shown
    assert "all its findings are of the baseline" not in shown


def test_a_run_is_the_baseline_of_the_gate_on_one_adapter(gate: Run, pytester: pytest.Pytester) -> None:
    words = ("softmax_backward", "--adapter", "wrong:Wrong,fault=both", "--output", "run")
    assert main(["run", *words]) == 1
    options = ("--aclnn-adapter", "wrong:Wrong,fault=both", "--aclnn-op", "softmax_backward")
    shown = ended(gate(*options, "--aclnn-baseline", "run"), 0, "all its findings are of the baseline")
    [names] = re.findall("^findings of the baseline, which fail no test: (.*)$", shown, re.MULTILINE)
    assert {"aclnnSoftmaxBackward-value", "aclnnSoftmaxBackward-output.null"} <= {
        "-".join(name.split("-")[:2]) for name in names.split(", ")
    }


@pytest.mark.parametrize("workers", ["", "2"])
def test_findings_are_written_as_sarif(gate: Run, pytester: pytest.Pytester, workers: str) -> None:
    words = ("--aclnn-adapter", "wrong:Wrong,fault=value", "--aclnn-op", "softmax_backward")
    files = ("--aclnn-failures", "found", "--aclnn-sarif", "gate.sarif")
    ended(gate(*words, "-k", "memory or boundaries", *files, workers=workers), 1)
    log = json.loads((pytester.path / "gate.sarif").read_text(encoding="utf-8"))
    jsonschema.validate(log, SARIF)
    found = {item.relative_to(pytester.path).as_posix() for item in (pytester.path / "found").glob("*.json")}
    results = log["runs"][0]["results"]
    places = [item["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for item in results]
    assert sorted(places) == sorted(found)
    ended(
        gate(*words, "--aclnn-sarif", "nowhere/gate.sarif", workers=workers),
        USAGE,
        "expected a file in a folder that exists",
    )


def test_shards_have_every_test_once(gate: Run) -> None:
    words = ("--aclnn-adapter", "reference", "--collect-only", "-q", "--aclnn-op", "softmax_backward,tanh_backward")

    def tests(*more: str) -> list[str]:
        return [line for line in ended(gate(*words, *more), 0).splitlines() if "::" in line]

    parts = [tests("--aclnn-shard", f"{part}/3") for part in (1, 2, 3)]
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert sorted(test for part in parts for test in part) == sorted(tests())
    ended(gate(*words, "--aclnn-shard", "4/3"), USAGE, "expected K/N with K from 1 to N")


def test_changed_files_choose_operators(gate: Run, pytester: pytest.Pytester) -> None:
    def git(*words: str) -> None:
        name = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *name, *words], cwd=pytester.path, check=True, capture_output=True)

    git("init", "--quiet")
    git("add", "-A")
    git("commit", "--quiet", "-m", "first")
    kernels = pytester.mkdir("kernels")
    (kernels / "gelu_backward_v2.cpp").write_text("", encoding="utf-8")
    (kernels / "aclnnTanhBackward.h").write_text("", encoding="utf-8")
    words = ("--aclnn-adapter", "reference", "--aclnn-changed", "HEAD", "-k", "examples or determinism")
    (kernels / "notes.txt").write_text("", encoding="utf-8")
    for name, file, content in (
        ("main", "gate.baseline", "{}"),
        ("runs/one", "manifest.json", '{\n  "format": "aclnn-cts/manifest/2"'),
    ):
        (pytester.path / name / "failures").mkdir(parents=True)
        (pytester.path / name / file).write_text(content, encoding="utf-8")
        (pytester.path / name / "failures" / "aclnnSoftmaxBackward-value-out.json").write_text("", encoding="utf-8")
    shown = ended(gate(*words, "-v"), 0, "1 changed file names no operator, such as 'kernels/notes.txt'")
    assert set(re.findall(r"\[(\w+)\]", shown)) == {"GeluBackwardV2", "TanhBackward"}
    ended(gate("--aclnn-adapter", "reference", "--aclnn-changed", "no-such"), USAGE, "expected a commit that git knows")


@pytest.mark.parametrize("workers", ["", "1"])
def test_a_selection_without_a_test_passes_and_says_why(gate: Run, pytester: pytest.Pytester, workers: str) -> None:
    subprocess.run(["git", "init", "--quiet"], cwd=pytester.path, check=True)
    name = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *name, "commit", "--allow-empty", "-qm", "first"], cwd=pytester.path, check=True)
    words = ("--aclnn-adapter", "reference")
    changed = gate(*words, "--aclnn-changed", "HEAD", workers=workers)
    shown = ended(changed, 0, "no file that differs from 'HEAD' names an operator")
    assert "the gate does not pass" not in shown
    few = ("--aclnn-op", "softmax_backward", "-k", "values or memory", "--aclnn-shard", "3/3")
    ended(gate(*words, *few, workers=workers), 0, "nothing was selected: part 3 of 3 has none of the 2 tests")
    nothing = gate(*words, *few[:2], "-k", "nothing", "--aclnn-shard", "3/3", workers=workers)
    ended(nothing, pytest.ExitCode.NO_TESTS_COLLECTED)
    if not workers:
        ended(gate(*words, "--aclnn-changed", "HEAD", "--collect-only"), 0, "no tests collected")


def test_a_gate_on_which_nothing_was_judged_fails(gate: Run) -> None:
    words = ("--aclnn-adapter", "wrong:Wrong,fault=speechless", "--aclnn-op", "softmax_backward", "-k", "memory", "-rs")
    ended(
        gate(*words, workers="0"),
        1,
        "1 failed",
        "inconclusive:",
        "aclnnSoftmaxBackward: nothing was judged",
        "24 inexpressible: no words for any call; such as aclnnSoftmaxBackward(",
        "verdict of the selected tests: inconclusive",
        "nothing was judged: the gate does not pass",
    )


def test_ini_keys_give_options_that_the_command_line_leaves_out(gate: Run, pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\naclnn_adapter = reference\naclnn_op = softmax_backward\naclnn_seed = x\n")
    ended(gate("--aclnn-seed", "1", "-k", "memory"), 0, "1 passed")
    ended(gate("-k", "memory"), USAGE, "--aclnn-seed: 'x'; expected int")
    ended(
        gate("--aclnn-seed", "1", "--aclnn-max-bytes", "4M"),
        USAGE,
        "--aclnn-max-bytes: '4M'; expected a number of bytes",
    )


def test_a_gate_runs_beside_the_tests_of_a_project(gate: Run, pytester: pytest.Pytester) -> None:
    # pytest reads their conftest.py, and takes it out of the plugins for tests that lie elsewhere.
    pytester.mkdir("tests").joinpath("conftest.py").touch()
    ended(gate("--aclnn-adapter", "reference", "--aclnn-op", "softmax_backward", "-k", "memory"), 0, "1 passed")


def test_an_operator_that_the_default_product_lacks_is_judged_on_one_of_its_own(gate: Run) -> None:
    operator = "roi_pooling_grad_with_arg_max"
    ended(gate("--aclnn-adapter", "reference", "--aclnn-op", operator, "-k", "memory"), 0, "1 passed")
    two = f"{operator},softmax_backward"
    ended(gate("--aclnn-adapter", "reference", "--aclnn-op", two, "-k", "memory"), 0, "1 passed, 1 skipped")


def test_a_gate_on_which_nothing_ran_fails(gate: Run) -> None:
    result = gate("--aclnn-adapter", "reference", "-k", "nothing")
    ended(result, pytest.ExitCode.NO_TESTS_COLLECTED, "nothing was judged: the gate does not pass")


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["", "2"])
def test_what_cannot_be_opened_is_told_and_ends_the_gate(gate: Run, workers: str) -> None:
    result = gate("--aclnn-adapter", "wrong:Wrong,fault=closed", workers=workers)
    shown = ended(result, NO_VERDICT, "the device is not there; plug it in")
    assert shown.count("ERROR at setup") <= int(workers or 1)
    assert "trials:" not in shown


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "the conformance suites need --aclnn-adapter"),
        ("-n 2", "the conformance suites need --aclnn-adapter"),
        (
            "--aclnn-adapter torhc -n 2",
            "--aclnn-adapter torhc: no adapter is called 'torhc'; expected one of reference, ",
        ),
        ("--aclnn-adapter reference --aclnn-op softmax_forward", "--aclnn-op: 'softmax_forward' is not known"),
        ("--aclnn-adapter reference --aclnn-failures wrong.py", "--aclnn-failures wrong.py: "),
    ],
)
def test_a_wrong_word_is_told_before_anything_runs(gate: Run, arguments: str, message: str) -> None:
    shown = ended(gate(*arguments.split()), USAGE, message)
    assert "collected" not in shown
    assert shown.count(message) == 1


@pytest.mark.slow
def test_beside_other_tests_the_option_decides(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeini(f"[pytest]\ntestpaths = {ROOT / 'aclnn_cts' / 'suites'} others\naddopts = -p aclnn_cts.plugin")
    pytester.mkdir("others").joinpath("test_other.py").write_text("def test_other():\n    pass\n", encoding="utf-8")
    with_adapter = ("--aclnn-adapter", "reference", "--aclnn-op", "softmax_backward", "-p", "no:cacheprovider")
    assert pytester.runpytest_subprocess("--help").ret == 0
    ended(pytester.runpytest_subprocess(), USAGE, "the conformance suites need --aclnn-adapter")
    ended(pytester.runpytest_subprocess("others"), 0, "1 passed")
    ended(pytester.runpytest_subprocess(*with_adapter, "-k", "examples or test_other"), 0, "1 passed")


@pytest.mark.slow
def test_a_gate_of_first_phases_judges_statuses_and_replays_them_so(gate: Run) -> None:
    words = ("--aclnn-op", "softmax_backward", "--aclnn-phases", "one", "-k", "statuses or memory")
    ended(gate("--aclnn-adapter", "reference", *words), 0, "1 passed, 1 skipped")
    shown = ended(gate("--aclnn-adapter", "wrong:Wrong,fault=status", *words), 1, "1 failed, 1 skipped")
    file = re.findall(r"^replay: aclnn-cts replay (\S+) --adapter", shown, re.MULTILINE)[0]
    [entry] = read_case_file(Path(file))
    assert isinstance(entry.content, Trial)
    assert entry.content.case.call.phases == 1


@pytest.mark.slow
def test_a_gate_of_first_phases_shows_a_rejected_example_in_every_test_of_its_operator(gate: Run) -> None:
    words = ("--aclnn-op", "softmax_backward", "--aclnn-phases", "one", "-k", "statuses or boundaries")
    shown = ended(gate("--aclnn-adapter", "wrong:Wrong,fault=refusing", *words), 1, "2 failed")
    assert shown.count("aclnnSoftmaxBackward, check example, atlas-a2: failed") == 2
