"""Executors, streams, workspaces and the operator cache behave as the two-phase interface says."""

from __future__ import annotations

from aclnn_cts.plugin import Conformance

CHECK = "life-cycle/"


def test_life_cycle(conformance: Conformance) -> None:
    conformance.check()
