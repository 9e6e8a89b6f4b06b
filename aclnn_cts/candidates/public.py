"""What of this package is public in `aclnn_cts`, imported when it is used; `aclnn_cts/__init__.pyi` has the types."""

from __future__ import annotations

import importlib
from typing import Any

PUBLIC = {
    "CaseArrays": "candidates.cases",
    "CheckResult": "candidates.check",
    "Expected": "candidates.check",
    "HarnessError": "core.errors",
    "Judgement": "candidates.verdict",
    "UsageError": "core.errors",
    "cases": "candidates.cases",
    "check": "candidates.check",
    "expected": "candidates.check",
    "judge": "candidates.judge",
    "reward": "candidates.verdict",
    "watch": "training.watch",
}


def public(name: str) -> Any:  # noqa: ANN401 - a function, a class or names
    """What has a public name, or `__all__` of them. Raises AttributeError for any other name."""
    if name == "__all__":
        return [*PUBLIC, "__version__"]
    if name not in PUBLIC:
        raise AttributeError(f"module 'aclnn_cts' has no attribute {name!r}")
    return getattr(importlib.import_module(f"aclnn_cts.{PUBLIC[name]}"), name)
