"""Cases that waivers pin, before all others: they show whether the failure that is waived is still there."""

from __future__ import annotations

from aclnn_cts.plugin import Conformance

CHECK = "pinned/"


def test_pinned(conformance: Conformance) -> None:
    conformance.check()
