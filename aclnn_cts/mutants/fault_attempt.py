"""What came of one seeded fault or decoy with one seed."""

from __future__ import annotations

import msgspec

from aclnn_cts.core.fingerprint import Fingerprint


class SeedResult(msgspec.Struct, frozen=True, kw_only=True):
    """One cell of the kill matrix: one fault with one seed."""

    seed: int
    found: bool
    check: str
    """Of the first failure, and so are kind and cases."""
    kind: str
    cases: int
    """Trials up to and with the first failure, or all of the plan where there is none."""
    seconds: float
    errors: int = 0
    """Trials on which the harness itself failed."""


class Attempt(SeedResult, frozen=True, kw_only=True):
    """What came of one fault or decoy with one seed."""

    id: str
    findings: tuple[str, ...] = ()
    """The findings of all failures that were seen, each by its most frequent fingerprint, as text."""
    failures: tuple[tuple[Fingerprint, int], ...] = ()
    """How many failures had each fingerprint."""
