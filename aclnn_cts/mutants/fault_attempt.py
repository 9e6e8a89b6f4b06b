"""What came of one seeded fault or decoy with one seed, and in which buckets its failures fall."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from aclnn_cts.core.faults import Fault
from aclnn_cts.core.verdict import Signature

__all__ = ["Attempt", "bucket"]

_FAMILIES: Mapping[str, str] = {
    Fault.STATUS: "status",
    Fault.REJECTED: "rejected",
    Fault.VALUE: "value",
    Fault.MODEL: "value",
    Fault.LAW: "value",
    Fault.SPECIAL: "value",
    Fault.LIMIT_VALUE: "value",
    Fault.UNWRITTEN: "unwritten",
    Fault.GUARD: "stray write",
    Fault.INPUT: "input",
    Fault.CRASH: "ended",
    Fault.HANG: "ended",
    Fault.LEAK: "leak",
}


def bucket(signature: Signature) -> str:
    """What a person would look into together: a campaign's finding, whatever output, mode and dtype it shows in.

    `signature` is the finding's (`findings.signature.found_as`). One mistake in a kernel shows in many outputs, modes
    and dtypes, and as several kinds of wrong values; a campaign keeps these apart, since two mistakes must not become
    one.
    """
    what = signature.constraint or signature.promise
    return f"{signature.operator} | {what} | {_FAMILIES.get(signature.kind, signature.kind)}"


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one fault or decoy with one seed."""

    id: str
    seed: int
    found: bool
    promise: str = ""
    """Of the first failure, and so are kind and cases."""
    kind: str = ""
    cases: int = 0
    """Trials up to and with the first failure, or all of the plan where there is none."""
    seconds: float = 0.0
    buckets: tuple[str, ...] = ()
    """Of all failures that were seen (`bucket`), and so are findings and signatures."""
    findings: tuple[str, ...] = ()
    """The signatures under which a campaign would put the failures together (`signature.found_as`), as text."""
    signatures: tuple[str, ...] = ()
    """The failures' own signatures, as text."""
    errors: int = 0
    """Trials on which the harness itself failed."""
