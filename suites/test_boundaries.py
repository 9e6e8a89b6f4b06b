"""On each limit and one step to both sides, what is promised for that side holds."""

from __future__ import annotations

from aclnn_cts.plugin import Conformance

CHECK = "boundary"


def test_boundaries(conformance: Conformance) -> None:
    conformance.check()
