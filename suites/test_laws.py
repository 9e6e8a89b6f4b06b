"""Outputs of related calls are related as the mathematics says."""

from __future__ import annotations

from aclnn_cts.plugin import Conformance

CHECK = "law/"


def test_laws(conformance: Conformance) -> None:
    conformance.check()
