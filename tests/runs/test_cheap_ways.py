"""Every row of the table in docs/verdicts.md: cheap ways to conform, and what each gets."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from aclnn_cts.core.faults import Fault
from aclnn_cts.core.target import Target
from aclnn_cts.core.verdict import RunVerdict
from aclnn_cts.execution.settings import RunnerSettings
from aclnn_cts.reports.model.build import acceptance
from aclnn_cts.reports.sentences import insufficiency
from aclnn_cts.runs.run import RunOptions
from aclnn_cts.runs.run import run as run_engine
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.store.events import BatchJudged, Event
from aclnn_cts.store.run_directory import RunDirectory
from aclnn_cts.store.run_verdict import headline
from aclnn_cts.trials.plan import PROFILES, Profile
from tests.runs.test_run import softmax, written
from tests.support.ran import Ran

Run = Callable[..., Ran]
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "verdicts.md"
SMALL = Profile("quick", corners=48, random=48, breaks=1, memory=4, equal_calls=1, life_cycle=1)
SOFTMAX, CONV = "softmax_backward", "conv_tbc_backward"


class Got(NamedTuple):
    """What a way gets: the verdict in words, and the exit code."""

    verdict: str
    code: int


Way = Callable[[Run, Path], Got]
WAYS: dict[str, Way] = {}


def way(row: str) -> Callable[[Way], Way]:
    """Register the test of a row by its first cell."""

    def register(function: Way) -> Way:
        WAYS[row] = function
        return function

    return register


def cheap(name: str) -> str:
    return f"cheap_adapters:Cheap,way={name}"


def got(run: Ran) -> Got:
    """The verdict that the run's last lines name, which its summary must name too."""
    found = re.search(r"^Verdict: (.+)\.$", run.out, re.MULTILINE)
    assert found is not None, run.out + run.err
    conclusion = run.directory.summary().conclusion
    assert headline(conclusion) == found[1]
    if conclusion.verdict == RunVerdict.INCONCLUSIVE:
        # What else is not offered does not matter then.
        return Got(RunVerdict.INCONCLUSIVE.value, run.code)
    # How many corners are visited, the number of calls decides.
    return Got(re.sub(r" \d+ of \d+ corners;", "", found[1]), run.code)


def rows() -> Iterator[tuple[str, Got]]:
    """The rows of the page's table."""
    table = PAGE.read_text(encoding="utf-8").partition("### Cheap ways to conform")[2].partition("\n## ")[0]
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and cells[-1].isdigit():
            yield cells[0], Got(cells[1], int(cells[2]))


def profile_run(name: str, *more: str, operator: str = SOFTMAX) -> Way:
    return lambda ran, _folder: got(ran("run", operator, "--adapter", cheap(name), *more))


WAYS |= {
    "Answer 24 calls and refuse the rest": profile_run("few"),
    "Answer only where zeros are right": profile_run("zeros"),
    "Refuse one dtype without declaring it": profile_run("bf16"),
    "Declare that only FLOAT is offered": profile_run("float"),
    "Declare that the operator on the command line is not offered": profile_run("no-operator"),
    "Refuse every call that breaks a rule": profile_run("lenient"),
    "Refuse every call that needs more than a few elements": profile_run("small"),
    "Run with `--max-bytes 64`": profile_run("honest", "--max-bytes", "64"),
    "Run with `--phases one`": profile_run("honest", "--phases", "one"),
}


@way("Refuse one dtype that few calls use")
def _rare_dtype(ran: Run, folder: Path) -> Got:
    """Below the bar it would not matter, so the bar is lowered: every listed dtype counts all the same."""
    run = ran("run", "embedding_dense_backward", "--adapter", cheap("int32"), "--min-judged", "1")
    summary = json.loads((run.path / "summary.json").read_text(encoding="utf-8"))
    assert "aclnnEmbeddingDenseBackward: no values were judged of indices INT32" in summary["causes"]
    return got(run)


