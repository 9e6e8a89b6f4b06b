"""Calls with every bit pattern of a dtype of 16 bits."""

from __future__ import annotations

import numpy as np
import pytest

from aclnn_cts.core.target import Target
from aclnn_cts.generate.exhaustive import SHAPE, exhaustive_cases
from aclnn_cts.generate.recipes import case_arrays
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.speclang.model import Spec
from aclnn_cts.trials.plan import PROFILES, CaseSource, plan_parts

ELEMENTWISE = [pytest.param(spec, id=spec.stem) for spec in load_specs().values() if spec.elementwise]


def planned(spec: Spec, product: str, profile: str = "standard") -> int:
    parts = plan_parts([spec], product=product, chosen=PROFILES[profile])
    return sum(part.count for part in parts if part.source is CaseSource.EXHAUSTIVE)


@pytest.mark.parametrize("spec", ELEMENTWISE)
def test_every_pattern_goes_through_every_input_of_a_valid_call(spec: Spec) -> None:
    product = spec.products[0]
    seen = set()
    for case in exhaustive_cases(Sampler(spec, Target(product)), seed=1, first=0, count=planned(spec, product)):
        assert not evaluate(spec, case).broken
        name = (case.origin.source or "").rpartition(" ")[2]
        tensor = case.tensor(name)
        assert tensor is not None
        assert tensor.shape == SHAPE
        seen.add((name, tensor.dtype))
    assert seen == {
        (name, dtype)
        for name in spec.inputs
        for dtype in spec.dtypes_of(spec.parameter(name), product)
        if dtype in ("FLOAT16", "BF16")
    }


def test_the_patterns_are_all_numbers_of_the_dtype() -> None:
    spec = load_specs()["aclnnSigmoidBackward"]
    [case] = exhaustive_cases(Sampler(spec, Target("atlas-a2")), seed=0, first=0, count=1)
    [contents] = [array for array in case_arrays(case, spec.inputs).values() if array.dtype.itemsize == 2][:1]
    bits = contents.view(np.uint16)
    assert len(np.unique(bits)) == 65_536 == contents.size


def test_standard_plans_have_them_and_quick_ones_do_not() -> None:
    sigmoid, softmax = (load_specs()[name] for name in ("aclnnSigmoidBackward", "aclnnLogSoftmaxBackward"))
    # Four calls of each of two inputs, as FLOAT16 and BF16.
    assert (planned(sigmoid, "atlas-a2"), planned(sigmoid, "atlas-a2", "quick")) == (16, 0)
    assert planned(softmax, "atlas-a2") == 0
