"""What a campaign knows of its workers while they are at work."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from aclnn_cts.runs.campaign.campaign_state import CampaignState
from aclnn_cts.runs.campaign.status import EXAMINES, Progress, SlotActivity
from aclnn_cts.workers.notes import ProgressNotes, WorkerProgress, read_progress


def test_a_position_is_what_the_worker_noted_last(tmp_path: Path) -> None:
    path = tmp_path / "worker-0"
    assert read_progress(path) is None
    notes = ProgressNotes(path)
    notes.note_batch(3, 17, 77)
    assert read_progress(path) == WorkerProgress(counter=2, chunk=3, judged=17, total=77)
    notes.note_idle()
    assert read_progress(path) == WorkerProgress(counter=3, chunk=-1, judged=0, total=0)
    path.write_bytes(b"short")
    assert read_progress(path) is None


def test_a_worker_without_news_is_told_from_one_that_moves() -> None:
    progress = Progress(cast("CampaignState", None))
    tasks = {0: 3, 1: 4, 2: EXAMINES, 3: 5}
    first = [WorkerProgress(9, 3, 17, 77), WorkerProgress(5, 4, 0, 50), WorkerProgress(2, -1, 0, 0), None, None]
    assert progress.under_way(first, tasks, 10.0) == (
        SlotActivity(3, 17, 77, 0.0),
        SlotActivity(4, 0, 50, 0.0),
        SlotActivity(EXAMINES, 0, 0, 0.0),
        # A worker of a cluster, whose notes cannot be read; and one without work.
        SlotActivity(5, 0, 0, 0.0),
        None,
    )
    then = [first[0], WorkerProgress(6, 4, 8, 50), *first[2:]]
    assert progress.under_way(then, tasks, 50.0) == (
        SlotActivity(3, 17, 77, 40.0),
        SlotActivity(4, 8, 50, 0.0),
        SlotActivity(EXAMINES, 0, 0, 40.0),
        SlotActivity(5, 0, 0, 40.0),
        None,
    )
    # What its worker noted of the chunk before says nothing of the next one, which begins now.
    assert progress.under_way(then, {0: 6}, 60.0)[0] == SlotActivity(6, 0, 0, 0.0)
