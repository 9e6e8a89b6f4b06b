"""Complex tensors are drawn, stated and looked at as re and im."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from aclnn_cts.core.case import Case, Data, Tensor, real_view
from aclnn_cts.core.case_json import case_from_json, case_to_json
from aclnn_cts.core.dtypes import COMPONENTS, components, from_components, numpy_dtype
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.target import Target
from aclnn_cts.generate.choices import stream_block
from aclnn_cts.generate.predicate import compile_predicate
from aclnn_cts.generate.recipes import CHUNK, RECIPES, array, case_arrays, lattice
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.kinds_data import SEGMENTS
from aclnn_cts.speclang.load import load_specs
from tests.generate.made_data import needed

BOTH = pytest.mark.parametrize("dtype", COMPONENTS)


def filled(dtype: str, *shape: int, **data: object) -> Tensor:
    return Tensor(shape, dtype, data=Data(**data))  # type: ignore[arg-type]


ALONG_A_LINE = {"softmax", "repeated", "dominated", "cancel", "boxes", "regions", "distinct_indices", *SEGMENTS}


@BOTH
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3), (CHUNK + 3,)])
@pytest.mark.parametrize("recipe", sorted(set(RECIPES) - ALONG_A_LINE))
def test_a_recipe_fills_the_real_view(recipe: str, dtype: str, shape: tuple[int, ...]) -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    tensor = filled(dtype, *shape, recipe=recipe, seed=5, **needed(recipe))
    made = array(tensor, arrays={"x": x}, name="t")
    assert (made.shape, made.dtype) == (shape, numpy_dtype(dtype))
    parts = array(real_view(tensor), arrays={"x": x}, name="t")
    assert components(made).tobytes() == parts.tobytes()


@BOTH
def test_an_axis_is_one_of_the_elements(dtype: str) -> None:
    for axis, sums in ((None, (3, 2)), (0, (4, 2)), (-2, (4, 2)), (-1, (3, 2)), (9, (3, 2))):
        parts = components(array(filled(dtype, 3, 4, recipe="softmax", axis=axis), arrays={}, name="t"))
        total = parts.sum(axis=1 if sums == (3, 2) else 0)
        assert total.shape == sums
        assert np.allclose(total, 1.0, atol=1e-6)
    hot = components(array(filled(dtype, 3, 4, recipe="one_hot", axis=0, seed=1), arrays={}, name="t"))
    assert hot.sum(axis=0).tolist() == [[1.0, 1.0]] * 4
    assert components(array(filled(dtype, 3, 4, recipe="one_hot"), arrays={}, name="t")).sum() == 1.0


@BOTH
def test_components_are_views_of_any_layout(dtype: str) -> None:
    whole = np.zeros((4, 6), numpy_dtype(dtype))
    view = whole.T[::2]
    components(view)[1, 2] = 3.0, -4.0
    assert whole[2, 2] == 3 - 4j
    assert from_components(components(view), dtype).tolist() == view.tolist()
    assert components(whole[0, 0:1].reshape(())).shape == (2,)


@BOTH
def test_values_are_re_and_im_of_each_element(dtype: str) -> None:
    case = Case("aclnnSome", {"x": filled(dtype, 2, values=(1.0, "inf", -2.0, "nan"))})
    again = case_from_json(case_to_json(case), where="test")
    assert again.arguments == case.arguments
    first, second = case_arrays(again, ["x"])["x"].tolist()
    assert first == complex(1.0, math.inf)
    assert second.real == -2.0
    assert math.isnan(second.imag)


@BOTH
def test_other_numbers_of_values_are_refused(dtype: str) -> None:
    tensor = filled(dtype, 2, values=(1.0, 2.0))
    with pytest.raises(
        UsageError, match=r"values: 2 numbers; expected 4 for the shape \[2\], re and im of each element"
    ):
        case_from_json(case_to_json(Case("aclnnSome", {"x": tensor})), where="test")


@BOTH
def test_what_is_known_of_contents_is_known_of_both_components(dtype: str) -> None:
    assert lattice(filled(dtype, 3, recipe="integers", low=-3, high=9, exponent=-2)) == 0.25
    assert lattice(filled(dtype, 2, values=(2.0, 6.0, 0.0, -4.0))) == 2.0
    assert lattice(filled(dtype, 3, recipe="normal")) is None


@BOTH
def test_predicates_see_both_components(dtype: str) -> None:
    case = Case("aclnnSome", {"x": filled(dtype, 2, values=(1.0, "inf", -2.0, 3.0))})
    for text, holds in (
        ('holds(x, "inf")', True),
        ('holds(x, "negative")', True),
        ("holds(x, 3)", True),
        ('holds(x, "nan")', False),
        ("distinct(x) == 4", True),
    ):
        assert compile_predicate(text)(case) is holds, text


def test_complex_calls_have_every_kind_of_data() -> None:
    spec = load_specs()["aclnnSigmoidBackward"]
    sampler = Sampler(spec, Target(spec.usual_product))
    blocks = (stream_block(3, "complex", first, 100) for first in itertools.count(0, 100))
    cases = (sampler.case(sampler.draw(choices)) for block in blocks for choices in block)
    found: dict[str, set[str | None]] = {dtype: set() for dtype in COMPONENTS}
    for case in itertools.islice(cases, 1500):
        for name in spec.inputs:
            tensor = case.arguments[name]
            assert isinstance(tensor, Tensor)
            if tensor.dtype in COMPONENTS and tensor.numel:
                assert tensor.data is not None
                found[tensor.dtype].add(tensor.data.recipe)
    for recipes in found.values():
        assert {"integers", "normal", "uniform", "special", "large", "subnormal", "wide"} <= recipes
