"""From one worker of a campaign to two, by the wall: what else runs on the machine counts."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from aclnn_cts.core.target import Target
from aclnn_cts.execution.settings import RunnerSettings
from aclnn_cts.runs.campaign.head import StopLimits
from aclnn_cts.runs.campaign.resuming import CampaignOptions
from aclnn_cts.runs.campaign.session import fuzz
from aclnn_cts.runs.campaign.status import CampaignStatus
from aclnn_cts.speclang.load import Specs
from aclnn_cts.speclang.model import Spec
from benchmarks.measure import Figure, ratio
from benchmarks.shown import Row, row
from benchmarks.stored import Rounds

NAME = "campaign-scaling"
"""Of the stored figures."""

NEEDED = ("1 worker", "2 workers")
_CHUNKS = 24


def scaling(specs: Specs, chosen: tuple[Spec, ...], target: Target, rounds: int) -> Rounds:
    """Cases a second of wall time of each, in turns."""
    found: dict[str, list[float]] = {name: [] for name in NEEDED}
    for number in range(rounds):
        for workers, values in enumerate(found.values(), start=1):
            values.append(_fuzzed(specs, chosen, target, workers=workers, seed=number))
    return found


def shown(rounds: Rounds) -> Iterator[Row]:
    """Two workers over one."""
    one, two = (Figure(tuple(rounds[name])) for name in NEEDED)
    yield row("one worker to two, by the wall", ratio(two, one), ".2f", unit="times", least=1.8)


def _fuzzed(specs: Specs, chosen: tuple[Spec, ...], target: Target, *, workers: int, seed: int) -> float:
    """Cases a second of wall time of a whole campaign, its start and end left out."""
    folder = Path(tempfile.mkdtemp(prefix="aclnn-cts-bench-"))
    seen: list[tuple[float, int]] = []

    class Watch:
        def __call__(self, status: CampaignStatus, /) -> None:
            seen.append((status.seconds, status.summary.total.cases))

        def notice(self, message: str, /) -> None: ...

    try:
        options = CampaignOptions(
            arguments=(),
            specs=specs,
            operators=chosen,
            settings=RunnerSettings(adapter="reference", target=target),
            out=folder / "run",
            stop=StopLimits(chunks=_CHUNKS),
            workers=workers,
            seed=seed,
        )
        fuzz(options, [Watch()])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    first = next(entry for entry in seen if entry[1])
    last = seen[-1]
    return (last[1] - first[1]) / (last[0] - first[0])
