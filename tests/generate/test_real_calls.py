"""Calls of training runs and networks: what a plan makes of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.case_json import case_id
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.generate.choices import StreamChoices
from aclnn_cts.generate.real_calls import (
    QUICK_ELEMENTS,
    STANDARD_ELEMENTS,
    real_case,
    real_cases,
    recorded_calls,
)
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.evaluate import first_broken
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.speclang.model import Spec
from aclnn_cts.speclang.package import recorded_lines
from aclnn_cts.trials.checks.registry import check_by_id
from aclnn_cts.trials.plan import PROFILES, CaseSource, plan_parts

SPECS = load_specs()
RECORDED = [pytest.param(spec, id=spec.stem) for spec in SPECS.values() if recorded_lines(spec.stem)]


def attributes(case: Case) -> Mapping[str, Any]:
    """Those that are no sizes."""
    plain = {name: value for name, value in case.arguments.items() if isinstance(value, (bool, float, str))}
    return plain | {name: value for name, value in case.arguments.items() if name in {"padding", "stride", "dilation"}}


@pytest.mark.parametrize("spec", RECORDED)
def test_every_recorded_call_is_made_for_some_product_within_the_budget(spec: Spec) -> None:
    samplers = [Sampler(spec, Target(product)) for product in spec.products]
    for number, call in enumerate(recorded_calls(spec)):
        assert all(tensor.data is None for _, tensor in call.tensors())
        made = (
            real_case(sampler, call, StreamChoices(0, "test", number), most=STANDARD_ELEMENTS) for sampler in samplers
        )
        case = next(case for case in made if case is not None)
        assert not first_broken(spec, case)
        assert max(tensor.numel for _, tensor in case.tensors()) <= STANDARD_ELEMENTS
        assert attributes(case) == attributes(call)


@pytest.mark.parametrize("spec", RECORDED)
def test_a_quick_plan_has_two_real_calls_and_a_longer_one_has_each(spec: Spec) -> None:
    product = spec.products[0]
    sampler = Sampler(spec, Target(product))

    def planned(profile: str) -> list[Trial]:
        parts = plan_parts([spec], product=product, chosen=PROFILES[profile])
        real = [part for part in parts if part.source is CaseSource.REAL]
        return [trial for part in real for trial in check_by_id(part.check, where="test").trials(part, sampler, seed=1)]

    quick, standard = planned("quick"), planned("standard")
    assert len(quick) == 2
    assert max(tensor.numel for trial in quick for _, tensor in trial.case.tensors()) <= QUICK_ELEMENTS
    assert len({case_id(trial.case) for trial in standard}) >= min(8, len(recorded_lines(spec.stem)))
    assert len(standard) >= 0.9 * len(recorded_lines(spec.stem))


def test_calls_are_the_same_in_parts_and_others_by_seed() -> None:
    spec = SPECS["aclnnConvolutionBackward"]
    whole = list(real_cases(Sampler(spec, Target()), seed=3, first=0, count=12))
    sampler = Sampler(spec, Target())
    parts = [*real_cases(sampler, seed=3, first=8, count=4), *real_cases(sampler, seed=3, first=0, count=8)]
    assert list(map(case_id, parts)) == list(map(case_id, [*whole[8:], *whole[:8]]))
    assert whole != list(real_cases(sampler, seed=4, first=0, count=12))


def scaled(operator: str, arguments: Mapping[str, Any], most: int) -> Case:
    spec = SPECS[operator]
    case = real_case(Sampler(spec, Target()), Case(operator, arguments, Target()), StreamChoices(0, "", 0), most=most)
    assert case is not None
    return case


def tensor(*shape: int, strides: tuple[int, ...] | None = None) -> Tensor:
    storage = None if strides is None else (sum(map(math.prod, zip(shape, strides, strict=True))),)
    return Tensor(shape, "FLOAT16", "ND", strides, 0, storage)


def softmax(shape: tuple[int, ...], most: int, **options: Any) -> Tensor:
    x = tensor(*shape, **options)
    case = scaled("aclnnSoftmaxBackward", {"gradOutput": x, "output": tensor(*shape), "dim": -1, "out": x}, most)
    made = case.tensor("gradOutput")
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("shape", "most", "expected"),
    [
        ((8, 5, 7), 280, (8, 5, 7)),
        ((8, 5, 7), 105, (3, 5, 7)),
        ((8, 5, 7), 21, (2, 1, 7)),
        ((8, 5, 7), 7, (1, 1, 7)),
        ((2, 64, 10), 400, (2, 16, 10)),
        ((1, 4096), 1000, (1, 992)),
    ],
)
def test_leading_axes_shrink_first_and_multiples_of_16_stay_so(
    shape: tuple[int, ...], most: int, expected: tuple[int, ...]
) -> None:
    assert softmax(shape, most).shape == expected


@pytest.mark.parametrize(
    ("most", "strides", "expected"),
    [
        (224, (1, 64, 8), (1, 64, 8)),
        (224, (512, 1, 64), (512, 1, 64)),
        (28, (1_000, 20, 1), (140, 20, 1)),
        (28, (0, 8, 1), None),
    ],
)
def test_the_order_of_axes_in_memory_and_gaps_are_kept_but_no_shared_memory(
    most: int, strides: tuple[int, ...], expected: tuple[int, ...] | None
) -> None:
    assert softmax((4, 7, 8), most, strides=strides).strides == expected


def test_a_spec_with_another_prototype_has_no_recorded_calls() -> None:
    spec = SPECS["aclnnSoftmaxBackward"]
    assert list(recorded_calls(spec))
    assert not list(recorded_calls(replace(spec, operator="aclnnOtherBackward")))
    assert not list(recorded_calls(replace(spec, parameters=spec.parameters[:-1])))
