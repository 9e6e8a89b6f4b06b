"""Values are judged in every trial: where all outputs are wrong, none passes that has a supported call with values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice

import numpy as np
import pytest

from aclnn_cts.adapters.reference import ReferenceAdapter, ReferenceSession, Values
from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.dtypes import INTEGERS
from aclnn_cts.core.expected import Condensed, Float64, OracleInput
from aclnn_cts.core.target import Target
from aclnn_cts.core.verdict import FAILED_CHECKS, UNJUDGED_VALUES, VALUE_CHECK, Record, Result
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.model import Spec
from aclnn_cts.trials.batches import calls_of
from aclnn_cts.trials.checks.equal_calls import EQUAL_CALLS
from aclnn_cts.trials.plan import Profile, plan_parts
from aclnn_cts.trials.trial_runner import TrialRunner
from tests.support.targets import SELDOM_DECIDED
from tests.support.trial_runs import bench, specs

pytestmark = pytest.mark.mechanism

SMALL = Profile("small", random=4, breaks=1, memory=2, equal_calls=1, life_cycle=1)
MOST = 4
"""Trials of a part: a rule has one part with all its boundaries, and an operator one with all its precision probes."""
CHECKS = {"values", "boundary", "memory"}


class Wrong(ReferenceAdapter):
    """Documented statuses; nan in place of every number, 0 in place of nan, and another integer."""

    def open(self, target: Target, specs: Mapping[str, Spec]) -> ReferenceSession:
        return _Session(target, specs)


class _Session(ReferenceSession):
    def _condensed(self, spec: Spec, question: OracleInput) -> Condensed | None:
        return None

    def _values(self, spec: Spec) -> Values:
        right = super()._values(spec)

        def wrong(question: OracleInput) -> Mapping[str, Float64]:
            return {
                name: np.where(value == 0.0, 1.0, 0.0)
                if getattr(question.arguments.get(name), "dtype", "") in INTEGERS
                else np.where(np.isnan(value), 0.0, np.nan)
                for name, value in right(question).items()
            }

        return wrong


def planned(made: TrialRunner, spec: Spec) -> Iterator[Record]:
    for part in plan_parts([spec], product="atlas-a2", chosen=SMALL):
        for judged in made.run(list(islice(made.expand(part, seed=0), MOST))):
            yield from judged.records


def has_values(spec: Spec, case: Case) -> bool:
    """Whether a document supports a call whose outputs, those that it computes, have elements."""
    outputs = [
        case.arguments[item.name]
        for item in map(spec.parameter, spec.outputs)
        if item.is_computed(case.arguments, case.target)
    ]
    return (
        case.call.phases == 2
        and any(isinstance(item, Tensor) and item.numel for item in outputs)
        and not evaluate(spec, case).broken
    )


@pytest.mark.parametrize("operator", sorted(specs()))
def test_no_trial_with_a_supported_call_passes_where_all_values_are_wrong(operator: str) -> None:
    spec, made = specs()[operator], bench(Wrong())
    failed: Counter[str] = Counter()
    for record in planned(made, spec):
        calls = [asked.case for asked in calls_of(record.trial, specs(), capabilities=made.host.capabilities)]
        kind = record.trial.check
        if record.verdict.result == Result.PASSED and any(has_values(spec, case) for case in calls):
            assert UNJUDGED_VALUES in record.verdict.facts, (kind, record.verdict)
        if record.verdict.result == Result.FAILED:
            failed[kind] += 1
            if kind in EQUAL_CALLS or kind == "memory":
                assert VALUE_CHECK in record.verdict.facts[FAILED_CHECKS], record.verdict.message
    assert failed.keys() >= CHECKS - ({"memory"} if operator in SELDOM_DECIDED else set())
    assert operator in SELDOM_DECIDED or any(kind.startswith("life-cycle/") for kind in failed)
