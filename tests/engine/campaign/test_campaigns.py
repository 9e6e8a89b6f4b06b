"""Campaigns end to end: what they find, keep and say, and that any number of workers finds the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from aclnn_cts.core.trial import Trial, trial_from_json
from aclnn_cts.core.verdict import Signature
from aclnn_cts.engine.bundle.verify import verify_bundle
from aclnn_cts.engine.campaign.finding import EXAMPLES, Confirmed, Finding, outputs_of
from tests.engine.conftest import Ran

Run = Callable[..., Ran]
SMALL = ("softmax_backward", "--chunk-trials", "64")


def fuzz(ran: Run, fault: str, *arguments: str, **options: Path) -> Ran:
    adapter = "reference" if fault == "none" else f"rare_adapter:Rare,fault={fault}"
    return ran("fuzz", *SMALL, "--adapter", adapter, *arguments, **options)


def findings(run: Ran) -> list[Finding]:
    with run.directory.results() as results:
        return [msgspec.convert(value, Finding) for _, value in results.states("finding/")]


def chunks(run: Ran) -> list[dict[str, object]]:
    with run.directory.results() as results:
        return [dict(value) for _, value in results.states("chunk/")]  # type: ignore[call-overload]  # JSON


def verdicts(run: Ran, *, without: frozenset[Signature] = frozenset()) -> list[tuple[str, str, str]]:
    records = (item for item in run.records if item.signature not in without)
    return sorted((item.trial_id, item.verdict.result, item.verdict.kind) for item in records)


def test_a_conforming_implementation(ran: Run) -> None:
    run = fuzz(ran, "none", "--chunks", "12")
    assert run.code == 0, run.err
    lines = run.out.splitlines()
    assert len(lines) <= 15
    assert run.result["verdict"] == "conforms"
    assert run.result["failed"] == run.result["errors"] == 0
    assert run.result["cases"] == run.result["passed"] + run.result["skipped"] > 500
    assert f"aclnn-cts report {run.path}" in run.out
    assert not findings(run)
    done = chunks(run)
    assert [entry["index"] for entry in done] == list(range(12))
    assert {entry["phase"] for entry in done} == {"plan", "random", "search"}
    # The later chunks were made from a snapshot, whose id stands with them.
    assert any(entry.get("snapshot") for entry in done)
    # Of what passes, a sample is kept.
    assert set(run.kinds) == {"passed"}
    assert 0 < len(run.records) <= 2 * 12
    exported = [json.loads(line) for line in (run.path / "campaign.jsonl").read_text().splitlines()]
    assert [line["type"] for line in exported] == ["summary"] + ["chunk"] * 12


def test_one_fault_is_one_finding(ran: Run) -> None:
    run = fuzz(ran, "tail", "--chunks", "6")
    assert run.code == 1, run.err
    assert run.result["verdict"] == "fails"
    found = findings(run)
    values = [item for item in found if item.signature.promise == "values" and item.signature.kind == "value"]
    assert len(values) == 1
    finding = values[0]
    assert finding.failures > 3
    assert finding.confirmed == Confirmed.ALWAYS
    assert finding.alone == (3, 3)
    assert finding.shrunk
    assert 0 < finding.executions <= 200
    # Nine zeros in a row are the smallest case that shows it.
    [file] = [file for file in run.directory.failures() if "values-value-" in file.name and "beyond" not in file.name]
    trial = trial_from_json(json.loads(file.read_text()), where=str(file))
    assert isinstance(trial, Trial)
    tensors = dict(trial.case.tensors())
    assert tensors["gradOutput"].numel == 9
    assert {tensor.strides for tensor in tensors.values()} == {None}
    assert tensors["gradOutput"].data is not None
    assert tensors["gradOutput"].data.recipe == "zeros"
    assert file.with_suffix(".cpp").exists()
    assert file.with_suffix(".py").exists()
    assert sum(record.signature == finding.signature for record in run.records) == finding.examples <= 25


def test_a_bundle_of_a_campaign_is_judged_again(ran: Run, tmp_path: Path) -> None:
    run = fuzz(ran, "tail", "--chunks", "8")
    bundle = tmp_path / "campaign.zip"
    made = ran("bundle", str(run.path), out=bundle)
    assert made.code == 0, made.err
    found = verify_bundle(bundle, recompute=1000)
    assert found.problems == ()
    # All that is kept can be judged again, whose calls succeeded.
    assert found.recomputed == found.eligible == sum(bool(outputs_of(record)) for record in run.records)
    assert {"passed", "failed value"} <= set(run.kinds)


def test_outputs_keep_within_the_disk_that_a_campaign_may_take(ran: Run) -> None:
    run = fuzz(ran, "tail", "--chunks", "8", "--max-disk", "1")
    kept = sum(file.stat().st_size for file in (run.path / "blobs").iterdir())
    assert 0 < kept <= 1 << 18


def test_any_number_of_workers_finds_the_same(ran: Run) -> None:
    one, two = fuzz(ran, "tail", "--chunks", "12"), fuzz(ran, "tail", "--chunks", "12", "--workers", "2")
    assert {**one.result, "run": ""} == {**two.result, "run": ""}
    failures = {item.signature: item.failures for item in findings(one)}
    assert failures == {item.signature: item.failures for item in findings(two)}
    # Of more failures than a finding keeps, those are kept whose chunks were done first.
    full = frozenset(signature for signature, number in failures.items() if number > EXAMPLES)
    assert len(full) < len(failures)
    assert verdicts(one, without=full) == verdicts(two, without=full)
    same = ("index", "phase", "operator", "snapshot", "cases", "failed")
    assert [[entry.get(key) for key in same] for entry in chunks(one)] == [
        [entry.get(key) for key in same] for entry in chunks(two)
    ]


def test_a_finished_campaign_goes_on_with_more_chunks(ran: Run, tmp_path: Path) -> None:
    whole = fuzz(ran, "none", "--chunks", "11")
    path = tmp_path / "parts"
    for number in ("4", "9", "11"):
        more = () if number == "4" else ("--resume",)
        part = fuzz(ran, "none", "--chunks", number, *more, out=path)
        assert part.code == 0, part.err
        assert len(chunks(part)) == int(number)
    assert {**part.result, "run": ""} == {**whole.result, "run": ""}
    assert [entry.get("snapshot") for entry in chunks(part)] == [entry.get("snapshot") for entry in chunks(whole)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "a campaign needs an end: give --time T, --chunks N, --findings N or --quiet T"),
        (("--time", "soon"), "'soon'; expected a span of time such as 90s, 15m, 8h or 2d"),
        (("--time", "-3"), "expected a span of time"),
        (("--chunks", "0"), "0 is not in the range"),
        (("--chunks", "1", "--resume"), "holds no manifest.json; expected the directory that a run wrote"),
        (("--chunks", "1", "--product", "atlas-9"), "'atlas-9' is not known"),
        (("--chunks", "1", "--cluster", "ray://nowhere:1"), ""),
    ],
)
def test_words_that_are_wrong(ran: Run, arguments: tuple[str, ...], said: str) -> None:
    if "--cluster" in arguments:
        pytest.importorskip("ray")
    run = fuzz(ran, "none", *arguments)
    assert run.code in (2, 3)
    assert said in run.err
    assert not (run.path / "manifest.json").exists()


def test_what_is_resumed_must_be_the_same_campaign(ran: Run, tmp_path: Path) -> None:
    path = tmp_path / "mine"
    assert fuzz(ran, "none", "--chunks", "1", out=path).code == 0
    other = ran("fuzz", "softmax_backward", "--adapter", "torch", "--chunks", "2", "--resume", out=path)
    assert other.code == 2
    assert "its campaign has --adapter reference, not torch; give the same" in other.err
    more = ran("fuzz", "--adapter", "reference", "--chunks", "2", "--resume", out=path)
    assert more.code == 2
    assert "its campaign has operators aclnnSoftmaxBackward, not " in more.err
    again = fuzz(ran, "none", "--chunks", "2", out=path)
    assert again.code == 2
    assert "holds a run already" in again.err


def test_stop_rules(ran: Run) -> None:
    run = fuzz(ran, "tail", "--findings", "1")
    assert run.code == 1
    assert "findings were made." in run.out
    run = fuzz(ran, "none", "--time", "1s")
    assert run.code == 0
    assert ": its time is over." in run.out
    run = fuzz(ran, "none", "--time", "30m", "--max-disk", "1", "--quiet", "0.2s")
    assert ": nothing new came for 0 s." in run.out


def test_the_progress_file(ran: Run, tmp_path: Path) -> None:
    file = tmp_path / "progress.json"
    run = fuzz(ran, "none", "--chunks", "4", "--progress", str(file))
    shown = json.loads(file.read_text())
    assert shown["chunks"] == 4
    assert shown["ending"] == "all 4 chunks are done"
    assert shown["cases"] == run.result["cases"]
    [operator] = shown["operators"]
    assert operator["coverage"]["constraints"] == [40, 40]
    met, of = operator["coverage"]["pairs"]
    assert 0 < met < of
