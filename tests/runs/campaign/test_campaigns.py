"""Campaigns end to end: what they find, keep and say, and that any number of workers finds the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from aclnn_cts.bundle.verify import verify_bundle
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.finding import Confirmation, Finding
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial, trial_from_json
from aclnn_cts.findings.findings import EXAMPLES
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.runs.campaign import resuming
from aclnn_cts.runs.campaign.corpus.check_coverage import CoverageFactors, check_coverage
from aclnn_cts.runs.campaign.head import Head
from aclnn_cts.runs.campaign.session import NAMED
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.store.manifest import Fact
from aclnn_cts.store.run_directory import RunDirectory
from aclnn_cts.store.scope import Scope
from tests.support.build_records import make_manifest
from tests.support.ran import Ran

Run = Callable[..., Ran]
SMALL = ("softmax_backward", "--chunk-trials", "64", "--seed", "1")


def fuzz(ran: Run, fault: str, *arguments: str, **options: Path) -> Ran:
    adapter = "reference" if fault == "none" else f"rare_adapter:Rare,fault={fault}"
    return ran("fuzz", *SMALL, "--adapter", adapter, *arguments, **options)


def findings(run: Ran) -> list[Finding]:
    with run.directory.results() as results:
        return [msgspec.convert(value, Finding) for _, value in results.states("finding/")]


def chunks(run: Ran) -> list[dict[str, object]]:
    with run.directory.results() as results:
        return [dict(value) for _, value in results.states("chunk/")]  # type: ignore[call-overload]  # JSON


def verdicts(run: Ran, *, without: frozenset[Fingerprint] = frozenset()) -> list[tuple[str, str, str]]:
    records = (item for item in run.records if item.key not in without)
    return sorted((item.trial_id, item.verdict.result, item.verdict.kind) for item in records)


def expect_the_same(one: Ran, two: Ran) -> None:
    """All numbers, and the verdicts of all that both have kept.

    Of more failures than a finding keeps, those are kept whose chunks were done first.
    """
    assert {**one.result, "run": ""} == {**two.result, "run": ""}
    failures = {item.key: item.failures for item in findings(one)}
    assert failures == {item.key: item.failures for item in findings(two)}
    full = frozenset(key for key, number in failures.items() if number > EXAMPLES)
    compared = verdicts(one, without=full)
    assert compared == verdicts(two, without=full) != []


@pytest.mark.slow
def test_a_conforming_implementation(ran: Run) -> None:
    run = fuzz(ran, "none", "--chunks", "12")
    assert run.code == 0, run.err
    lines = run.out.splitlines()
    assert len(lines) <= 40
    assert run.result["verdict"] == "nothing-found"
    assert run.result["failed"] == run.result["errors"] == 0
    assert run.result["cases"] == run.result["passed"] + run.result["skipped"] + run.result["out_of_scope"] > 500
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
    assert [line["type"] for line in exported] == ["summary", "coverage", "session"] + ["chunk"] * 12
    assert run.err.splitlines()[0] == (
        f"begins SoftmaxBackward on reference, 1 worker, ends after 12 chunks; kept in {run.path}"
    )


@pytest.mark.slow
def test_what_was_covered_is_kept(ran: Run) -> None:
    run = fuzz(ran, "none", "--chunks", "8")
    exported = [json.loads(line) for line in (run.path / "campaign.jsonl").read_text().splitlines()]
    [coverage] = [line for line in exported if line["type"] == "coverage"]
    assert coverage["operator"] == "aclnnSoftmaxBackward"
    sorts = coverage["sorts"]
    assert list(sorts) == ["constraints", "limits", "pairs"]
    assert sorts["constraints"] == {"met": 40, "of": 40, "apart": 0}
    pairs, missing = sorts["pairs"], coverage["missing"]["pairs"]
    assert 0 < pairs["met"] < pairs["of"]
    assert missing["number"] == pairs["of"] - pairs["met"]
    assert 0 < len(missing["names"]) == min(missing["number"], NAMED)
    assert set(coverage["factors"]) >= {"dtype", "rank:A", "layout:out", "data:output", "attribute:dim"}
    # Named are things that are there to be covered: a longer campaign has met most of them.
    more = fuzz(ran, "none", "--chunks", "16", "--resume", out=run.path)
    lines = (more.path / "campaign.jsonl").read_text().splitlines()
    [later] = [line for line in map(json.loads, lines) if line["type"] == "coverage"]
    assert later["sorts"]["pairs"]["met"] > pairs["met"]
    # The summary has the same figures for the report.
    operator = more.directory.summary().operator("aclnnSoftmaxBackward")
    assert msgspec.to_builtins(operator.coverage) == later["sorts"]


@pytest.mark.slow
def test_what_an_implementation_cannot_be_given_stands_apart(ran: Run) -> None:
    """PyTorch has no tensor with a negative dimension, and no `cubeMathType`."""
    run = ran("fuzz", "conv_tbc_backward", "--adapter", "torch", "--chunks", "4", "--chunk-trials", "16")
    limits = run.directory.summary().operator("aclnnConvTbcBackward").coverage["limits"]
    sampler = Sampler(load_specs()["aclnnConvTbcBackward"], Target())
    every = check_coverage(CoverageFactors(sampler), seed=0, unsafe=False, phases=2).limits
    assert limits.met == limits.of == len(every) - limits.apart
    assert 0 < limits.apart < len(every)
    assert f"100% -{limits.apart}" in run.out
    assert "-N: so many more were tried" in run.out


@pytest.mark.slow
def test_one_fault_is_one_finding(ran: Run) -> None:
    run = fuzz(ran, "tail", "--chunks", "6")
    assert run.code == 1, run.err
    assert run.result["verdict"] == "fails"
    found = findings(run)
    assert len(found) == 1
    finding = found[0]
    assert (finding.key.output, finding.kind) == ("out", "value")
    assert finding.failures > 3
    assert finding.confirmed == Confirmation.ALWAYS
    assert finding.alone == (3, 3)
    assert finding.shrunk
    assert 0 < finding.executions <= 200
    # Nine zeros in a row are the smallest case that shows it.
    [file] = run.directory.failures()
    trial = trial_from_json(json.loads(file.read_text()), where=str(file))
    assert isinstance(trial, Trial)
    tensors = dict(trial.case.tensors())
    assert tensors["gradOutput"].numel == 9
    assert {tensor.strides for tensor in tensors.values()} == {None}
    assert tensors["gradOutput"].data is not None
    assert tensors["gradOutput"].data.recipe == "zeros"
    assert file.with_suffix(".cpp").exists()
    assert file.with_suffix(".py").exists()
    assert sum(record.key == finding.key for record in run.records) == finding.examples <= 25


@pytest.mark.slow
def test_a_bundle_of_a_campaign_is_judged_again(ran: Run, tmp_path: Path) -> None:
    run = fuzz(ran, "tail", "--chunks", "8")
    bundle = tmp_path / "campaign.zip"
    made = ran("bundle", str(run.path), out=bundle)
    assert made.code == 0, made.err
    found = verify_bundle(bundle, recompute=1000)
    assert found.problems == ()
    # All that is kept can be judged again, whose calls succeeded.
    assert found.recomputed == found.eligible == sum(bool(record.output_digests()) for record in run.records)
    assert {"passed", "failed value"} <= set(run.kinds)


@pytest.mark.slow
def test_outputs_keep_within_the_disk_that_a_campaign_may_take(ran: Run) -> None:
    run = fuzz(ran, "tail", "--chunks", "8", "--max-disk", "1")
    kept = sum(file.stat().st_size for file in (run.path / "blobs").iterdir())
    assert 0 < kept <= 1 << 18


@pytest.mark.slow
def test_any_number_of_workers_finds_the_same(ran: Run) -> None:
    one, two = fuzz(ran, "two", "--chunks", "12"), fuzz(ran, "two", "--chunks", "12", "--workers", "2")
    expect_the_same(one, two)
    same = ("index", "phase", "operator", "snapshot", "cases", "failed")
    assert [[entry.get(key) for key in same] for entry in chunks(one)] == [
        [entry.get(key) for key in same] for entry in chunks(two)
    ]


@pytest.mark.slow
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
        ((), "a campaign needs an end: give --time T, --chunks N, --max-findings N or --stop-after-idle T"),
        (("--time", "soon"), "'soon'; expected a span of time such as 90s, 15m, 8h or 2d"),
        (("--time", "-3"), "expected a span of time"),
        (("--chunks", "0"), "0 is not in the range"),
        (("--chunks", "1", "--resume"), "holds no manifest.json; expected the directory that a run wrote"),
        (("--chunks", "1", "--product", "atlas-9"), "'atlas-9' is not known"),
        (("--chunks", "1", "--cluster", "ray://nowhere:1"), ""),
        (("--chunks", "1", "--resource", "NPU"), "--resource NPU: it is what workers take of a cluster; name the"),
        (("--chunks", "1", "--progress", "."), "--progress .: is a folder"),
        (("--chunks", "1", "--progress", "nowhere/p.json"), "--progress nowhere/p.json: nowhere is no folder"),
    ],
)
def test_words_that_are_wrong(ran: Run, arguments: tuple[str, ...], said: str) -> None:
    if "--cluster" in arguments:
        pytest.importorskip("ray")
    run = fuzz(ran, "none", *arguments)
    assert run.code in (2, 3)
    assert said in run.err
    assert not (run.path / "manifest.json").exists()


@pytest.mark.slow
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


OTHERS = (
    (("--seed", "9"), "--seed 9: the campaign in {path} began with --seed 3; leave --seed out to go on with it"),
    (("--product", "atlas-training"), "--product atlas-training: the campaign in {path} began with --product atlas-a2"),
    (("--chunk-trials", "16"), "--chunk-trials 16: the campaign in {path} began with --chunk-trials 64"),
    (("--max-bytes", "1000"), "--max-bytes 1000: the campaign in {path} began with --max-bytes 2000000"),
    (("--unsafe",), "--unsafe: the campaign in {path} began without it"),
    (("--tolerance", "dual-l0"), "--tolerance dual-l0: the campaign in {path} began with --tolerance mixed"),
)


@pytest.mark.slow
def test_options_that_a_campaign_did_not_begin_with_are_refused_and_the_others_are_kept(
    ran: Run, tmp_path: Path
) -> None:
    path = tmp_path / "mine"
    began = ("--chunk-trials", "64", "--seed", "3", "--max-bytes", "2000000", "--tolerance", "mixed")
    words = ("fuzz", "softmax_backward", "--adapter", "reference")
    assert ran(*words, *began, "--chunks", "6", out=path).code == 0
    before = (path / "summary.json").read_bytes()
    for options, said in OTHERS:
        other = ran(*words, "--chunks", "9", *options, "--resume", out=path)
        assert other.code == 2
        assert said.format(path=path) in other.err
        assert not other.out
        assert (path / "summary.json").read_bytes() == before
    # Nobody says them again: the chunks are those of a campaign that nobody interrupted.
    more = ran(*words, "--chunks", "9", "--resume", out=path)
    assert more.code == 0, more.err
    whole = ran(*words, *began, "--chunks", "9")
    assert {**more.result, "run": ""} == {**whole.result, "run": ""}
    assert [entry["cases"] for entry in chunks(more)] == [entry["cases"] for entry in chunks(whole)]
    # To say the same again is no mistake.
    assert ran(*words, *began, "--chunks", "9", "--resume", out=path).code == 0
    with more.directory.results() as results:
        sessions = [dict(value) for _, value in results.states("session/")]  # type: ignore[call-overload]  # JSON
    assert len(sessions) == 3


@pytest.mark.slow
def test_another_implementation_does_not_go_on_with_a_campaign(
    ran: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mine"
    words = ("fuzz", *SMALL, "--adapter", "versioned_adapter:Versioned")
    monkeypatch.setenv("VERSIONED", "1.0")
    assert ran(*words, "--chunks", "2", out=path).code == 0
    monkeypatch.setenv("VERSIONED", "2.0")
    other = ran(*words, "--chunks", "3", "--resume", out=path)
    assert other.code == 2
    assert f"{path}: its campaign began on another implementation: version was 1.0, and is 2.0; go on " in other.err
    assert RunDirectory(path).finished
    monkeypatch.setenv("VERSIONED", "1.0")
    # Which of several like devices it is may change.
    monkeypatch.setenv("VERSIONED_DEVICE", "7")
    assert ran(*words, "--chunks", "3", "--resume", out=path).code == 0


@pytest.mark.slow
def test_another_state_of_the_harness_is_told(ran: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mine"
    assert fuzz(ran, "none", "--chunks", "1", out=path).code == 0
    monkeypatch.setattr(resuming, "sources_hash", lambda: "other")
    more = fuzz(ran, "none", "--chunks", "2", "--resume", out=path)
    assert more.code == 0
    assert "note: aclnn-cts itself has changed since the campaign began" in more.err


def test_a_fact_that_an_earlier_harness_did_not_record_hinders_no_campaign(monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = make_manifest(environment={"harness.sha256": Fact("then"), "adapter.version": Fact("1")})
    now = {"adapter.version": Fact("1"), "adapter.record": Fact("x")}
    monkeypatch.setattr(resuming, "sources_hash", lambda: "now")
    path = Path("mine")
    assert "has changed" in resuming.check_implementation(path, manifest, now, None)
    more = {"adapter.library /lib/custom.so": Fact("sha256 0")}
    with pytest.raises(UsageError, match=r"library /lib/custom\.so was not told"):
        resuming.check_implementation(path, manifest, now | more, None)
    monkeypatch.setattr(resuming, "sources_hash", lambda: "then")
    with pytest.raises(UsageError, match="record was not told"):
        resuming.check_implementation(path, manifest, now, None)


def test_a_campaign_goes_on_with_no_other_scope() -> None:
    manifest = make_manifest(scope=Scope(), scope_sha256=Scope().sha256)
    assert resuming.check_implementation(Path("mine"), manifest, {}, Scope()) == ""
    with pytest.raises(UsageError, match="declares another scope"):
        resuming.check_implementation(Path("mine"), manifest, {}, Scope(dtypes=("FLOAT",)))


@pytest.mark.slow
def test_waivers_that_are_not_given_again_are_those_of_the_session_before(ran: Run, tmp_path: Path) -> None:
    path, file = tmp_path / "mine", tmp_path / "w.yaml"
    text = """\
