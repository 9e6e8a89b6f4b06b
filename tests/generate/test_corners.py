"""Corners: which there are, that calls are made at them, and that kernels which are wrong there alone are found."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from aclnn_cts.adapters.protocol import Buffers
from aclnn_cts.adapters.reference import ReferenceAdapter, ReferenceSession
from aclnn_cts.core.case import Case, Tensor, TensorList
from aclnn_cts.core.case_json import case_id
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Result
from aclnn_cts.generate.corner_recording import LONGER_CALLS
from aclnn_cts.generate.corner_walk import QUICK_ELEMENTS, CornerWalk, corner_cases
from aclnn_cts.generate.corners import factors_of
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.speclang.model import Spec
from aclnn_cts.trials.plan import PROFILES, corner_calls
from tests.support.targets import FIXED, HUGE, LEAST_COLUMNS, targets
from tests.support.trial_runs import bench, specs

pytestmark = pytest.mark.mechanism

SPECS = load_specs()
QUICK = PROFILES["quick"].corners
FEW_FACTORS = ("softmax_backward", "tanh_backward", "glu_backward", "upsample_linear1d_backward")
"""Operators whose walks take a second each."""
each = pytest.mark.parametrize(("spec", "product"), targets())


@each
def test_cases_at_corners_are_valid_within_the_budget_and_the_same_in_parts(spec: Spec, product: str) -> None:
    sampler = Sampler(spec, Target(product))
    cases = list(corner_cases(sampler, seed=3, first=0, count=24))
    for case in cases:
        assert not evaluate(spec, case).broken, case.origin.source
        assert case.call.phases == 2
        most = max(QUICK_ELEMENTS * (1 + (spec.stem in LEAST_COLUMNS)), HUGE.get(spec.stem, 0))
        assert max(math.prod(tensor.shape) for _, tensor in case.tensors() if tensor.shape not in FIXED) <= most
    other = Sampler(spec, Target(product))
    again = [*corner_cases(other, seed=3, first=20, count=4), *corner_cases(other, seed=3, first=0, count=20)]
    assert list(map(case_id, again)) == list(map(case_id, [*cases[20:], *cases[:20]]))


def laid_out(case: Case, name: str) -> bool:
    """Whether a tensor, or one of a list, lies otherwise in memory than row by row from the start."""
    tensors = [tensor for other, tensor in case.tensors() if other.partition("[")[0] == name]
    return any(not tensor.is_contiguous or tensor.offset for tensor in tensors)


@pytest.mark.parametrize("spec", [pytest.param(spec, id=spec.stem) for spec in SPECS.values()])
def test_calls_have_the_corners_that_they_are_said_to_have(spec: Spec) -> None:
    walk = CornerWalk(Sampler(spec, Target(spec.products[0])), seed=5)
    for _ in range(24):
        made = walk.next_call()
        case = made.case
        for factor, label in made.corners:
            kind, _, of = factor.partition(" ")
            if kind == "null":
                assert (case.arguments[of] is None) == (label == "null")
            elif kind == "mask":
                assert "".join("01"[item] for item in items(case, of)) == label
            elif kind == "contents":
                tensors = [tensor for name, tensor in case.tensors() if name.partition("[")[0] == of]
                assert label in {tensor.data.recipe for tensor in tensors if tensor.data is not None}
            elif factor == "view" and label != "contiguous":
                assert laid_out(case, label.partition(" ")[0])
            elif isinstance(argument := case.arguments.get(factor), int) and label.lstrip("-").isdigit():
                assert argument == int(label)


@pytest.mark.parametrize("spec", [pytest.param(spec, id=spec.stem) for spec in SPECS.values()])
def test_a_quick_plan_visits_every_factor(spec: Spec) -> None:
    walk = CornerWalk(Sampler(spec, Target(spec.products[0])), seed=0)
    # A quick plan has no room for sizes of these but the least.
    least_alone = {"sizes", "plane"} if spec.stem in HUGE else set()
    factors = {factor.name for factor in walk.factors}
    met: set[tuple[str, str]] = set()
    for _ in range(QUICK):
        met.update(walk.next_call().corners)
        if factors - least_alone <= {name for name, _ in met}:
            break
    assert walk.visited == len(met)
    assert factors - least_alone <= {name for name, _ in met} <= factors


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(spec, id=spec.stem, marks=() if spec.stem in FEW_FACTORS else pytest.mark.catalogue)
        for spec in SPECS.values()
    ],
)
def test_a_quick_plan_has_nine_tenths_of_the_feasible_pairs(spec: Spec) -> None:
    """With another seed than the recorded number of calls is of, which costs a few pairs."""
    sampler = Sampler(spec, Target(spec.products[0]))
    calls = corner_calls(spec, spec.products[0], PROFILES["quick"])
    quick, other = (walked(sampler, seed=seed, calls=calls) for seed, calls in ((2, calls), (3, LONGER_CALLS)))
    feasible = quick.pairs() | other.pairs()
    assert len(quick.pairs()) >= 0.88 * len(feasible)


def walked(sampler: Sampler, *, seed: int, calls: int) -> CornerWalk:
    walk = CornerWalk(sampler, seed=seed)
    for _ in range(calls):
        walk.next_call()
    return walk


class Seven(ReferenceAdapter):
    """Right, but for calls of one kind: their outputs are 7."""

    def __init__(self, condition: Callable[[Case], bool]) -> None:
        super().__init__()
        self._condition = condition

    def open(self, target: Target, specs: Mapping[str, Spec]) -> ReferenceSession:
        """A session that spoils these calls."""
        return _Spoiling(target, specs, self._condition)


class _Spoiling(ReferenceSession):
    def __init__(self, target: Target, specs: Mapping[str, Spec], condition: Callable[[Case], bool]) -> None:
        super().__init__(target, specs)
        self._condition = condition

    def _compute(self, spec: Spec, case: Case, buffers: Buffers) -> dict[str, NDArray[Any]]:
        results = super()._compute(spec, case, buffers)
        return {name: np.full_like(array, 7) for name, array in results.items()} if self._condition(case) else results


def shape(case: Case, name: str) -> tuple[int, ...]:
    value = case.arguments[name]
    assert isinstance(value, Tensor)
    return value.shape


def number(case: Case, name: str) -> float:
    value = case.arguments[name]
    assert isinstance(value, (int, float))
    return value


def items(case: Case, name: str) -> Sequence[Any]:
    value = case.arguments[name]
    return tuple(value)  # type: ignore[arg-type]  # of the arrays that the operators here have


def plane(case: Case, name: str) -> tuple[int, int]:
    value = case.arguments[name]
    assert isinstance(value, Tensor)
    height, width = value.shape[1:3] if value.format == "NHWC" else value.shape[2:4]
    return height, width


def whole_and_tall(case: Case) -> bool:
    (height, width), (rows, columns) = plane(case, "out"), plane(case, "gradOut")
    return rows in (2 * height, 3 * height) and columns in (2 * width, 3 * width) and height > width


def entries(case: Case) -> int:
    return max(len(value.items) for value in case.arguments.values() if isinstance(value, TensorList))


def leading_swapped(case: Case) -> bool:
    """A tensor of rank 5 or more whose first two axes are not in their order."""
    tensors = [tensor for _, tensor in case.tensors() if tensor.strides is not None and len(tensor.shape) > 4]
    return any(item.strides[0] < item.strides[1] and min(item.shape[:2]) > 1 for item in tensors if item.strides)


def channels_last(case: Case) -> bool:
    tensors = [tensor for name, tensor in case.tensors() if name in ("input", "gradOut")]
    return any(item.strides[1] == 1 < item.shape[1] for item in tensors if item.strides and len(item.shape) > 2)


def broadcast(case: Case, one: str, other: str, above: int) -> list[int]:
    """The axes, counted from the last, on which one tensor has a single element and the other more than so many."""
    pairs = itertools.zip_longest(reversed(shape(case, one)), reversed(shape(case, other)), fillvalue=1)
    return [axis for axis, (first, second) in enumerate(pairs) if first == 1 and second > above]


KERNELS: Mapping[str, tuple[str, Callable[[Case], bool]]] = {
    "ignore index inside the range": (
        "aclnnNLLLossBackward",
        lambda case: 0 < number(case, "ignoreIndex") < shape(case, "self")[-1] - 1,
    ),
    "ignore index outside the range": (
        "aclnnNLLLossBackward",
        lambda case: number(case, "ignoreIndex") >= shape(case, "self")[-1],
    ),
    "kernel above 16": (
        "aclnnMaxPool2dWithIndicesBackward",
        lambda case: max(items(case, "kernelSize")) > 16,
    ),
    "height and width at least 32": (
        "aclnnMaxPool2dWithIndicesBackward",
        lambda case: min(shape(case, "self")[-2:]) >= 32,
    ),
    "another eps": (
        "aclnnBatchNormBackward",
        lambda case: number(case, "eps") not in (1e-5, 1e-3, 1.0, 0.0),
    ),
    "whole ratios, height above width": ("aclnnUpsampleBilinear2dBackwardV2", whole_and_tall),
    "three layers": ("aclnnGRUBackward", lambda case: number(case, "numLayers") == 3),
    "more than 50 entries": ("aclnnGRUBackward", lambda case: entries(case) > 50),
    "first axes swapped from rank 5 on": ("aclnnSoftmaxBackward", leading_swapped),
    "channels last": ("aclnnBatchNormBackward", channels_last),
    "gradient broadcast over more than 64 columns": (
        "aclnnSigmoidBackward",
        lambda case: 0 in broadcast(case, "gradOutput", "output", 64),
    ),
    "both broadcast, one over more than 40 rows": (
        "aclnnSigmoidBackward",
        lambda case: (
            bool(broadcast(case, "gradOutput", "output", 40)) and bool(broadcast(case, "output", "gradOutput", 1))
        ),
    ),
    "one element of rank 2 or more": (
        "aclnnTanhBackward",
        lambda case: all(len(tensor.shape) > 1 and tensor.numel == 1 for _, tensor in case.tensors()),
    ),
    "height and width 1": (
        "aclnnGroupNormBackward",
        lambda case: math.prod(shape(case, "gradOut")[2:]) == 1,
    ),
    "overhanging windows by default": (
        "aclnnAvgPool2dBackward",
        lambda case: (
            bool(case.arguments["ceilMode"])
            and bool(case.arguments["countIncludePad"])
            and case.arguments["divisorOverride"] == 0
        ),
    ),
}


@pytest.mark.parametrize("fault", KERNELS)
def test_a_kernel_that_is_wrong_at_a_corner_alone_is_found(fault: str) -> None:
    operator, condition = KERNELS[fault]
    target = Target("atlas-a2")
    # Three attributes have to meet, one of them a single value of many: pairs alone do not see to that in a quick plan.
    heavy = fault == "overhanging windows by default"
    count = PROFILES["standard" if heavy else "quick"].corners
    cases = corner_cases(Sampler(specs()[operator], target), seed=0, first=0, count=count, heavy=heavy)
    trials = (Trial("values", case) for case in cases if condition(case))
    runner = bench(Seven(condition), target)
    records = (record for trial in trials for batch in runner.run([trial]) for record in batch.records)
    assert any(record.verdict.result == Result.FAILED for record in records)


def test_attributes_have_corners_outside_the_draws() -> None:
    factors = {factor.name: factor for factor in factors_of(Sampler(SPECS["aclnnNLLLossBackward"], Target()))}
    labels = {corner.label for corner in factors["ignoreIndex"].corners}
    assert {"-100", "0", "C - 1", "3", "4 to 15", "9223372036854775807"} <= labels