@way("Declare that statuses are not offered")
def _statusless(ran: Run, folder: Path) -> Got:
    run = ran("run", SOFTMAX, "--adapter", cheap("statusless"))
    manifest = json.loads((run.path / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["scope"]["statuses"] is False
    assert len(manifest["scope_sha256"]) == 64
    assert run.result["out_of_scope"] > 0
    return got(run)


@way("Declare that no operator is offered")
def _no_operator(ran: Run, folder: Path) -> Got:
    run = ran("run", "--adapter", cheap("no-operator"))
    assert run.result["cases"] == len(load_specs())
    assert run.result["out_of_scope"] == len(load_specs().for_product("atlas-a2"))
    assert "aclnnSoftmaxBackward" in headline(run.directory.summary().conclusion)
    return got(run)


@way("Declare everything at first and less in each worker")
def _shrinking(ran: Run, folder: Path) -> Got:
    adapter = f"{cheap('shrinking')},mark={folder / 'opened'}"
    return got(ran("run", SOFTMAX, "--adapter", adapter, "--workers", "2"))


@way("Report the hard calls as not run")
def _busy(ran: Run, folder: Path) -> Got:
    run = ran("run", SOFTMAX, "--adapter", cheap("busy"))
    assert "No findings." not in run.out
    assert re.search(r"\d+ trials ended in an error: the device is out of memory", run.out)
    assert "such as aclnnSoftmaxBackward(" in run.out
    return got(run)


@way("Answer open cases with an error status")
def _open(ran: Run, folder: Path) -> Got:
    # The document leaves a tensor without elements open where `dim` names one of them.
    cases = written(folder / "open.jsonl", softmax(0, 3), softmax(0, 4))
    run = ran("run", "--adapter", cheap("errors"), "--cases", cases)
    assert run.kinds == ["skipped open"] * 2
    return got(run)


@way("Give one case that is judged beside one that is refused")
def _beside(ran: Run, folder: Path) -> Got:
    cases = written(folder / "cases.jsonl", softmax(2, 2), softmax(2, 3))
    run = ran("run", "--adapter", cheap("small"), "--cases", cases)
    assert run.result["judged"] == 50
    return got(run)


@way("Give cases of an operator that is not chosen")
def _not_chosen(ran: Run, folder: Path) -> Got:
    return got(ran("run", CONV, "--adapter", cheap("honest"), "--cases", written(folder / "c.json", softmax(2, 3))))


@way("Give cases that are refused, beside waivers with pinned cases")
def _pinned(ran: Run, folder: Path) -> Got:
    """Only cases that are pinned for an operator of the run are made; they count as cases and are not asked for."""
    written(folder / "pin.json", softmax(3, 2))
    waivers = folder / "own.yaml"
    waivers.write_text(
        "subject: s\nwaivers:\n"
        f'  - {{id: mine, scope: {{adapter: "{cheap("nothing")}", operator: aclnnSoftmaxBackward, kind: [value]}}, '
        "reason: known, owner: nobody, expiry: 2999-12-31, cases: [pin.json]}\n",
        encoding="utf-8",
    )
    cases = written(folder / "cases.jsonl", softmax(2, 3), softmax(2, 4))
    run = ran("run", "--adapter", cheap("nothing"), "--cases", cases, "--waivers", str(waivers))
    operator = run.directory.summary().operator("aclnnSoftmaxBackward")
    assert (operator.asked.cases, operator.asked.skipped) == (2, 2)
    assert operator.total.cases == 3
    return got(run)


@way("Replay findings on an implementation that refuses them")
def _replayed(ran: Run, folder: Path) -> Got:
    cases = written(folder / "cases.jsonl", softmax(2, 3))
    failing = ran("run", "--adapter", "wrong_adapters:Wrong,fault=value", "--cases", cases)
    assert failing.code == 1
    return got(ran("replay", str(failing.path), "--adapter", cheap("nothing")))


@way("Run with `--min-judged 1`")
def _little(ran: Run, folder: Path) -> Got:
    assert ran("run", SOFTMAX, "--adapter", cheap("half")).code == 3
    run = ran("run", SOFTMAX, "--adapter", cheap("half"), "--min-judged", "1")
    assert not acceptance([run.path]).suffices
    assert "asked for less than 90%" in insufficiency(acceptance([run.path]), "en")
    return got(run)


@way("Run a campaign that finds nothing")
def _campaign(ran: Run, folder: Path) -> Got:
    run = ran("fuzz", SOFTMAX, "--adapter", cheap("honest"), "--chunks", "1", "--chunk-trials", "64")
    assert run.result["verdict"] == "nothing-found"
    assert "conforms" not in run.out
    found = re.search(r"^Verdict: (nothing found.*)\.$", run.out, re.MULTILINE)
    assert found is not None
    assert not acceptance([run.path]).suffices
    return Got(found[1].partition(";")[0], run.code)


@way("Interrupt the run before its hard part")
def _interrupted(ran: Run, folder: Path) -> Got:
    specs = load_specs()
    options = RunOptions(
        command="run",
        arguments=(),
        specs=specs,
        operators=specs.select([SOFTMAX]),
        settings=RunnerSettings(adapter="reference", target=Target(product="atlas-a2")),
        out=folder / "run",
        profile=SMALL,
    )

    def interrupt(event: Event) -> None:
        if isinstance(event, BatchJudged):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_engine(options, [interrupt])
    run = RunDirectory(folder / "run")
    assert run.summary().total.passed > 0
    report = acceptance([run.path])
    assert (report.verdict, report.suffices) == ("inconclusive", False)
    return Got(headline(run.summary().conclusion).partition(";")[0], 130)


@way("Waive every failure")
def _waived(ran: Run, folder: Path) -> Got:
    waivers = folder / "own.yaml"
    waivers.write_text(
        "subject: s\nwaivers:\n"
        + "".join(
            f'  - {{id: w{number}, scope: {{adapter: "wrong_adapters:Wrong", operator: aclnnSoftmaxBackward, '
            f"kind: {kind}}}, reason: any, owner: nobody, expiry: 2999-12-31}}\n"
            for number, kind in enumerate(
                (Fault.VALUE, Fault.SPECIAL, Fault.NONDETERMINISTIC, Fault.MODEL, Fault.LIMIT_VALUE)
            )
        ),
        encoding="utf-8",
    )
    return got(ran("run", SOFTMAX, "--adapter", "wrong_adapters:Wrong,fault=value", "--waivers", str(waivers)))


@way("Select a test of the gate that judges nothing")
def _gate(ran: Run, folder: Path) -> Got:
    words = ("-p", "aclnn_cts.plugin", "--pyargs", "aclnn_cts.suites", "-p", "no:cacheprovider", "-k", "memory")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, "--aclnn-adapter", cheap("nothing"), "--aclnn-op", SOFTMAX],
        cwd=folder,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'tests' / 'support'}", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "nothing was judged" in done.stdout, done.stdout + done.stderr
    assert re.search(r"\d+ inexpressible: no words for any call; such as aclnnSoftmaxBackward\(", done.stdout)
    found = re.search(r"verdict of the selected tests: ([a-z-]+)", done.stdout)
    assert found is not None
    return Got(found[1], done.returncode)


def test_the_page_has_a_row_for_each_of_these_and_no_other() -> None:
    assert [row for row, _ in rows()] == list(dict.fromkeys(row for row, _ in rows()))
    assert {row for row, _ in rows()} == set(WAYS)
    assert len(WAYS) >= 15


@pytest.fixture
def small_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole plan, with fewer trials of each kind."""
    monkeypatch.setitem(PROFILES, "quick", SMALL)


@pytest.mark.slow
@pytest.mark.usefixtures("small_profile")
@pytest.mark.parametrize(("row", "expected"), list(rows()), ids=[row for row, _ in rows()])
def test_what_a_cheap_way_gets(ran: Run, tmp_path: Path, row: str, expected: Got) -> None:
    assert WAYS[row](ran, tmp_path) == expected


@pytest.mark.usefixtures("small_profile")
def test_an_honest_implementation_conforms(ran: Run) -> None:
    """The control: the same plan, and nothing is refused."""
    found = got(ran("run", SOFTMAX, "--adapter", cheap("honest")))
    assert found == Got("conforms; call modes not offered", 0)
