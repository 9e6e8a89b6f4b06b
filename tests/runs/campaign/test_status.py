"""What a campaign knows of its workers while they are at work."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from aclnn_cts.runs.campaign.campaign_state import Memory
from aclnn_cts.runs.campaign.status import EXAMINES, Progress, UnderWay
from aclnn_cts.workers.notes import Notes, Position, read_position


def test_a_position_is_what_the_worker_noted_last(tmp_path: Path) -> None:
    path = tmp_path / "worker-0"
    assert read_position(path) is None
    notes = Notes(path)
    notes.batch(3, 17, 77)
    assert read_position(path) == Position(counter=2, chunk=3, judged=17, total=77)
    notes.idle()
    assert read_position(path) == Position(counter=3, chunk=-1, judged=0, total=0)
    path.write_bytes(b"short")
    assert read_position(path) is None


def test_a_worker_without_news_is_told_from_one_that_moves() -> None:
    progress = Progress(cast("Memory", None))
    tasks = {0: 3, 1: 4, 2: EXAMINES, 3: 5}
    first = [Position(9, 3, 17, 77), Position(5, 4, 0, 50), Position(2, -1, 0, 0), None, None]
    assert progress.under_way(first, tasks, 10.0) == (
        UnderWay(3, 17, 77, 0.0),
        UnderWay(4, 0, 50, 0.0),
        UnderWay(EXAMINES, 0, 0, 0.0),
        # A worker of a cluster, whose notes cannot be read; and one without work.
        UnderWay(5, 0, 0, 0.0),
        None,
    )
    then = [first[0], Position(6, 4, 8, 50), *first[2:]]
    assert progress.under_way(then, tasks, 50.0) == (
        UnderWay(3, 17, 77, 40.0),
        UnderWay(4, 8, 50, 0.0),
        UnderWay(EXAMINES, 0, 0, 40.0),
        UnderWay(5, 0, 0, 40.0),
        None,
    )
    # What its worker noted of the chunk before says nothing of the next one, which begins now.
    assert progress.under_way(then, {0: 6}, 60.0)[0] == UnderWay(6, 0, 0, 0.0)
