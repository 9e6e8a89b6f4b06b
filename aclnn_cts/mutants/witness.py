"""Witness calls: valid calls that the planner did not choose, which say how often a mutant shows and whether it can.

Their sizes are drawn here: any number, multiples of any number up to 300 and what lies beside them, each doubling as
likely as any other. Dtypes, layouts, attributes and data are the sampler's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from aclnn_cts.core.case import Case
from aclnn_cts.core.target import Target
from aclnn_cts.generate.choices import Choices, stream_block
from aclnn_cts.generate.drawing import Drawing
from aclnn_cts.generate.negative import break_drawing
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.kinds import Constraint
from aclnn_cts.speclang.model import Spec

_ELEMENTS = (2, 16)
"""Least and greatest exponent of two of the most elements of a tensor."""
_MODULI = (2, 300)
_SEED = 0x57495453


@dataclass(frozen=True, slots=True)
class _WitnessSizes:
    """Sizes of one witness call (`generate.sizes.Sizes`)."""

    budget: int
    most_dimensions: int

    def size(self, choices: Choices, low: int, high: int, *, later: int, is_last: bool) -> int:
        """A dimension in [low, high]; those after it mostly keep room of their own."""
        if later and choices.chance(3, 4):
            high = max(low, int(high ** (1 / (1 + min(later, self.most_dimensions)))))
        if high <= low:
            return low
        value = _logarithmic(choices, low, high)
        if choices.chance(1, 2):
            modulus = choices.integer(*_MODULI) if choices.chance(1, 2) else 8 * choices.integer(1, 32)
            value = value // modulus * modulus + choices.pick((0, 0, 0, 1, -1))
        return min(max(value, low), high)


def _logarithmic(choices: Choices, low: int, high: int) -> int:
    start = max(low, 1)
    exponent = choices.integer(0, max(high // start, 1).bit_length() - 1)
    return min(start * (1 << exponent) + choices.integer(0, start * (1 << exponent)), high)


class Witnesses:
    """The witness calls of one operator; each number is one call, wherever it is made."""

    def __init__(self, spec: Spec, target: Target) -> None:
        self._spec = spec
        self._sampler = Sampler(spec, target)

    def calls(self, count: int, *, first: int = 0) -> Iterator[Case]:
        """Valid calls: number `first` and the `count` - 1 after it."""
        for choices in stream_block(_SEED, f"witness/{self._spec.operator}", first, count):
            yield self._sampler.case(self._drawing(choices))

    def broken(self, constraint: Constraint, count: int) -> Iterator[tuple[Case, frozenset[str]]]:
        """Calls that break one constraint, with all that they break; fewer where it cannot be proved."""
        stream = f"witness/{self._spec.operator}/{constraint.id}"
        for number, choices in enumerate(stream_block(_SEED, stream, 0, count)):
            derived = break_drawing(self._sampler, constraint, self._drawing(choices), number)
            if derived is not None:
                yield derived.case, frozenset(derived.broken)

    def _drawing(self, choices: Choices) -> Drawing:
        drawing = self._sampler.draw(choices)
        budget = _logarithmic(choices, 1 << _ELEMENTS[0], 1 << _ELEMENTS[1])
        names, picks = self._sampler.names.draw(choices, _WitnessSizes(budget, choices.integer(0, 2)))
        modes = self._spec.modes
        if modes is not None:
            names[modes.attribute] = drawing.names[modes.attribute]
        return msgspec.structs.replace(drawing, names=names, picks=picks)
