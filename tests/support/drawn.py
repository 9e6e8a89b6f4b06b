"""Valid calls of one operator, drawn from a stream of their own."""

from __future__ import annotations

from collections.abc import Iterator

from aclnn_cts.core.case import Case
from aclnn_cts.generate.choices import stream_block
from aclnn_cts.generate.sampler import Sampler


def drawn(sampler: Sampler, count: int, *, stream: str, seed: int = 1, budget: int | None = None) -> Iterator[Case]:
    """The first cases of a stream; `budget`: most elements of a tensor."""
    for choices in stream_block(seed, stream, 0, count):
        yield sampler.case(sampler.draw(choices, budget=budget))
