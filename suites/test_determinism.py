"""Equal calls give equal bits where a document promises it."""

from __future__ import annotations

from aclnn_cts.plugin import Conformance

CHECK = "determinism"


def test_determinism(conformance: Conformance) -> None:
    conformance.check()
