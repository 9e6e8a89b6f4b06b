"""What a failure shows, without the case that shows it: what findings are made of."""

from __future__ import annotations

import msgspec

from aclnn_cts.core.faults import Family, Fault

PLAIN_CHECKS = frozenset({"values", "memory", "example", "boundary", "precision"})
"""Checks of one valid call by itself."""

WRITTEN = Fault.of(Family.VALUES, Family.OUTPUT, Family.TOLERANCE, Family.EQUAL_CALLS, Family.MEMORY)
"""Faults of what a call wrote, whatever constraint it breaks."""
_OF_MANY_CALLS = Fault.of(Family.LEAK)
"""Faults of many calls together, whatever each is refused for."""
_VALUES = Fault.of(Family.VALUES)


class Symptom(msgspec.Struct, frozen=True, order=True, array_like=True):
    """One thing that is wrong in a call, without dtype, call mode and check: the key of a fault of one operator."""

    fault: str
    """A code of `Fault`; of wrong values of any kind, `value`."""
    output: str = ""
    """Or input; empty where none is at fault."""
    clause: str = ""
    """The constraint that is not enforced."""
    answer: str = ""
    """The status, signal or end that came instead of the promised one."""


class Fingerprint(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a failure shows. Failures with one `key` share a trial file, and are of one finding as a rule."""

    operator: str
    check: str
    """What the trial checks."""
    fault: str = ""
    """A code of `Fault`; empty where nothing failed."""
    clause: str = ""
    """The constraint that the call breaks."""
    answer: str = ""
    """The status, signal or end that came instead of the promised one."""
    output: str = ""
    mode: str = ""
    dtype: str = ""
    also: tuple[Symptom, ...] = ()
    """What else is wrong in the same call."""

    @property
    def symptom(self) -> Symptom:
        """What the verdict names."""
        is_of_rule = self.fault not in WRITTEN and self.fault not in _OF_MANY_CALLS
        return Symptom(
            Fault.VALUE if self.fault in _VALUES else self.fault,
            self.output,
            self.clause if is_of_rule else "",
            self.answer,
        )

    @property
    def key(self) -> Fingerprint:
        """The symptom of the operator, and no more: the name of a finding and of its trial file."""
        fault, output, clause, answer = msgspec.structs.astuple(self.symptom)
        return Fingerprint(operator=self.operator, check="", fault=fault, clause=clause, answer=answer, output=output)

    def text(self) -> str:
        """The fields that say something, on one line."""
        words = (getattr(self, name) for name in self.__struct_fields__ if name != "also")
        also = (" ".join(filter(None, msgspec.structs.astuple(item))) for item in self.also)
        return " | ".join(filter(None, (*words, *also)))
