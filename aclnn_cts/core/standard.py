"""What the vendor's acceptance standards ask of test cases, as facts: a profile plans by them, a report states them.

Source: CANN open source, hicann/opbase, `docs/zh/ops_precision_standard/`: experimental_standard.md (commit adbe441)
is `cann-standard`, commercial_standard.md (in the history before commit 8b296c7) has the levels.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

import msgspec

LARGEST_SIZE = 1 << 20
"""Of a dimension of a generated case of the current standard."""
LARGEST_TENSOR = 1 << 31
"""Elements."""
LONGEST_DIMENSION = 1 << 31
"""Of the special case of the levels."""
POWER_SIZES = tuple(sorted({(1 << power) - below for power in range(21) for below in (0, 1)} - {0}))
"""Powers of two up to `LARGEST_SIZE`, and one less."""
STEPS = (15, 16)
"""Level L0: sizes are multiples of either."""


class SizeChoice(Enum):
    """How the sizes of dimensions are chosen."""

    POWERS = "powers"
    """`POWER_SIZES`."""
    STEPS = "steps"
    """Multiples of `STEPS`."""
    RANDOM = "random"


class Distribution(msgspec.Struct, frozen=True):
    """Values of floating inputs, and the percentage of cases that have them."""

    name: str
    """`uniform`, `small`, `normal` or `outliers`."""
    percent: int
    recipe: str
    bound: float = 0.0
    """Of `uniform`: values lie in [-bound, bound]."""
    mean: float = 0.0
    """Of `normal` and `outliers`: the mean lies in [-mean, mean]."""
    deviation: tuple[float, float] = (1.0, 1.0)
    """And the standard deviation between these."""


class ErrorRatioLimits(msgspec.Struct, frozen=True, kw_only=True):
    """At most so many times the benchmark's error: largest and mean relative error, root mean square."""

    mare: float
    mere: float
    rmse: float


class Standard(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of one standard, or of one level."""

    name: str
    tolerance: str
    """The acceptance rule that every case is held to (`judgement.tolerances`)."""
    sizes: SizeChoice
    values: tuple[Distribution, ...]
    ratios: ErrorRatioLimits | None = None
    """That `tolerance` holds errors to; None: it compares with no benchmark."""
    cases: int = 0
    """At least, for an operator; 0: no number is asked."""
    cases_by_dtype: int = 0
    """At least, for each dtype."""
    repeats: int = 1
    """Calls of each case."""
    generated_of_real: tuple[int, int] | None = None
    """Generated cases to cases of models, as a ratio."""
    special_shapes: int = 1
    """Different shapes for each special value and dtype."""
    output_elements: int = 0
    """Of all outputs together, at least."""
    is_cascade: bool = False
    """Whether a backward operator is judged on what a forward pass has saved."""
    is_combined: bool = False
    """Whether every combination of dtypes, formats, ranks and attributes is asked for, and not every one of each."""
    rejects: bool = False
    """Whether values outside documented bounds must be rejected."""
    has_bootstrap: bool = False
    """Whether a failed case is examined again with other seeds and a bootstrap."""


def _normal(percent: int) -> Distribution:
    return Distribution("normal", percent, "normal", mean=100.0, deviation=(1.0, 25.0))


_LEVEL_VALUES = (
    Distribution("small", 10, "uniform", bound=0.001),
    Distribution("uniform", 30, "uniform", bound=5.0),
    _normal(40),
    Distribution("outliers", 20, "outliers", mean=100.0, deviation=(1.0, 25.0)),
)
_LEVEL = Standard(
    name="",
    tolerance="",
    sizes=SizeChoice.RANDOM,
    values=_LEVEL_VALUES,
    cases_by_dtype=700,
    repeats=50,
    generated_of_real=(2, 1),
    special_shapes=4,
    output_elements=1_000_000,
    is_cascade=True,
    rejects=True,
    has_bootstrap=True,
)

STANDARDS: Mapping[str, Standard] = MappingProxyType(
    {
        entry.name: entry
        for entry in (
            Standard(
                name="cann-standard",
                tolerance="mixed",
                sizes=SizeChoice.POWERS,
                values=(
                    Distribution("uniform", 50, "uniform", bound=5.0),
                    Distribution("normal", 50, "normal", mean=5.0, deviation=(0.1, 2.0)),
                ),
                is_combined=True,
            ),
            msgspec.structs.replace(
                _LEVEL,
                name="cann-l0",
                tolerance="dual-l0",
                ratios=ErrorRatioLimits(mare=10, mere=2, rmse=2),
                sizes=SizeChoice.STEPS,
                values=(Distribution("uniform", 50, "uniform", bound=5.0), _normal(50)),
                cases=5_000,
                cases_by_dtype=200,
                generated_of_real=None,
            ),
            msgspec.structs.replace(
                _LEVEL,
                name="cann-l1",
                tolerance="dual-l1",
                ratios=ErrorRatioLimits(mare=5, mere=1.5, rmse=1.5),
                cases=10_000,
            ),
            msgspec.structs.replace(
                _LEVEL,
                name="cann-l2",
                tolerance="dual-l2",
                ratios=ErrorRatioLimits(mare=2, mere=1.2, rmse=1.2),
                cases=30_000,
                repeats=1_000,
            ),
        )
    }
)
"""By the name of their profile."""

SAVED_STATE = "saved/"
"""What the keys in a store begin with under which a run keeps what a forward pass saves; the operator follows."""
CASCADE = "saved by a forward pass"
"""The detail of a case that names the inputs which a forward pass on its other inputs gives."""
COMBINED_STATE = "combined/"
"""What the keys in a store begin with under which a run keeps what its standard combines; the operator follows."""

GENERATED, OF_MODELS = "generated", "of models"
"""What the source of a case says of it, where it is no special one."""


class SpecialCases(Enum):
    """Cases that stand apart from the combinations."""

    EMPTY = "empty tensor"
    ONE_ELEMENT = "shape [1]"
    ALL_ONES = "all dimensions 1"
    LONGEST = "longest dimension"
    """As long as the document and the standard allow."""
    LONG = "longest dimension with data"
    """As long as this harness and `--max-bytes` allow."""
    VALUES = "special values"


SPECIAL_VALUES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"inf": ("inf",), "-inf": ("-inf",), "nan": ("nan",), "-inf and inf": ("-inf", "inf")}
)
"""Element values, by name."""


_BETWEEN = "; "


def source_text(standard: Standard, what: str, details: Mapping[str, str]) -> str:
    """What a case's origin says: the standard, which of its cases it is, and what it has."""
    return _BETWEEN.join([f"{standard.name} {what}", *(f"{name}: {value}" for name, value in details.items())])


def with_detail(source: str, name: str, value: str) -> str:
    """The same with one thing more that the case has."""
    return f"{source}{_BETWEEN}{name}: {value}"


def source_details(source: str) -> tuple[str, str, Mapping[str, str]]:
    """The standard, which of its cases, and what a case has, from its origin's source; empty words for any other."""
    head, *details = source.split(_BETWEEN)
    name, _, what = head.partition(" ")
    if name not in STANDARDS:
        return "", "", {}
    return name, what, dict(entry.split(": ", 1) for entry in details if ": " in entry)
