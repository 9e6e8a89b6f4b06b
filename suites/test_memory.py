"""Calls write their outputs and nothing else."""

from __future__ import annotations

from aclnn_cts.plugin import Conformance

CHECK = "memory"


def test_memory(conformance: Conformance) -> None:
    conformance.check()
