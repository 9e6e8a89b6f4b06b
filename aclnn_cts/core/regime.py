"""Classes of sizes that calls are drawn from and counted by."""

from __future__ import annotations

import enum


class Regime(enum.Enum):
    """A class of sizes; a case may be in several."""

    TINY = "tiny"
    ODD = "odd"
    ALIGNED = "aligned"
    EDGE = "edge"
    LONG = "long"
    WIDE = "wide"
    REAL = "real"
    HEAVY = "heavy"


LEAST_LARGE = 64
"""Elements of the least size that training has large together with others: a block of a kernel."""
