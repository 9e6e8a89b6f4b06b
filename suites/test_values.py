"""Supported calls succeed with right values."""

from __future__ import annotations

from aclnn_cts.plugin import Conformance

CHECK = "values"


def test_values(conformance: Conformance) -> None:
    conformance.check()
