"""Waivers in campaigns: pinned cases come first, and the end says which waivers are expired, mended or not needed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from aclnn_cts.core.case import Argument, Case, Data, Tensor
from aclnn_cts.core.case_json import case_to_json
from aclnn_cts.core.finding import Finding
from aclnn_cts.core.target import Target
from aclnn_cts.findings.finding_text import finding_texts
from aclnn_cts.runs.campaign.campaign_state import ChunkEntry
from aclnn_cts.runs.campaign.corpus.schedule import PINNED
from aclnn_cts.speclang.load import load_specs
from tests.support.ran import Ran

Run = Callable[..., Ran]
FAR = "2999-12-31"
PASSES, FAILS = 4, 9


def softmax(size: int) -> Case:
    bare = Tensor((size,), "FLOAT16")
    given = Tensor((size,), "FLOAT16", data=Data(recipe="zeros"))
    arguments: dict[str, Argument] = {"gradOutput": given, "output": given, "dim": 0, "out": bare}
    return Case("aclnnSoftmaxBackward", arguments, Target(product="atlas-a2"))


def waiver(folder: Path, name: str, size: int, *, expiry: str = FAR, kind: str = "value", alone: bool = False) -> str:
    """One that pins a case, and accepts no other where `alone`."""
    (folder / f"{name}.jsonl").write_text(json.dumps(case_to_json(softmax(size))), encoding="utf-8")
    when = f", when: 'dim(out, 0) == {size}'" if alone else ""
    return f"""\
  - id: {name}
    scope: {{adapter: "rare_adapter:Rare", operator: aclnnSoftmaxBackward, kind: [{kind}]{when}}}
    reason: the last element of an odd number
    owner: nobody
    expiry: {expiry}
    cases: [{name}.jsonl]
"""


def fuzz(ran: Run, tmp_path: Path, *waivers: str, chunks: int, more: tuple[str, ...] = (), out: Path) -> Ran:
    file = tmp_path / "w.yaml"
    file.write_text("subject: an adapter that is wrong\nwaivers:\n" + "".join(waivers), encoding="utf-8")
    adapter = "rare_adapter:Rare,fault=tail"
    return ran(
        "fuzz",
        "softmax_backward",
        *("--chunk-trials", "64", "--adapter", adapter, "--chunks", str(chunks), "--waivers", str(file)),
        *more,
        out=out,
    )


def state(run: Ran, prefix: str) -> dict[str, object]:
    with run.directory.results() as results:
        return dict(results.states(prefix))


@pytest.mark.slow
def test_pinned_cases_come_first_once_and_waivers_that_are_not_needed_are_told(ran: Run, tmp_path: Path) -> None:
    waivers = [
        waiver(tmp_path, "needed", FAILS),
        waiver(tmp_path, "mended", PASSES),
        waiver(tmp_path, "crashes", FAILS, kind="crash"),
    ]
    path = tmp_path / "campaign"
    run = fuzz(ran, tmp_path, *waivers, chunks=1, out=path)
    assert run.code in (0, 1), run.err
    chunks = state(run, "chunk/")
    [pinned, first] = [msgspec.convert(value, ChunkEntry) for _, value in sorted(chunks.items())]
    assert pinned.phase == PINNED
    assert (pinned.cases, pinned.failed) == (2, 1)
    assert first.index == 0
    assert [path.name for path in run.directory.waivers()].count("w.yaml") == 1
    [finding] = [each for each in _findings(run) if each.waiver and each.chunk < 0]
    assert finding.waiver == "needed"
    notices = run.directory.summary().notices
    assert [text.split("waiver ")[1] for text in notices] == [
        "mended: its pinned cases pass now; remove it",
        "crashes: nothing in its scope failed in this run; see whether it is needed",
    ]
    assert "waiver mended: its pinned cases pass now" in run.out + run.err

    # What the first session saw counts in the second, which runs the pinned cases no second time.
    more = fuzz(ran, tmp_path, *waivers, chunks=2, more=("--resume",), out=path)
    assert len(state(more, "chunk/")) == 3
    assert more.directory.summary().notices == notices
    assert sum(record.trial.case.arguments == softmax(FAILS).arguments for record in more.records) == 1


@pytest.mark.slow
def test_a_waiver_that_is_mended_by_the_next_session_is_told_of_then(ran: Run, tmp_path: Path) -> None:
    path = tmp_path / "campaign"
    fuzz(ran, tmp_path, waiver(tmp_path, "needed", FAILS), chunks=1, out=path)
    later = [waiver(tmp_path, "needed", FAILS), waiver(tmp_path, "new", PASSES)]
    more = fuzz(ran, tmp_path, *later, chunks=1, more=("--resume",), out=path)
    assert [text.split("waiver ")[1] for text in more.directory.summary().notices] == [
        "new: its pinned cases pass now; remove it"
    ]


@pytest.mark.slow
def test_an_expired_waiver_fails_the_campaign_until_it_is_renewed(ran: Run, tmp_path: Path) -> None:
    path = tmp_path / "campaign"
    run = fuzz(ran, tmp_path, waiver(tmp_path, "old", PASSES, expiry="2020-01-01"), chunks=1, out=path)
    assert run.code == 1
    [violation] = run.directory.summary().violations
    assert "waiver old expired on 2020-01-01; nobody renews it" in violation
    assert violation[:60] in run.out
    more = fuzz(ran, tmp_path, waiver(tmp_path, "old", PASSES), chunks=1, more=("--resume",), out=path)
    assert "expired on" not in more.out
    assert not more.directory.summary().violations


@pytest.mark.slow
def test_failures_of_one_key_have_each_the_finding_of_their_own_waiver(ran: Run, tmp_path: Path) -> None:
    waivers = [waiver(tmp_path, f"of-{size}", size, alone=True) for size in (FAILS, FAILS + 2)]
    run = fuzz(ran, tmp_path, *waivers, chunks=1, out=tmp_path / "campaign")
    assert run.code in (0, 1), run.err
    assert {"of-9", "of-11"} <= {each.waiver for each in _findings(run)}
    texts = finding_texts(run.directory, load_specs())
    assert {"of-9", "of-11"} <= {entry.finding.waiver for entry in texts}


def _findings(run: Ran) -> list[Finding]:
    return [msgspec.convert(value, Finding) for value in state(run, "finding/").values()]
