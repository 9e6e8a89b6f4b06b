"""The documents' worked examples behave as the documents say."""

from __future__ import annotations

from aclnn_cts.plugin import Conformance

CHECK = "example"


def test_examples(conformance: Conformance) -> None:
    conformance.check()
