"""The screen of a campaign: it fits the terminal whatever there is to show, and the line says the same."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from aclnn_cts.cli.campaign_screen import line, progress, screen
from aclnn_cts.core.verdict import Signature
from aclnn_cts.engine.campaign.dispatch import Health, Slot
from aclnn_cts.engine.campaign.finding import Confirmed, Finding
from aclnn_cts.engine.campaign.promise_coverage import Share
from aclnn_cts.engine.campaign.status import OperatorStatus, Status
from aclnn_cts.engine.summary import Summary


def a_status(*, operators: int, findings: int, slots: int) -> Status:
    summary = Summary()
    summary.plan("aclnnSoftmaxBackward", "valid", number=123_456)
    coverage = {
        "constraints": Share(40, 40),
        "limits": Share(38, 39),
        "laws": Share(9, 9),
        "pairs": Share(1999, 2000),
    }
    found = [
        Finding(
            signature=Signature(
                operator="aclnnUpsampleNearestExact1dBackward",
                promise="values",
                kind="value beyond the assumed model",
                output="gradInput",
                mode="ALLOW_FP32_DOWN_PRECISION",
                dtype="FLOAT16",
                symptom=str(number),
            ),
            failures=number,
            confirmed=Confirmed.DEVICE,
        )
        for number in range(findings)
    ]
    return Status(
        seconds=3725.0,
        limit_seconds=28_800.0,
        chunks=1234,
        limit_chunks=None,
        phase="search",
        rate=2512.3,
        summary=summary,
        findings=found,
        slots=[Slot(f"worker {number}", "cann", Health.BUSY, lost=number) for number in range(slots)],
        operators=[
            OperatorStatus(
                name=f"aclnnUpsampleNearestExact1d{number}Backward",
                cases=987_654,
                failed=number,
                worst=number / 10.0,
                coverage=coverage,
                factors={},
                unjudged=0,
            )
            for number in range(operators)
        ],
        disk_bytes=77 << 20,
        disk_limit=2 << 30,
        waiting=3,
    )


def shown(status: Status, width: int, height: int) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=width, height=height, force_terminal=False, highlight=False)
    console.print(screen(status, Path("runs/20260101-000000-fuzz-cann"), width=width, height=height))
    return out.getvalue().rstrip("\n").split("\n")


@pytest.mark.parametrize(("operators", "findings", "slots"), [(1, 0, 1), (5, 3, 2), (40, 200, 8), (40, 200, 300)])
@pytest.mark.parametrize(("width", "height"), [(80, 24), (200, 60), (60, 24)])
def test_it_fits(operators: int, findings: int, slots: int, width: int, height: int) -> None:
    lines = shown(a_status(operators=operators, findings=findings, slots=slots), width, height)
    assert len(lines) < height
    assert max(map(len, lines)) <= width


def test_what_it_says() -> None:
    text = "\n".join(shown(a_status(operators=2, findings=2, slots=2), 80, 24))
    assert "campaign 1:02:05 of 8:00:00" in text
    assert "2512/s" in text
    assert "worker 1 busy (lost 1)" in text
    assert "2 findings, 0 waived, 3 to confirm" in text
    assert text.index("UpsampleNearestExact1d1") < text.index("UpsampleNearestExact1d0")
    # 1999 of 2000 are not all.
    assert "99.9%" in text
    assert "only on this device, 1 case: UpsampleNearest" in text


def test_the_line_and_the_json() -> None:
    status = a_status(operators=2, findings=2, slots=2)
    told = line(status)
    assert told.startswith("1:02:05 chunk 1234 (search), 123456 cases, 2512/s, ")
    assert "workers 2/2" in told
    assert "\n" not in told
    document = json.loads(json.dumps(progress(status)))
    assert document["findings"] == 2
    assert document["operators"][0]["coverage"]["pairs"] == [1999, 2000]
