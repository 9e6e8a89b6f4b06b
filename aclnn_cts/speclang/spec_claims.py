"""What a spec says of one statement of its document: which clauses encode it, or why no test can show it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class NotTestable(str, Enum):
    """Why no test can show what a statement says: the closed list."""

    ADVICE = "advice"
    """Advice to the reader; it says nothing of a call's result."""
    C_TYPE = "c_type"
    """The C type leaves no other choice."""
    HOST_MEMORY = "host_memory"
    """A kernel cannot reach host memory; tensors always lie on the device."""
    UNREAD = "unread"
    """This part of the document is not encoded yet."""
    NOTHING_SUCH = "nothing_such"
    """The operator has no such thing."""
    HEADER = "header"
    """A matter of headers and builds; calls go through the library's symbols."""
    INTRODUCTION = "introduction"
    """Introduces what follows and states nothing itself."""
    MISSING = "missing"
    """A sentence that the formula needs and the document lacks: the operator's spec is a partial one."""
    NAMES = "names"
    """Names that a compiled call does not hold."""
    NOT_SAID = "not_said"
    """What exactly is meant is not said."""
    NOTHING_SHOWN = "nothing_shown"
    """No figures to compare with."""
    PERFORMANCE = "performance"
    """Speed and memory are not measured."""
    PROGRAM_MISTAKE = "program_mistake"
    """A mistake of the example, not a statement about the operator."""
    PROTOTYPE_ONLY = "prototype_only"
    """A C call can follow the prototype alone."""
    QUALIFIER = "qualifier"
    """A qualifier that leaves no trace in the binary interface."""
    REFERENCE = "reference"
    """Refers to another document."""
    UNLISTED_PRODUCT = "unlisted_product"
    """A product that is not supported: nothing is promised there, not even an error."""


@dataclass(frozen=True, slots=True)
class SpecClaim:
    """What a spec says of one statement."""

    entry: str
    """The key that names it, with others perhaps."""
    clauses: tuple[str, ...] = ()
    is_plain: bool = False
    """Whether the proposed clauses are claimed too."""
    reason: NotTestable | None = None
