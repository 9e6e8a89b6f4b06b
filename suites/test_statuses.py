"""Calls that break a documented constraint return the promised status; their valid twins succeed."""

from __future__ import annotations

from aclnn_cts.plugin import Conformance

CHECK = "status"


def test_statuses(conformance: Conformance) -> None:
    conformance.check()
