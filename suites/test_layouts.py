"""Strided views and their contiguous copies both give right results."""

from __future__ import annotations

from aclnn_cts.plugin import Conformance

CHECK = "layout"


def test_layouts(conformance: Conformance) -> None:
    conformance.check()
