"""What a campaign shows: a screen that fits the terminal, a line, a file, and an end."""

from __future__ import annotations

import io
import json
import os
import platform
import sys
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from aclnn_cts.cli.campaign_screen import CampaignScreen, show_campaign_end, status_document, status_line, status_screen
from aclnn_cts.cli.screen import OPERATORS_SHOWN
from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.finding import Confirmation, Finding
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.runs.campaign.corpus.check_coverage import CoveredShare
from aclnn_cts.runs.campaign.status import EXAMINES, CampaignStatus, OperatorStatus, SlotActivity, Watcher, Watchers
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.store.run_directory import RunDirectory
from aclnn_cts.store.summary import Summary
from aclnn_cts.workers.slots import Slot, SlotHealth
from tests.reports.synthetic import record, softmax_case, synthetic_run
from tests.support.lines import places_of

RUN = Path("runs/20260101-000000-fuzz-cann")


_FAILURE = Fingerprint(
    operator="aclnnUpsampleNearestExact1dBackward",
    check="values",
    fault="beyond-model",
    output="gradInput",
    mode="ALLOW_FP32_DOWN_PRECISION",
    dtype="FLOAT16",
)


def a_status(*, operators: int, findings: int, slots: int, apart: int = 0) -> CampaignStatus:
    summary = Summary()
    summary.plan("aclnnSoftmaxBackward", "valid", number=123_456)
    coverage = {
        "constraints": CoveredShare(40, 40),
        "limits": CoveredShare(38, 39, apart),
        "pairs": CoveredShare(1999, 2000, 40 * apart),
    }
    found = [
        Finding(key=failure.key, counts=((failure, number),), confirmed=Confirmation.DEVICE)
        for number in range(findings)
        for failure in (msgspec.structs.replace(_FAILURE, fault="crash", output="", answer=f"signal {number}"),)
    ]
    return CampaignStatus(
        seconds=3725.0,
        limit_seconds=28_800.0,
        chunks=1234,
        limit_chunks=None,
        phase="search",
        rate=2512.3,
        summary=summary,
        findings=found,
        slots=[
            Slot(
                f"worker {number}",
                f"cann:device={number}",
                SlotHealth.OUT if number == 3 else SlotHealth.BUSY,
                lost=number % 2,
            )
            for number in range(slots)
        ],
        under_way=[SlotActivity(number, 17, 77, 0.5) for number in range(slots)],
        operators=[
            OperatorStatus(
                name=f"aclnnUpsampleNearestExact1d{number}Backward",
                cases=987_654,
                failed=number,
                worst=number / 10.0,
                coverage=coverage,
                factors={},
            )
            for number in range(operators)
        ],
        disk_bytes=77 << 20,
        disk_limit=2 << 30,
        waiting=3,
    )


def shown(status: CampaignStatus, width: int, height: int) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=width, height=height, force_terminal=False, highlight=False)
    console.print(status_screen(status, RUN, width=width, height=height))
    return out.getvalue().rstrip("\n").split("\n")


@pytest.mark.parametrize("apart", [0, 31])
@pytest.mark.parametrize(("operators", "findings", "slots"), [(1, 0, 1), (5, 3, 2), (40, 200, 8), (40, 200, 300)])
@pytest.mark.parametrize(("width", "height"), [(80, 24), (200, 60), (60, 24)])
def test_it_fits(operators: int, findings: int, slots: int, width: int, height: int, apart: int) -> None:
    lines = shown(a_status(operators=operators, findings=findings, slots=slots, apart=apart), width, height)
    assert len(lines) < height
    assert max(map(len, lines)) <= width


def test_what_it_says() -> None:
    text = "\n".join(shown(a_status(operators=2, findings=2, slots=2), 80, 24))
    assert "campaign 1:02:05 of 8:00:00" in text
    assert "2512/s" in text
    assert "1 busy(1 lost)" in text
    assert "2 findings, 0 waived, 3 to confirm" in text
    assert text.index("UpsampleNearestExact1d1") < text.index("UpsampleNearestExact1d0")
    # 1999 of 2000 are not all.
    assert "99.9%" in text
    # What tells findings apart comes first.
    assert "one device 1x UpsampleNearestExact1dBackward: crash, signal 1" in text


def test_eight_devices_stand_on_two_lines_with_their_health() -> None:
    lines = shown(a_status(operators=5, findings=2, slots=8), 80, 24)
    place = next(number for number, text in enumerate(lines) if f"{platform.node()}:" in text)
    words = " ".join(lines[place : place + 2])
    assert all(f"{number} busy" in words for number in range(8) if number != 3)
    assert "3 OUT(1 lost)" in words


def test_of_many_devices_the_sums_are_told_and_which_are_out() -> None:
    text = "\n".join(shown(a_status(operators=5, findings=2, slots=300), 80, 24))
    assert "300 workers: 299 busy, 1 out; 150 lost" in text
    assert "out: 3" in text


