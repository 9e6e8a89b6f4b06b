"""Case files hold every number, and equal cases alone share an id."""

from __future__ import annotations

import itertools
import math

import msgspec
import pytest

from aclnn_cts.core.case import Case, Data, Tensor
from aclnn_cts.core.case_json import canonical_json, case_from_json, case_id, case_to_json
from aclnn_cts.core.errors import UsageError

NON_FINITE = (math.inf, -math.inf, math.nan)


def with_data(data: Data) -> Case:
    return Case("aclnnAny", {"x": Tensor((2,), "FLOAT", data=data)})


def read_again(case: Case) -> Data:
    document = msgspec.json.decode(canonical_json(case_to_json(case)))
    tensor = case_from_json(document, where="here").arguments["x"]
    assert isinstance(tensor, Tensor)
    assert tensor.data is not None
    return tensor.data


@pytest.mark.parametrize("name", ["mean", "std", "epsilon"])
def test_the_numbers_of_a_recipe_need_not_be_finite(name: str) -> None:
    cases = {}
    for value in (*NON_FINITE, None, 0.0, 1e308, 5e-324):
        case = with_data(Data(recipe="normal", **{name: value}))  # type: ignore[arg-type]  # what no field takes
        found = getattr(read_again(case), name)
        assert found == value or (value is not None and math.isnan(value) and math.isnan(found))
        cases[case_id(case)] = value
        assert b"null" not in canonical_json(case_to_json(case))
    assert len(cases) == 7


def test_explicit_values_need_not_be_finite() -> None:
    identifiers = set()
    for pair in itertools.product((*NON_FINITE, 1.5), repeat=2):
        case = with_data(Data(values=pair))
        values = read_again(case).values
        assert values is not None
        assert [float(value) for value in values] == pytest.approx(pair, nan_ok=True)
        identifiers.add(case_id(case))
    assert len(identifiers) == 16
    assert case_id(with_data(Data(values=(math.inf, 1)))) == case_id(with_data(Data(values=("inf", 1))))


@pytest.mark.parametrize("value", ["infinity", "1", [1], {}, True])
def test_other_words_are_refused(value: object) -> None:
    document = case_to_json(with_data(Data(recipe="normal")))
    document["arguments"]["x"]["tensor"]["data"]["mean"] = value
    with pytest.raises(UsageError, match=r"here: \$\.arguments\.x\.tensor\.data\.mean: Expected `float \| null`"):
        case_from_json(document, where="here")
