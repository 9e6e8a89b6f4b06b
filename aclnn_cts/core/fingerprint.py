"""What a failure looks like, without the case that shows it: what findings are made of."""

from __future__ import annotations

from enum import Enum

import msgspec

from aclnn_cts.core.faults import Fault


class Looks(str, Enum):
    """What a wrong value is like: the stable part of the message on it."""

    NONE = ""
    """No value is at fault."""
    ROUNDING = "rounding"
    """Off by less than a sixty-fourth of itself, as coarser arithmetic makes it."""
    FLUSHED = "flushed"
    """0 where a number belongs that is smaller than the normal ones of the dtype."""
    ZERO = "zero"
    """0 where a normal number belongs: a term that is missing, or an underflow on the way."""
    NEAR = "near"
    """Off by less than a quarter of itself, and more than coarser arithmetic makes it."""
    CLAMPED = "clamped"
    """The largest number of a dtype where another value belongs: inf, or what overflowed on the way."""
    WRONG = "wrong"
    STRAY = "stray"
    """inf or nan where a number belongs, as in memory that is not the operand's."""
    SPECIAL = "special"
    """Something else where inf or nan belongs."""

    __str__ = str.__str__


class Beside(msgspec.Struct, frozen=True, order=True, array_like=True):
    """What is wrong in a call besides what its verdict names: values of another output, memory, or the status."""

    output: str
    """Or input; empty for the status."""
    looks: Looks
    fault: str = ""
    """A code of `Fault`; empty for wrong values."""
    answer: str = ""
    """The status that came instead of the promised one."""

    @property
    def kind(self) -> str:
        """The code of its fault."""
        return self.fault or Fault.VALUE


class Fingerprint(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a failure has in common with others of the same fault; findings are groups of fingerprints."""

    operator: str
    check: str
    """What the trial checks; of a campaign's failure that one of its calls explains, `values`."""
    fault: str = ""
    """A code of `Fault`; empty where nothing failed."""
    clause: str = ""
    """The constraint that the call breaks."""
    answer: str = ""
    """The status, signal or end that came instead of the promised one."""
    looks: Looks = Looks.NONE
    output: str = ""
    mode: str = ""
    dtype: str = ""
    beside: tuple[Beside, ...] = ()
    """What else is wrong in the same call, by output."""

    @property
    def key(self) -> Fingerprint:
        """Without what only the grouping into findings asks for: failures with one key share a trial file."""
        return msgspec.structs.replace(self, looks=Looks.NONE, beside=())

    def text(self) -> str:
        """The fields that say something, on one line."""
        words = (getattr(self, name) for name in self.__struct_fields__ if name != "beside")
        beside = (" ".join(filter(None, msgspec.structs.astuple(item))) for item in self.beside)
        return " | ".join(filter(None, (*words, *beside)))


class GroupedFinding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One finding of a run, as its store keeps it."""

    fingerprints: tuple[Fingerprint, ...]
    """The most frequent one first."""
    numbers: tuple[int, ...]
    """Failures of each."""
    hidden: Beside | None = None
    """What it is where no verdict of its failures names it: each tells of a graver fault or of another output."""
    order_dependent: bool = False
    """Whether its failures show only after other calls."""
    waiver: str = ""
    """The waiver that accepts them; failures that it does not accept are findings of their own."""

    @property
    def failures(self) -> int:
        """Of all of them."""
        return sum(self.numbers)
