"""Conformance tests for the aclnn backward operators: documents in, verdicts out."""

from __future__ import annotations

__version__ = "0.2.0"
