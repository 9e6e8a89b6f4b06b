"""Deliberate precision faults, each beside the correct arithmetic from which it departs in one point.

The correct side of a fault is the coarsest that its compute model admits in that very point (HFLOAT32 of ten stored
bits beside FLOAT16, say), so that what differs is the fault and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from aclnn_cts.core.expected import Float64
from aclnn_cts.core.rounding import BINARY_FORMATS, BinaryFormat, binary_format, round_to
from benchmarks.emulations import Way, hfloat32, rounding_even

PERTURBATION = "2 ULP off"
"""The fault that is made on an output and not on the way to it (`judge_calls.perturbed`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arithmetic:
    """What a row of the table promises: its storage dtype, and the format that operands are rounded to, if any."""

    dtype: str
    operand: BinaryFormat | None

    @property
    def way(self) -> Way:
        """Correct arithmetic, with operands as coarse as promised."""
        return Way() if self.operand is None else Way(operand=rounding_even(self.operand))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault: where it can be made, and how."""

    name: str
    meaning: str
    applies: Callable[[Arithmetic], bool]
    harm: Callable[[Way, Arithmetic], Way]
    truncates_output: bool = False


def _half(way: Way, arithmetic: Arithmetic) -> Way:
    form = BINARY_FORMATS["FLOAT16" if arithmetic.dtype == "FLOAT" else arithmetic.dtype]
    return replace(way, accumulation=form)


def _twice(way: Way, arithmetic: Arithmetic) -> Way:
    form = arithmetic.operand
    if form is None:
        return way
    wider = binary_format(
        "one bit more",
        significand=form.significand + 1,
        min_exponent=form.min_exponent,
        max_exponent=form.max_exponent,
    )

    def operand(values: Float64) -> Float64:
        return round_to(round_to(values, wider), form)

    return replace(way, operand=operand)


FAULTS: Mapping[str, Fault] = MappingProxyType(
    {
        fault.name: fault
        for fault in (
            Fault(
                name="accumulate in half",
                meaning="partial sums in the half format of the output, FLOAT16 for FLOAT",
                applies=lambda arithmetic: True,
                harm=_half,
            ),
            Fault(
                name="HF32 for FP32",
                meaning="operands in HFLOAT32 with eleven stored bits where FLOAT is promised",
                applies=lambda arithmetic: arithmetic.dtype == "FLOAT" and arithmetic.operand is None,
                harm=lambda way, arithmetic: replace(way, operand=rounding_even(hfloat32(11))),
            ),
            Fault(
                name="FP16 for HF32",
                meaning="operands in FLOAT16 where HFLOAT32 is promised: as many bits as ten stored ones, less range",
                applies=lambda arithmetic: arithmetic.operand is not None and arithmetic.operand.name == "HFLOAT32",
                harm=lambda way, arithmetic: replace(way, operand=rounding_even(BINARY_FORMATS["FLOAT16"])),
            ),
            Fault(
                name="operands rounded twice",
                meaning="to one bit more than the mode's format, and then to it",
                applies=lambda arithmetic: arithmetic.operand is not None,
                harm=_twice,
            ),
            Fault(
                name="output truncated",
                meaning="the last rounding, to a half format, is toward zero",
                applies=lambda arithmetic: arithmetic.dtype != "FLOAT",
                harm=lambda way, arithmetic: way,
                truncates_output=True,
            ),
            Fault(
                name="one term dropped",
                meaning="of one sum with two terms or more",
                applies=lambda arithmetic: True,
                harm=lambda way, arithmetic: replace(way, factor=0.0),
            ),
            Fault(
                name="one term doubled",
                meaning="of one sum with two terms or more",
                applies=lambda arithmetic: True,
                harm=lambda way, arithmetic: replace(way, factor=2.0),
            ),
            Fault(
                name=PERTURBATION,
                meaning="one element, where the bound is narrower than that",
                applies=lambda arithmetic: True,
                harm=lambda way, arithmetic: way,
            ),
        )
    }
)
"""By name, in the order of the table."""
