"""What `run`, `fuzz`, `replay`, `shrink` and `report` print, on implementations that conform and that do not.

Numbers of integers are exact on every machine. Times, rates, sizes and versions are replaced by what they are.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from aclnn_cts.cli.main import main
from aclnn_cts.core.case import Case, Data, Origin, Tensor
from aclnn_cts.core.case_json import case_to_json
from tests.cli.conftest import Called
from tests.support.lines import places_of

Call = Callable[..., Called]

ADAPTERS = Path(__file__).parents[1] / "support"
WRONG = "wrong_adapters:Wrong,fault=value"
SMALL = ("--chunks", "2", "--chunk-trials", "8")
RUN = ("run", "softmax_backward", "--cases", "cases.jsonl", "-o", "run", "--adapter")

VARYING = (
    # A campaign tells how far it is where it takes long.
    (r"(?m)^\d+:\d\d:\d\d chunk .*\n", ""),
    (r"\b\d{4}\\?-\d\d\\?-\d\dT\d\d:\d\d:\d\d(\\?\+00:00)?", "TIME"),
    (r"\b\d+:\d\d:\d\d\b", "H:MM:SS"),
    (r"\b\d+(\.\d+)? s\b", "N s"),
    (r"\b[0-9a-f]{64}\b", "SHA256"),
    # Where the checkout lies, and whether the file of an adapter is found there.
    (r"(?m)^\| own\\?_adapter\..*\n", ""),
    (r"/[^ |`]*/tests/support/", "SUPPORT/"),
    # What is installed, and on which machine.
    (r"(?m)^\| (adapter|harness|library|machine|own\\_adapter|python)\..*\n", ""),
)
"""What differs from run to run, and its name."""

WAIVERS = """\
subject: a test
waivers:
  - id: known
    scope: {adapter: "wrong_adapters:Wrong", operator: aclnnSoftmaxBackward, kind: value, when: "dim(out, 0) > 5"}
    reason: it is known
    owner: a person
    expiry: 2999-12-31
  - id: expired
    scope: {adapter: "wrong_adapters:Wrong", operator: aclnnSoftmaxBackward, kind: value, when: "dim(out, 0) < 5"}
    reason: it was known
    owner: a person
    expiry: 2001-01-01
"""


def steady(text: str) -> str:
    """The text with what differs from run to run replaced."""
    for pattern, name in VARYING:
        text = re.sub(pattern, name, text)
    return text


def softmax(rows: int, columns: int, kind: str = "valid", dim: int = 1) -> Case:
    inputs = Data(recipe="integers", low=-4, high=4, seed=rows)
    tensor = Tensor((rows, columns), "FLOAT", data=inputs)
    arguments = {"gradOutput": tensor, "output": tensor, "dim": dim, "out": Tensor((rows, columns), "FLOAT")}
    constraint = None if kind == "valid" else "dim.range"
    return Case("aclnnSoftmaxBackward", arguments, origin=Origin(kind=kind, constraint=constraint))  # type: ignore[arg-type]  # plain arguments


CASES = [softmax(9, 5), softmax(4, 5), softmax(0, 5), softmax(2, 3, kind="invalid", dim=7)]
LINES = "".join(json.dumps(case_to_json(case)) + "\n" for case in CASES)


@pytest.fixture(name="call")
def call_beside_adapters(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Call:
    """As of the other tests, with adapters that are wrong on purpose and a file of cases."""
    monkeypatch.syspath_prepend(ADAPTERS)
    (tmp_path / "cases.jsonl").write_text(LINES)

    def steadily(*arguments: str) -> Called:
        called = call(*arguments)
        return Called(called.code, steady(called.out), steady(called.err))

    return steadily


@pytest.fixture(scope="module", name="made")
def make_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a finding."""
    folder = tmp_path_factory.mktemp("screens")
    (folder / "cases.jsonl").write_text(LINES)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ADAPTERS)
        patch.chdir(folder)
        assert main([*RUN, WRONG]) == 1
    return folder / "run"


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    """A copy of it, in the test's own folder."""
    return Path(shutil.copytree(made, tmp_path / "run"))


def test_run_that_conforms(call: Call, snapshot: SnapshotAssertion) -> None:
    called = call(*RUN, "reference")
    assert called.code == 0
    assert called == snapshot


def test_run_with_a_finding(call: Call, snapshot: SnapshotAssertion) -> None:
    called = call(*RUN, WRONG)
    assert called.code == 1
    assert called == snapshot


