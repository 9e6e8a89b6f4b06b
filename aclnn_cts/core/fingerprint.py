"""What a failure looks like, without the case that shows it: what findings are made of."""

from __future__ import annotations

from enum import Enum

import msgspec

__all__ = ["Beside", "Fingerprint", "GroupedFinding", "Looks"]


class Looks(str, Enum):
    """What a wrong value is like: the stable part of the message on it."""

    NONE = ""
    """No value is at fault."""
    ROUNDING = "rounding"
    """Off by less than a sixty-fourth of itself, as coarser arithmetic makes it."""
    WRONG = "wrong"
    STRAY = "stray"
    """inf or nan where a number belongs, as in memory that is not the operand's."""
    SPECIAL = "special"
    """Something else where inf or nan belongs."""

    __str__ = str.__str__


class Beside(msgspec.Struct, frozen=True, order=True, array_like=True):
    """Another output that is wrong in a call than the one that its verdict names."""

    output: str
    looks: Looks


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
        return " | ".join(filter(None, (*words, *(f"{item.output} {item.looks}" for item in self.beside))))


class GroupedFinding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One finding of a run, as its store keeps it."""

    fingerprints: tuple[Fingerprint, ...]
    """The most frequent one first."""
    numbers: tuple[int, ...]
    """Failures of each."""
    values_of: str = ""
    """The output whose wrong values it is, where each of its failures shows a graver fault or another output first."""
    order_dependent: bool = False
    """Whether its failures show only after other calls."""
    waiver: str = ""
    """The waiver that accepts them; failures that it does not accept are findings of their own."""

    @property
    def failures(self) -> int:
        """Of all of them."""
        return sum(self.numbers)