subject: an adapter that is wrong
waivers:
  - id: ours
    scope:
      adapter: "rare_adapter:Rare"
      operator: aclnnSoftmaxBackward
      kind: [value, special-value, beyond-model]
    reason: the last element of an odd number
    owner: nobody
    expiry: 2999-12-31
"""
    file.write_text(text, encoding="utf-8")
    run = fuzz(ran, "tail", "--chunks", "5", "--waivers", str(file), out=path)
    assert run.result["waived"] > 0
    more = fuzz(ran, "tail", "--chunks", "7", "--resume", out=path)
    assert more.result["waived"] > run.result["waived"]
    file.write_text(text.replace("nobody", "somebody"), encoding="utf-8")
    changed = fuzz(ran, "tail", "--chunks", "8", "--resume", out=path)
    assert changed.code == 2
    assert f"{file}: a waiver file that has changed since the last session" in changed.err
    again = fuzz(ran, "tail", "--chunks", "8", "--resume", "--waivers", str(file), out=path)
    assert again.result["waived"] >= more.result["waived"]
    assert "somebody" in (path / "waivers" / "w.yaml").read_text(encoding="utf-8")
    file.unlink()
    gone = fuzz(ran, "tail", "--chunks", "9", "--resume", out=path)
    assert gone.code == 2
    assert "give those that count from now on with --waivers" in gone.err


@pytest.mark.slow
def test_stop_rules(ran: Run) -> None:
    run = fuzz(ran, "tail", "--max-findings", "1")
    assert run.code == 1
    assert "findings were made." in run.out
    run = fuzz(ran, "none", "--time", "1s")
    assert run.code == 0
    assert ": its time is over." in run.out
    run = fuzz(ran, "none", "--time", "30m", "--max-disk", "1", "--stop-after-idle", "0.2s")
    assert ": nothing new came for 0 s." in run.out


def test_a_mistake_of_ours_leaves_what_was_finished(ran: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: Head, event: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as broken:
        broken.setattr(Head, "handle_event", fails)
        run = fuzz(ran, "none", "--chunks", "1")
    assert run.code not in (0, 1)
    assert not run.directory.summary().finished
    assert (run.path / "campaign.jsonl").exists()
    again = fuzz(ran, "none", "--chunks", "1", "--resume", out=run.path)
    assert again.code == 0, again.err
    assert again.directory.summary().finished


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
    assert shown["run"] == str(run.path)
    assert [(worker["name"], worker["device"]) for worker in shown["workers"]] == [("worker 0", "")]


@pytest.mark.slow
def test_a_progress_file_that_cannot_be_written_any_more_ends_nothing(ran: Run, tmp_path: Path) -> None:
    folder = tmp_path / "away"
    folder.mkdir()
    adapter = f"takes_away_adapter:TakesAway,folder={folder}"
    run = ran("fuzz", *SMALL, "--adapter", adapter, "--chunks", "4", "--progress", str(folder / "p.json"))
    assert run.code == 0, run.err
    [note] = [line for line in run.err.splitlines() if line.startswith("note: ")]
    assert (
        note == f"note: {folder / 'p.json'}: cannot be written: No such file or directory; the campaign goes on without"
    )
    assert run.result["verdict"] == "nothing-found"