def test_a_call_that_hangs_is_told() -> None:
    status = a_status(operators=1, findings=0, slots=3)
    work = [SlotActivity(4, 5, 77, 0.2), SlotActivity(3, 17, 77, 90.0), SlotActivity(EXAMINES, 0, 0, 12.0)]
    lines = shown(replace(status, under_way=work), 120, 24)
    told = "now: 1 at chunk 3: 17/77, 0:01:30 without news; 2 at a finding for 0:00:12; 0 at chunk 4: 5/77"
    assert told in [text.rstrip() for text in lines]
    assert status_line(replace(status, under_way=work)).endswith("; 1 at chunk 3: 17/77, 0:01:30 without news")
    assert "without news" not in status_line(status)


def test_the_line_and_the_json() -> None:
    status = a_status(operators=2, findings=2, slots=2, apart=3)
    told = status_line(status)
    assert told.startswith("1:02:05  ")
    assert " trials, 2512/s, 2 findings, 6:57:55 left; chunk 1234 (search), " in told
    assert "workers 2/2" in told
    assert "\n" not in told
    document = json.loads(json.dumps(status_document(status)))
    assert document["findings"] == 2
    assert document["operators"][0]["coverage"]["pairs"] == [1999, 2000]
    assert document["operators"][0]["tried_and_not_judged"] == {"limits": 3, "pairs": 120}
    assert document["workers"][1]["device"] == "cann:device=1"
    assert document["workers"][1]["chunk"] == 1
    assert [document["workers"][1][name] for name in ("judged", "of", "seconds_without_news")] == [17, 77, 0.5]
    assert document["last_findings"][0]["file"] == f"failures/{status.findings[-1].file}"
    assert document["host"] == platform.node()
    assert document["seconds_left"] == 6 * 3600 + 57 * 60 + 55


@pytest.mark.parametrize("terminal", [True, False])
def test_the_end_has_the_shape_of_a_run_s_with_what_was_covered(terminal: bool, tmp_path: Path) -> None:
    run = synthetic_run(tmp_path / "run", [record(softmax_case(1))])
    status = a_status(operators=OPERATORS_SHOWN + 8, findings=0, slots=8, apart=31)
    out = io.StringIO()
    console = Console(file=out, width=80, force_terminal=terminal, color_system=None, highlight=False)
    status = replace(status, summary=RunDirectory(run).summary(), ending="its time is over")
    show_campaign_end(console, status, run, load_specs())
    lines = out.getvalue().splitlines()
    starts = (
        "Verdict: ",
        "  Ran on: ",
        "  1:02:05, 1234 chunks: its time is over.",
        "Judged: ",
        "operator ",
        f"UpsampleNearestExact1d{OPERATORS_SHOWN + 7}",
        "... 8 more",
        "-N: so many more were tried",
        "No findings.",
        "Next: aclnn-cts report ",
        "RESULT ",
    )
    places_of(lines, starts)
    assert "-31" in out.getvalue()


class Deaf:
    """A watcher whose reader is gone."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.asked = 0

    def __call__(self, status: CampaignStatus, /) -> None:
        self.asked += 1
        raise self.error

    def notice(self, message: str, /) -> None:
        raise self.error


class Hears:
    def __init__(self) -> None:
        self.moments = 0
        self.notices: list[str] = []

    def __call__(self, status: CampaignStatus, /) -> None:
        self.moments += 1

    def notice(self, message: str, /) -> None:
        self.notices.append(message)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (BrokenPipeError(32, "Broken pipe"), "standard error: Broken pipe; the campaign goes on without"),
        (
            HarnessError("/x: cannot be written: No space left on device; free space and run again"),
            "/x: cannot be written: No space left on device; the campaign goes on without",
        ),
    ],
)
def test_what_cannot_be_shown_ends_nothing(error: Exception, said: str) -> None:
    deaf, hears = Deaf(error), Hears()
    watching: Watcher = Watchers([deaf, hears])
    status = a_status(operators=1, findings=0, slots=1)
    for _ in range(3):
        watching(status)
    watching.notice("the end")
    assert (deaf.asked, hears.moments) == (3, 3)
    assert hears.notices == [said, "the end"]


def test_a_screen_whose_terminal_is_gone_shows_no_more(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    reads, writes = os.pipe()
    stream = os.fdopen(writes, "w", buffering=1)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    shows = CampaignScreen(tmp_path)
    shows.begin("begins")
    os.close(reads)
    with pytest.raises(BrokenPipeError):
        shows(a_status(operators=1, findings=0, slots=1))
    shows(a_status(operators=1, findings=0, slots=1))
    shows.notice("it goes on")
    shows.close()
    stream.close()
