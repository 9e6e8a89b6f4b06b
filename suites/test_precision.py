"""Numbers that tell formats apart come out as the promised precision demands."""

from __future__ import annotations

from aclnn_cts.plugin import Conformance

CHECK = "precision"


def test_precision(conformance: Conformance) -> None:
    conformance.check()
