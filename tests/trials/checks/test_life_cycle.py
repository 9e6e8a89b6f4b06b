"""A call that differs from the one before in one attribute: what such a pair is, and what it finds."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from numpy.typing import NDArray

from aclnn_cts.adapters.protocol import Buffers
from aclnn_cts.adapters.reference import ReferenceAdapter, ReferenceSession
from aclnn_cts.core.case import Argument, Case, Tensor
from aclnn_cts.core.case_json import case_from_json
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import OTHER_CASE, Trial
from aclnn_cts.core.verdict import Record, Result
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.model import Spec
from aclnn_cts.trials.checks.life_cycle import LIFE_CYCLES
from aclnn_cts.trials.plan import LIFE_CYCLE_KIND, Part
from aclnn_cts.trials.trial_runner import TrialRunner
from tests.support.targets import targets
from tests.support.trial_runs import bench, specs

pytestmark = pytest.mark.mechanism

CHECK = "life-cycle/other-attributes"
QUICK = 3
"""Trials of the quick profile."""


class Forgetful(ReferenceAdapter):
    """Its operator cache knows a call by its tensors alone."""

    def open(self, target: Target, specs: Mapping[str, Spec]) -> ReferenceSession:
        return _Session(target, specs)


class _Session(ReferenceSession):
    def __init__(self, target: Target, specs: Mapping[str, Spec]) -> None:
        super().__init__(target, specs)
        self._attributes: dict[tuple[Any, ...], Mapping[str, Argument]] = {}

    def _compute(self, spec: Spec, case: Case, buffers: Buffers) -> dict[str, NDArray[Any]]:
        key = (spec.operator, *((name, item.shape, item.strides, item.dtype) for name, item in case.tensors()))
        own: dict[str, Argument] = {
            name: value for name, value in case.arguments.items() if not isinstance(value, Tensor)
        }
        planned = {**case.arguments, **self._attributes.setdefault(key, own)}
        return super()._compute(spec, msgspec.structs.replace(case, arguments=planned), buffers)


def trials(spec: Spec, product: str, count: int = 12) -> list[Trial]:
    part = Part(spec.operator, CHECK, LIFE_CYCLE_KIND, count=count)
    return list(LIFE_CYCLES[CHECK].trials(part, Sampler(spec, Target(product)), seed=0))


def records(made: TrialRunner, spec: Spec, count: int) -> list[Record]:
    return [item for judged in made.run(trials(spec, "atlas-a2", count)) for item in judged.records]


def other(trial: Trial) -> Case:
    return case_from_json(trial.parameters[OTHER_CASE], where="test")


ALIKE = {
    # All modes that a dtype has round its operands alike, and no other padding has the same shapes.
    ("conv_tbc_backward", "atlas-training"),
    # The threshold is 0 alone.
    ("threshold_backward", "ascend-950"),
    # The shapes give the sizes.
    *itertools.product(("max_unpool2d_backward",), ("ascend-950", "atlas-a3", "atlas-a2", "atlas-training")),
    # The shape gives the only item.
    *itertools.product(("ada_layer_norm_backward",), ("atlas-a3", "atlas-a2")),
    # The smoothing is 0 alone.
    *itertools.product(("fused_linear_cross_entropy_loss_grad",), ("atlas-a3", "atlas-a2")),
    # The shape gives m.
    *itertools.product(("three_interpolate_backward",), ("ascend-950", "atlas-a3", "atlas-a2")),
    # The shapes give the number of experts, and padding is always off.
    *itertools.product(("moe_token_permute_grad", "moe_token_unpermute_grad"), ("ascend-950", "atlas-a3", "atlas-a2")),
}
"""Where no valid call differs in one attribute."""


@pytest.mark.parametrize(("spec", "product"), targets())
def test_both_calls_are_valid_and_differ_in_one_attribute(spec: Spec, product: str) -> None:
    met = set()
    for trial in trials(spec, product):
        first, second = trial.case, other(trial)
        assert not evaluate(spec, first).broken
        assert not evaluate(spec, second).broken
        [name] = [name for name, value in first.arguments.items() if value != second.arguments[name]]
        assert spec.parameter(name).kind != "tensor"
        met.add(name)
        if spec.modes is not None and name == spec.modes.attribute:
            row = spec.modes.operand[product][spec.modes.dtype_of({name: item.dtype for name, item in first.tensors()})]
            assert row[first.arguments[name]] != row[second.arguments[name]]  # type: ignore[index]
    attributes = [item.name for item in spec.parameters if item.kind != "tensor"]
    if not attributes:
        assert not met
    elif (spec.stem, product) not in ALIKE:
        assert met


@pytest.mark.parametrize(
    "stem", ["dropout", "embedding_dense", "gelu_v2", "log_softmax", "mse_loss", "nll_loss", "softmax"]
)
def test_a_cache_that_forgets_attributes_is_found_on_the_quick_profile(stem: str) -> None:
    name, _, version = stem.partition("_v")
    stem = f"{name}_backward_v{version}" if version else f"{name}_backward"
    [spec] = [item for item in specs().values() if item.stem == stem]
    found = [item for item in records(bench(Forgetful()), spec, QUICK) if item.verdict.result == Result.FAILED]
    assert found
    assert all(item.verdict.message.startswith("call 2 of 2: ") for item in found)


@pytest.mark.parametrize("operator", sorted(specs()))
def test_a_correct_implementation_passes(operator: str) -> None:
    found = records(bench(ReferenceAdapter()), specs()[operator], 12)
    assert {item.verdict.result for item in found} <= {Result.PASSED, Result.SKIPPED}
