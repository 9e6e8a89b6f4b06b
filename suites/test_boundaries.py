"""On each limit and one step to both sides, the promise of that side is kept."""

from __future__ import annotations

from aclnn_cts.plugin import Conformance

PROMISE = "boundary"


def test_boundaries(conformance: Conformance) -> None:
    conformance.check()
