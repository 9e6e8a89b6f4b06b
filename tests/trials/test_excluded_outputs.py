"""What a call writes into outputs that its arguments exclude: an observation, and a failure with `--strict-limits`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from aclnn_cts.core.case import Case
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Observation, Record, Result, observations_of
from aclnn_cts.execution.settings import RunnerSettings
from aclnn_cts.generate.choices import StreamChoices
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.sandbox.open_host import open_host
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.load import Specs, load_specs
from aclnn_cts.speclang.model import Spec
from aclnn_cts.trials.trial_runner import TrialRunner

SPECS = load_specs()
MASKED = {
    spec.operator: names
    for spec in SPECS.values()
    if (names := {item.name for item in spec.conditional if item.name in spec.outputs and not item.optional})
}
"""By operator, the outputs that calls may exclude; an optional one is null where it is not computed."""
TRIES = 100


def excluding(spec: Spec) -> Iterator[tuple[str, Case]]:
    """Outputs that a drawn call excludes, and the call."""
    sampler = Sampler(spec, Target(product=spec.usual_product))
    for number in range(TRIES):
        case = sampler.case(sampler.draw(StreamChoices(0, "masked", number), budget=64))
        for name in sorted(MASKED[spec.operator] - {*spec.computed_outputs(case)}):
            yield name, case


def given(spec: Spec) -> dict[str, Case]:
    """By output, a call that excludes it and gives it memory all the same."""
    return {
        name: case
        for name, case in excluding(spec)
        if case.arguments[name] is not None and case.call.phases == 2 and all(item.numel for _, item in case.tensors())
    }


def records(adapter: str, specs: Specs, cases: Sequence[Case], *, strict_limits: bool = False) -> list[Record]:
    target = Target(product=cases[0].product)
    settings = RunnerSettings(adapter=adapter, target=target, strict_limits=strict_limits)
    with open_host(adapter, target=target, specs=specs, isolate=False) as host:
        runner = TrialRunner(specs=specs, host=host, settings=settings)
        return [record for judged in runner.run(Trial("values", case) for case in cases) for record in judged.records]


# No valid call gives attention's dpseOut: a rule forbids that.
OPERATORS = sorted(name for name in MASKED if "FlashAttention" not in name)
ALWAYS_GIVEN = {
    "aclnnGridSampler2DBackward",
    "aclnnGridSampler3DBackward",
    "aclnnGroupNormSwishGrad",
    "aclnnThnnFusedLstmCellBackward",
}
"""A rule wants the excluded output given."""


@pytest.mark.parametrize("operator", sorted(set(OPERATORS) - ALWAYS_GIVEN))
def test_an_excluded_output_has_memory_in_half_of_the_calls_and_is_valid(operator: str) -> None:
    spec = SPECS[operator]
    found = list(excluding(spec))
    assert not any(evaluate(spec, case).broken for _, case in found)
    for name in MASKED[operator]:
        nulls = [case.arguments[name] is None for excluded, case in found if excluded == name]
        assert 0.3 < sum(nulls) / len(nulls) < 0.7


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_reference_leaves_excluded_outputs_and_a_write_is_observed(
    operator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend("tests/support")
    cases = given(SPECS[operator])
    assert set(cases) == MASKED[operator]
    left = records("reference", SPECS, list(cases.values()), strict_limits=True)
    assert {record.verdict.result for record in left} <= {Result.PASSED, Result.SKIPPED}
    for name, record in zip(cases, left, strict=True):
        assert record.attempts[0][0].buffers[name].unwritten == cases[name].arguments[name].numel  # type: ignore[union-attr]
    wrong = "wrong_adapters:Wrong,fault=excluded"
    for name, record in zip(cases, records(wrong, SPECS, list(cases.values())), strict=True):
        assert record.verdict.result != Result.FAILED
        assert observations_of(record.verdict) == [Observation.EXCLUDED]
        assert name in record.verdict.facts[Observation.EXCLUDED.value].split(", ")
    for record in records(wrong, SPECS, list(cases.values()), strict_limits=True):
        assert (record.verdict.result, record.verdict.kind) == (Result.FAILED, "stray-write")
