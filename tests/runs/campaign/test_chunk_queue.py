"""Chunks that come to nothing are tried again, and not for ever."""

from __future__ import annotations

from typing import cast

from aclnn_cts.runs.campaign.campaign_state import CampaignState
from aclnn_cts.runs.campaign.corpus.schedule import RANDOM, Chunk
from aclnn_cts.runs.campaign.queues import ChunkQueue


def test_chunk_is_retried_until_its_tries_are_used_up() -> None:
    queue = ChunkQueue(memory=cast("CampaignState", None), limit=None)
    chunk = Chunk(index=7, seed=0, snapshot="", phase=RANDOM, operator="aclnnSoftmaxBackward")
    for _ in range(3):
        assert queue.retry(chunk, tries=4)
        assert queue.take(ending=False) is chunk
    assert not queue.retry(chunk, tries=4)
    assert not queue.again
