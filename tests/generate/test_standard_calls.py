"""Cases as a vendor's acceptance standard asks for them: combinations, sizes, values, special cases, limits."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice, product

import numpy as np
import pytest

from aclnn_cts.core.case import Case, Data, Tensor
from aclnn_cts.core.standard import (
    LARGEST_TENSOR,
    POWER_SIZES,
    SPECIAL_VALUES,
    STANDARDS,
    STEPS,
    SpecialCases,
    source_details,
)
from aclnn_cts.generate.configuration import MAX_DATA_ELEMENTS
from aclnn_cts.generate.recipes import case_arrays
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.generate.standard_calls import StandardCases
from aclnn_cts.speclang.evaluate import evaluate
from tests.support.trial_runs import A2, specs

pytestmark = pytest.mark.mechanism

SOFTMAX, TANH = "aclnnSoftmaxBackward", "aclnnTanhBackward"
OPERATORS = (SOFTMAX, TANH, "aclnnConvolutionBackward", "aclnnRmsNormGrad", "aclnnEmbeddingDenseBackward")


def cases_of(standard: str, operator: str = SOFTMAX, *, max_bytes: int = 0, seed: int = 0) -> StandardCases:
    sampler = Sampler(specs()[operator], A2)
    return StandardCases(sampler, STANDARDS[standard], seed=seed, max_bytes=max_bytes)


def details(case: Case) -> dict[str, str]:
    return dict(source_details(case.origin.source or "")[2])


def options(case: Case) -> tuple[tuple[str, str], ...]:
    return tuple((name, label) for name, label in details(case).items() if name != "values")


def inputs(case: Case) -> Iterator[tuple[str, Tensor]]:
    spec = specs()[case.operator]
    return ((name, tensor) for name, tensor in case.tensors() if name in spec.inputs)


def specials(cases: StandardCases, special: SpecialCases) -> list[Case]:
    return [case for case in cases.special_cases() if source_details(case.origin.source or "")[1] == special.value]


def gradients(standard: str, values: str) -> Iterator[np.ndarray]:
    """The gradients of cases with values of one distribution."""
    for case in cases_of(standard, TANH).generated_cases(0, 400):
        if details(case)["values"] == values and case.tensor("gradOutput").dtype == "FLOAT":  # type: ignore[union-attr]
            yield case_arrays(case, ["gradOutput"])["gradOutput"].astype(np.float64).reshape(-1)


@pytest.mark.parametrize(("standard", "operator"), list(product(STANDARDS, OPERATORS)))
def test_every_case_is_valid_and_names_its_standard(standard: str, operator: str) -> None:
    cases = cases_of(standard, operator)
    for case in (*cases.generated_cases(0, 60), *cases.special_cases()):
        assert not evaluate(specs()[operator], case).broken
        assert source_details(case.origin.source or "")[0] == standard


def test_a_case_is_a_function_of_its_number() -> None:
    whole = list(cases_of("cann-l1").generated_cases(0, 30))
    assert [*cases_of("cann-l1").generated_cases(0, 11), *cases_of("cann-l1").generated_cases(11, 19)] == whole
    assert list(cases_of("cann-l1", seed=1).generated_cases(0, 30)) != whole


def test_dtypes_come_equally_often_and_every_rank_and_attribute_comes() -> None:
    cases = list(cases_of("cann-l0").generated_cases(0, 900))
    assert set(Counter(details(case)["dtypes"] for case in cases).values()) == {100}
    assert {len(case.tensor("gradOutput").shape) for case in cases} == set(range(1, 9))  # type: ignore[union-attr]
    assert {"0", "1", "-1", "-16 to -2"} <= {details(case)["dim"] for case in cases}


def test_every_combination_that_a_call_can_have_comes_before_any_comes_again() -> None:
    cases = cases_of("cann-standard", TANH)
    number = math.prod(len(factor.corners) for factor in cases.factors)
    once = {options(case) for case in cases.generated_cases(0, number)}
    assert {options(case) for case in cases.generated_cases(number, 2 * number)} <= once
    factors = [{option for item in once for option in item if option[0] == factor.name} for factor in cases.factors]
    assert len(once) > 0.9 * math.prod(map(len, factors))


def test_refusals_tell_options_that_no_call_has_from_others() -> None:
    refusals = {(factor, label): why for factor, label, why in cases_of("cann-standard").refusals()}
    assert refusals["dim", "-9223372036854775808"]
    assert refusals["dim", "-1"] == refusals["rank A", "8"] == ""


def test_sizes_of_the_current_standard_are_powers_of_two_and_one_less() -> None:
    cases = list(cases_of("cann-standard").generated_cases(0, 9 * len(POWER_SIZES)))
    sizes = {size for case in cases for _, tensor in inputs(case) for size in tensor.shape}
    assert sizes == set(POWER_SIZES)
    assert all(tensor.numel <= LARGEST_TENSOR for case in cases for _, tensor in inputs(case))


def test_sizes_of_level_0_are_steps_and_those_of_others_random() -> None:
    steps, anything = (
        {size for case in cases_of(name).generated_cases(0, 300) for _, tensor in inputs(case) for size in tensor.shape}
        for name in ("cann-l0", "cann-l1")
    )
    assert all(any(size % step == 0 for step in STEPS) for size in steps if size > max(STEPS))
    assert not all(any(size % step == 0 for step in STEPS) for size in anything if size > max(STEPS))


@pytest.mark.parametrize("standard", STANDARDS)
def test_values_are_shared_as_the_standard_says(standard: str) -> None:
    cases = cases_of(standard, TANH).generated_cases(0, 400)
    counts = Counter(details(case)["values"] for case in cases)
    assert counts == {entry.name: 4 * entry.percent for entry in STANDARDS[standard].values}


def test_uniform_values_lie_within_their_bounds() -> None:
    for values, bound in (("uniform", 5.0), ("small", 0.001)):
        largest = max(np.abs(array).max(initial=0.0) for array in gradients("cann-l1", values))
        assert 0.9 * bound < largest <= bound * (1 + 2.0**-20)


def test_normal_values_have_a_mean_and_a_deviation_of_the_standard() -> None:
    drawn = [
        data
        for case in cases_of("cann-standard", TANH).generated_cases(0, 400)
        if details(case)["values"] == "normal" and (data := case.tensor("gradOutput").data)  # type: ignore[union-attr]
    ]
    assert all(data.recipe == "normal" and data.mean is not None and data.std is not None for data in drawn)
    means, deviations = [data.mean or 0.0 for data in drawn], [data.std or 0.0 for data in drawn]
    assert -5 <= min(means) < max(means) <= 5
    assert max(means) - min(means) > 8
    assert 0.1 <= min(deviations) < max(deviations) <= 2.0
    assert max(deviations) - min(deviations) > 1.5


def test_outliers_are_one_element_in_a_thousand_and_one_at_least() -> None:
    for array in islice(gradients("cann-l1", "outliers"), 12):
        # Of 1,000 times a number, the other numbers are not: all lie within four deviations of a mean up to 100.
        assert np.count_nonzero(np.abs(array) > 250.0) <= max(1, array.size // 1000)
    whole = [array for array in gradients("cann-l1", "outliers") if array.size]
    assert any(np.abs(array).max() > 1000.0 for array in whole)


def test_saved_tensors_and_indices_keep_what_the_document_says_of_them() -> None:
    for operator, name, recipe in ((SOFTMAX, "output", "softmax"), ("aclnnRmsNormGrad", "rstd", "rstd")):
        for case in cases_of("cann-l2", operator).generated_cases(0, 20):
            tensor = case.tensor(name)
            assert tensor is not None
            assert tensor.data is not None
            assert tensor.data.recipe == recipe


def test_every_dimension_that_may_be_empty_is_in_every_dtype() -> None:
    cases = specials(cases_of("cann-l0", "aclnnBatchNormBackward"), SpecialCases.EMPTY)
    assert {details(case)["of"] for case in cases} == {"A"}
    assert {case.tensor("input").dtype for case in cases} == {"FLOAT", "FLOAT16", "BF16"}  # type: ignore[union-attr]
    assert all(any(tensor.numel == 0 for _, tensor in case.tensors()) for case in cases)
    # The document of this operator excludes them.
    assert not specials(cases_of("cann-l0"), SpecialCases.EMPTY)


def test_there_are_shapes_of_one_element() -> None:
    cases = cases_of("cann-standard")
    one, ones = specials(cases, SpecialCases.ONE_ELEMENT), specials(cases, SpecialCases.ALL_ONES)
    assert len(one) == len(ones) == 9
    assert all(tensor.shape == (1,) for case in one for _, tensor in inputs(case))
    assert all(set(tensor.shape) == {1} for case in ones for _, tensor in inputs(case))


@pytest.mark.parametrize("standard", ["cann-standard", "cann-l0"])
def test_special_values_come_in_every_dtype_and_so_many_shapes(standard: str) -> None:
    cases = specials(cases_of(standard, TANH), SpecialCases.VALUES)
    found: dict[tuple[str, str], set[tuple[int, ...]]] = {}
    for case in cases:
        tensor = case.tensor("gradOutput")
        assert tensor is not None
        array = case_arrays(case, ["gradOutput"])["gradOutput"].astype(np.float64)
        name = details(case)["of"]
        wanted: Sequence[float] = [float(value) for value in SPECIAL_VALUES[name]]
        assert np.isin(np.nan_to_num(array, nan=7.0), np.nan_to_num(wanted, nan=7.0)).all()
        found.setdefault((tensor.dtype, name), set()).add(tensor.shape)
    rows = Sampler(specs()[TANH], A2).dtype_rows
    assert set(found) == set(product({row["gradOutput"] for row in rows}, SPECIAL_VALUES))
    assert all(len(shapes) >= STANDARDS[standard].special_shapes for shapes in found.values())


def test_inputs_that_must_be_finite_have_no_special_values() -> None:
    assert not specials(cases_of("cann-l0", "aclnnClippedSwigluGrad"), SpecialCases.VALUES)


def test_inputs_beside_one_with_a_range_have_special_values() -> None:
    cases = specials(cases_of("cann-standard", "aclnnBinaryCrossEntropyWithLogitsBackward"), SpecialCases.VALUES)
    assert {details(case)["of"] for case in cases} == set(SPECIAL_VALUES)
    assert all((case.tensor("target").data or Data()).values is None for case in cases)  # type: ignore[union-attr]


def test_one_dimension_is_as_long_as_the_document_allows_and_as_long_as_has_data() -> None:
    cases = cases_of("cann-l0")
    [longest], [long] = specials(cases, SpecialCases.LONGEST), specials(cases, SpecialCases.LONG)
    assert max(longest.tensor("gradOutput").shape) == 2147483646  # type: ignore[union-attr]
    assert longest.call.phases == 1
    assert max(long.tensor("gradOutput").shape) == MAX_DATA_ELEMENTS  # type: ignore[union-attr]
    assert long.call.phases != 1


def test_no_case_with_data_is_larger_than_the_limit() -> None:
    cases = cases_of("cann-standard", max_bytes=1 << 16)
    found = [*cases.generated_cases(0, 360), *specials(cases, SpecialCases.LONG)]
    assert max(case.nbytes for case in found) <= 1 << 16
    assert max(size for case in found for _, tensor in inputs(case) for size in tensor.shape) > 1 << 11
