"""What Hypothesis does in a round: case descriptions through our own sampler, and the plain tests."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import hypothesis
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st

from aclnn_cts.core.case import Case
from aclnn_cts.generate.choices import HypothesisChoices
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.model import Spec

if TYPE_CHECKING:
    from benchmarks.plain import PlainTest


class Tally(Protocol):
    """What a caller wants to know of the examples."""

    calls: int
    elements: int


def _run(strategy: Any, body: Callable[[Any], None], count: int, seed: int) -> None:  # noqa: ANN401 - Hypothesis' own
    """Generate `count` examples and nothing else: no database, no shrinking, no health check."""

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @hypothesis.given(strategy)
    def test(example: Any) -> None:  # noqa: ANN401 - of any strategy
        body(example)

    test()


def descriptions_by_hypothesis(spec: Spec, sampler: Sampler, count: int) -> Callable[[int], int]:
    """The cases of a sampler by Hypothesis' choices, all constraints evaluated; gives how many there were."""

    def cases(draw: Callable[[Any], Any]) -> Case:
        return sampler.case(sampler.draw(HypothesisChoices(draw)))

    strategy = st.composite(cases)()

    def work(number: int) -> int:
        done = 0

        def body(case: Case) -> None:
            nonlocal done
            evaluate(spec, case)
            done += 1

        _run(strategy, body, count, number)
        return done

    return work


def plain_examples(
    test: PlainTest, count: int, tally: Tally, *, dense: bool, kernel: bool = True
) -> Callable[[int], int]:
    """A plain test; gives how many examples were compared. One that fails is compared too, and not shrunk.

    Without `kernel` torch's is not called, and what is expected stands in its place.
    """
    check = test.check if kernel else test.check_itself
    strategy = st.composite(lambda draw: test.draw(draw, dense))()

    def work(number: int) -> int:
        done = 0

        def body(arguments: tuple[Any, ...]) -> None:
            nonlocal done
            with contextlib.suppress(AssertionError):
                check(*arguments)
            done += 1
            tally.calls += 1
            tally.elements += sum(argument.numel() for argument in arguments if hasattr(argument, "numel"))

        _run(strategy, body, count, number)
        return done

    return work
