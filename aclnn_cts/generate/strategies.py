"""The generator as Hypothesis strategies: the same decisions, drawn and shrunk by Hypothesis.

A failing case is shrunk towards few and small dimensions, plain layouts, the first dtype and mode, and exact data:
those are the simplest answers to the generator's draws.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aclnn_cts.core.case import Case
from aclnn_cts.core.target import Target
from aclnn_cts.generate.choices import HypothesisChoices
from aclnn_cts.generate.negative import DerivedCase, break_drawing
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.model import Constraint, Spec

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

WAYS = 64
"""Ways of breaking that a draw chooses among; a constraint with fewer takes the number modulo its own."""


def valid_cases(spec: Spec, target: Target) -> SearchStrategy[Case]:
    """Cases that hold every constraint of the target's product."""
    from hypothesis import strategies as st  # noqa: PLC0415 - half a second that only its users pay

    sampler = Sampler(spec, target)

    @st.composite
    def cases(draw: DrawFn) -> Case:
        return sampler.case(sampler.draw(HypothesisChoices(draw)))

    return cases()


def invalid_cases(spec: Spec, target: Target, constraint: Constraint) -> SearchStrategy[DerivedCase]:
    """Cases that break one constraint and what it entails, beside their valid twins; other drawings are rejected."""
    from hypothesis import reject  # noqa: PLC0415 - half a second that only its users pay
    from hypothesis import strategies as st  # noqa: PLC0415 - half a second that only its users pay

    sampler = Sampler(spec, target)

    @st.composite
    def cases(draw: DrawFn) -> DerivedCase:
        drawing = sampler.draw(HypothesisChoices(draw))
        derived = break_drawing(sampler, constraint, drawing, draw(st.integers(0, WAYS - 1)))
        if derived is None:
            reject()
        return derived

    return cases()
