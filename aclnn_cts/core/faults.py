"""The faults that a verdict can name: family, severity and order of each, and its words in both languages."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum
from functools import cache
from pathlib import Path
from typing import NamedTuple


class Severity(str, Enum):
    """How grave a finding is, by its fault alone; the gravest first."""

    CRITICAL = "critical"
    """Memory, the process or the device is at risk."""
    MAJOR = "major"
    """A result or an answer is wrong."""
    MINOR = "minor"
    """Beyond an assumption or a rule of the ecosystem, and not beyond a document."""

    __str__ = str.__str__

    @property
    def order(self) -> int:
        """0 for the gravest."""
        return tuple(Severity).index(self)


class Family(str, Enum):
    """Faults that one mistake in a kernel shows as, now as the one and now as the other."""

    ENDED = "ended"
    """The process or the call did not come back."""
    MEMORY = "memory"
    """The call wrote where it must not."""
    LEAK = "leak"
    REJECTED = "rejected"
    ACCEPTED = "accepted"
    """A call that breaks a constraint is answered otherwise than promised; its valid twin is not concerned."""
    OUTPUT = "output"
    """An output came back incomplete, or in another form."""
    VALUES = "values"
    """Elements of one output are wrong."""
    EQUAL_CALLS = "equal-calls"
    """Calls that must give equal bits do not."""
    TOLERANCE = "tolerance"

    __str__ = str.__str__


class Fault(str, Enum):
    """What is wrong with a call (`Verdict.kind` where the result is failed), the gravest first.

    The value is the code in records, specs, waivers and reports.
    """

    family: Family
    severity: Severity
    order: int
    """Its place in this list, 0 for the gravest."""

    def __new__(cls, code: str, family: Family, severity: Severity) -> Fault:  # noqa: PYI034 - no Self in Python 3.10
        """A member, whose value is the code alone."""
        member = str.__new__(cls, code)
        member._value_ = code
        member.family, member.severity, member.order = family, severity, len(cls.__members__)
        return member

    CRASH = "crash", Family.ENDED, Severity.CRITICAL
    HANG = "hang", Family.ENDED, Severity.CRITICAL
    READ = "stray-read", Family.ENDED, Severity.CRITICAL
    """The call ended the process since memory beside an input cannot be read."""
    GUARD = "stray-write", Family.MEMORY, Severity.CRITICAL
    INPUT = "input-changed", Family.MEMORY, Severity.CRITICAL
    LEAK = "leak", Family.LEAK, Severity.CRITICAL
    """Calls that leave nothing behind make the process grow."""
    LATE = "late-write", Family.OUTPUT, Severity.CRITICAL
    REJECTED = "rejected", Family.REJECTED, Severity.MAJOR
    STATUS = "status", Family.ACCEPTED, Severity.MAJOR
    LIMIT_VALUE = "limit-value", Family.ACCEPTED, Severity.MAJOR
    UNWRITTEN = "unwritten", Family.OUTPUT, Severity.MAJOR
    SHAPE = "shape", Family.OUTPUT, Severity.MAJOR
    DTYPE = "dtype", Family.OUTPUT, Severity.MAJOR
    VALUE = "value", Family.VALUES, Severity.MAJOR
    NONDETERMINISTIC = "non-deterministic", Family.EQUAL_CALLS, Severity.MAJOR
    """Equal calls give different bits."""
    BATCH = "batch-variant", Family.EQUAL_CALLS, Severity.MAJOR
    """A row has other bits where other rows share its batch."""
    SPECIAL = "special-value", Family.VALUES, Severity.MAJOR
    MODEL = "beyond-model", Family.VALUES, Severity.MINOR
    """Beyond the bound of a compute model that no document states (its basis is published or assumed)."""
    TOLERANCE = "tolerance", Family.TOLERANCE, Severity.MINOR
    """Within the bound, and beyond an acceptance rule that the run was asked to hold the implementation to."""

    __str__ = str.__str__
    # A record that was made looks like the same one read from a file, which holds codes.
    __repr__ = str.__repr__

    @staticmethod
    def of(*families: Family) -> frozenset[Fault]:
        """All faults of some families."""
        return frozenset(fault for fault in Fault if fault.family in families)


def severity(code: str) -> Severity:
    """That of a fault by its code; of one that this version does not know, major."""
    return next((fault.severity for fault in Fault if fault == code), Severity.MAJOR)


def gravest_fault(codes: Collection[str]) -> str:
    """The code of the gravest of some faults; of those that this version does not know, the first by name."""
    return next((fault.value for fault in Fault if fault in codes), min(codes))


def current_code(code: str) -> str:
    """The code of a fault that a file of version 1 may call by its old code; any other word as it is."""
    return _OLD_CODES.get(code, code)


_OLD_CODES = {
    "ruler": "tolerance",
    "write outside the output": "stray-write",
    "input changed": "input-changed",
    "memory grows": "leak",
    "valid call rejected": "rejected",
    "wrong value beyond a limit": "limit-value",
    "output not written": "unwritten",
    "output shape": "shape",
    "output dtype": "dtype",
    "law not kept": "non-deterministic",
    "special value": "special-value",
    "value beyond the assumed model": "beyond-model",
}


class FaultWords(NamedTuple):
    """The words for a fault, each in English and Chinese."""

    name: tuple[str, str]
    meaning: tuple[str, str]


@cache
def fault_words() -> Mapping[str, FaultWords]:
    """The catalogue, by code (`Fault`)."""
    import yaml  # noqa: PLC0415 - runners import the codes, and need no words

    content = yaml.safe_load((Path(__file__).parent / "fault_words.yaml").read_text(encoding="utf-8"))
    return {
        code: FaultWords(name=tuple(entry["name"]), meaning=tuple(entry["meaning"])) for code, entry in content.items()
    }


def fault_name(code: str) -> str:
    """The English name of a fault, for people; any other word, such as a reason to skip, as it is."""
    words = fault_words().get(code)
    return words.name[0] if words is not None else code