def test_run_with_waivers(call: Call, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    (tmp_path / "known.yaml").write_text(WAIVERS)
    called = call(*RUN, WRONG, "--waivers", "known.yaml")
    assert called.code == 1
    assert called == snapshot


def test_replay_of_a_run(call: Call, run: Path, snapshot: SnapshotAssertion) -> None:
    called = call("replay", "run", "--adapter", WRONG, "-o", "again")
    assert called.code == 1
    assert called == snapshot


def test_replay_of_a_run_that_is_fixed(call: Call, run: Path, snapshot: SnapshotAssertion) -> None:
    called = call("replay", "run", "--adapter", "reference", "-o", "again")
    assert called.code == 0
    assert called == snapshot


def test_replay_of_a_trial_in_full(call: Call, run: Path, snapshot: SnapshotAssertion) -> None:
    [trial] = (run / "failures").glob("*.json")
    called = call("replay", f"run/failures/{trial.name}", "--adapter", WRONG, "-v", "-o", "again")
    assert called.code == 1
    assert called == snapshot


def test_replay_as_json(call: Call, run: Path, snapshot: SnapshotAssertion) -> None:
    called = call("replay", "run", "--adapter", WRONG, "--json", "-o", "again")
    assert called.code == 1
    assert called == snapshot


def test_shrink_of_a_run(call: Call, run: Path, snapshot: SnapshotAssertion) -> None:
    called = call("shrink", "run", "--adapter", WRONG)
    assert called.code == 1
    assert called == snapshot


def test_shrink_of_a_trial(call: Call, run: Path, snapshot: SnapshotAssertion) -> None:
    [trial] = (run / "failures").glob("*.json")
    called = call("shrink", f"run/failures/{trial.name}", "--adapter", WRONG, "-o", "small.json")
    assert called.code == 1
    assert called == snapshot


def test_report_in_all_forms(call: Call, run: Path, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    called = call("report", "run", "-o", "report")
    assert called.code == 0
    assert called == snapshot
    for name in ("summary.md", "test-report.zh.md", "junit.xml"):
        assert steady((tmp_path / "report" / name).read_text(encoding="utf-8")) == snapshot(name=name)


def test_run_of_an_operator_whose_document_lacks_a_sentence_names_it(call: Call) -> None:
    cases = call("cases", "roi_align_v2_backward", "--kind", "valid", "-n", "2").out
    Path("cases.jsonl").write_text(cases, encoding="utf-8")
    ran = call("run", "roi_align_v2_backward", "--cases", "cases.jsonl", "--adapter", "reference").out
    assert (
        "Not said by 1 document (all: `aclnn-cts ops --all`): RoiAlignV2: Where the points of a pooled element lie"
        in " ".join(ran.split())
    )
    listed = call("ops", "--all").out
    assert "Where the points of a pooled element lie" in " ".join(listed.split()), "the command that the line names"


def test_fuzz_that_finds_nothing(call: Call, snapshot: SnapshotAssertion) -> None:
    called = call("fuzz", "softmax_backward", *SMALL, "--adapter", "reference", "-o", "run")
    assert called.code == 0
    assert called == snapshot


@pytest.mark.slow
def test_fuzz_with_a_finding(call: Call, snapshot: SnapshotAssertion) -> None:
    called = call("fuzz", "softmax_backward", *SMALL, "--adapter", "rare_adapter:Rare,fault=tail", "-o", "run")
    assert called.code == 1
    assert called == snapshot


@pytest.mark.slow
def test_the_end_of_make_run_begins_with_the_verdict(call: Call) -> None:
    """`make run` is this command for all operators: words first, then figures, then what to do next."""
    pytest.importorskip("torch", reason="torch is not installed: pip install 'aclnn-cts[torch]'")
    lines = call("run", "softmax_backward", "--adapter", "torch", "-o", "run").out.splitlines()
    starts = (
        "Verdict: conforms with waivers; ",
        "  Ran on: ",
        "Judged: ",
        "Not judged: ",
        "No findings ",
        "Next: ",
        "RESULT ",
    )
    places = places_of(lines, starts)
    assert places[0] == 0
    assert lines[places[-2]] == "Next: aclnn-cts report run -o report.html"
    assert lines[-1].startswith("RESULT verdict=conforms-with-waivers judged=")
