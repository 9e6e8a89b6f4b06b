"""The arithmetic that an output may be computed in: what an error analysis needs to know of a compute model.

Oracles that count roundings need none of it. One that follows errors through a formula does: the error of exp depends
on the size of its argument's error, and not on a number of roundings alone.
"""

from __future__ import annotations

import msgspec

from aclnn_cts.core.rounding import BINARY_FORMATS, BinaryFormat

__all__ = ["Arithmetic", "FunctionError"]


class FunctionError(msgspec.Struct, frozen=True, kw_only=True):
    """How far an implementation's elementary function may be from the exact one: the sum of the three.

    - `ulps`: units in the last place of the result, in the format of intermediates (each at most 2 u of the result);
    - `absolute`: near zeros of the function, where no relative error is promised;
    - `relative`: of the result, for coarse hardware functions.
    """

    ulps: float = 0.0
    absolute: float = 0.0
    relative: float = 0.0


class Arithmetic(msgspec.Struct, frozen=True, kw_only=True):
    """One output's arithmetic: the format of intermediates, how they are rounded, and how good functions are."""

    accumulation: BinaryFormat = BINARY_FORMATS["FLOAT"]
    truncates: bool = False
    """Whether intermediates may be truncated, which doubles the unit roundoff."""
    flushes: bool = True
    """Whether operands and intermediates below the smallest normal number may become 0."""
    output: BinaryFormat = BINARY_FORMATS["FLOAT"]
    """The format that `store` rounds to."""
    functions: tuple[tuple[str, FunctionError], ...] = ()
    """By name, in alphabetical order."""

    @property
    def roundoff(self) -> float:
        """Unit roundoff of intermediates."""
        return self.accumulation.unit_roundoff * (2.0 if self.truncates else 1.0)

    @property
    def floor(self) -> float:
        """The error of one underflow: the smallest normal number where intermediates may be flushed, else the least."""
        form = self.accumulation
        return form.smallest_normal if self.flushes else form.smallest_subnormal

    def function(self, name: str) -> FunctionError:
        """The error of a function; KeyError where nothing is stated of it."""
        for known, error in self.functions:
            if known == name:
                return error
        raise KeyError(f"{name}: no accuracy is stated for this function; state one in specs/precision.yaml")
