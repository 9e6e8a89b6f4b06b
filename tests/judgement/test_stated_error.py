"""An oracle may state its error itself, and where it is known to be none."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import msgspec
import numpy as np
import pytest

from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.expected import ExpectedOutput
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.target import Target
from aclnn_cts.judgement.bound import bound, loosest_model
from aclnn_cts.judgement.model import ComputeModel, load_precision
from aclnn_cts.speclang.load import package_folder
from tests.support.compared import compare

VALUE = np.array([1.0, 2.0, 0.0])


def model(dtype: str = "FLOAT") -> ComputeModel:
    found = load_precision().model(operator="", output="out", dtype=dtype)
    return dataclasses.replace(found, flushes_result=False)


def stated(error: object, *, exact: object = False, arithmetic: ComputeModel | None = None) -> ExpectedOutput:
    return ExpectedOutput(
        value=VALUE,
        error=np.asarray(error, np.float64),
        exact=exact,  # type: ignore[arg-type]
        arithmetic=(arithmetic or model()).arithmetic,
    )


def test_the_error_is_the_bound_before_the_last_rounding() -> None:
    limits = bound(stated([0.25, 0.5, 1.0]), model())
    assert np.asarray(limits.ends.lower).tolist() == [0.75, 1.5, -1.0]
    assert np.asarray(limits.ends.upper).tolist() == [1.25, 2.5, 1.0]


def test_one_result_alone_conforms_where_all_is_exact() -> None:
    exact = ExpectedOutput(value=VALUE, error=0.0, exact=True, arithmetic=model().arithmetic)
    assert compare("out", VALUE.astype(np.float32), exact, model()).kind == ""
    other = np.nextafter(VALUE.astype(np.float32), np.float32(9))
    assert compare("out", other, exact, model()).kind == Fault.VALUE


def test_a_mask_says_which_elements_are_exact() -> None:
    """What is exact is not flushed either, unless its value is below the normal range."""
    flushing = dataclasses.replace(model(), flushes_result=True)
    tiny = ExpectedOutput(
        value=np.array([1.0, 2.0**-130, 2.0**-130]),
        error=np.zeros(3),
        exact=np.array([True, True, False]),
        arithmetic=flushing.arithmetic,
    )
    limits = bound(tiny, flushing)
    assert (np.asarray(limits.ends.lower) <= 0.0).tolist() == [False, True, True]
    assert np.asarray(limits.ends.upper)[0] == 1.0


def test_a_coarser_arithmetic_grows_the_error_in_proportion() -> None:
    half = model("FLOAT16")
    narrow, wide = (bound(stated([2.0**-20] * 3, arithmetic=half), each) for each in (half, loosest_model(half)))
    assert np.asarray(wide.error)[0] > 2.0**12 * np.asarray(narrow.error)[0]


def test_only_errors_of_its_size_are_put_down_to_coarser_arithmetic() -> None:
    """Of an error that n roundings of a sum of that size would explain, sqrt(n) of them are left."""
    size, count = 100.0, 400
    half = model("FLOAT16")
    expected = ExpectedOutput(
        value=np.array([2.0]),
        error=np.array([count * half.roundoff * size]),
        partial=np.array([size]),
        arithmetic=half.arithmetic,
    )
    roundoff = loosest_model(half).roundoff
    for roundings, kind in ((15, Fault.MODEL), (25, Fault.VALUE)):
        got = np.array([2.0 + roundings * roundoff * size], np.float16)
        assert compare("out", got, expected, half).kind == kind
    unknown = msgspec.structs.replace(expected, partial=None)
    assert compare("out", got, unknown, half).kind == Fault.MODEL


@pytest.mark.parametrize(
    ("got", "summands", "step", "kind"),
    [
        # Sums of whole numbers up to 30000 have too many digits for FLOAT16, and are exact in FLOAT.
        (-15064.0, 1000, 1.0, Fault.MODEL),
        (-14000.0, 1000, 1.0, Fault.MODEL),
        (15000.0, 1000, 1.0, Fault.VALUE),
        (-15064.0, 1, 1.0, Fault.VALUE),
        (-15064.0, 1000, 16.0, Fault.VALUE),
    ],
    ids=["narrow accumulation", "its usual size", "another sign", "no sum", "few digits"],
)
def test_exact_sums_are_rounded_in_narrow_accumulation(got: float, summands: float, step: float, kind: str) -> None:
    half = model("FLOAT16")
    expected = ExpectedOutput(
        value=np.array([-15000.0]),
        error=0.0,
        exact=True,
        arithmetic=half.arithmetic,
        summands=summands,
        step=step,
        largest=30000.0,
    )
    assert compare("out", np.array([-15000.0], np.float16), expected, half).kind == ""
    assert compare("out", np.array([got], np.float16), expected, half).kind == kind


def test_a_bound_on_functions_has_their_basis() -> None:
    document = dataclasses.replace(model(), basis="document")
    using = document.with_functions(("exp",))
    assert using.basis == "assumed"
    assert "exp within 2 ulp" in using.describe()
    assert [name for name, _, _ in using.sources if name == "exp"] == ["exp"]
    assert document.with_functions(()) is document


def test_functions_are_stated_by_product() -> None:
    def exp(product: str) -> float:
        found = load_precision().model(operator="", output="out", dtype="FLOAT", target=Target(product=product))
        return found.arithmetic.function("exp").ulps

    assert exp("atlas-a2") == 2.0
    assert exp("ascend-950") == 1.0


def test_a_function_that_is_not_stated_is_an_error() -> None:
    with pytest.raises(KeyError, match=r"precision\.yaml"):
        dataclasses.replace(model(), functions=()).arithmetic.function("exp")


def test_an_unknown_function_is_an_error_with_its_path(tmp_path: Path) -> None:
    text = (package_folder() / "precision.yaml").read_text(encoding="utf-8")
    file = tmp_path / "precision.yaml"
    file.write_text(text.replace("      exp:\n", "      sinus:\n", 1), encoding="utf-8")
    with pytest.raises(UsageError, match=r"precision\.yaml:\d+: .*sinus"):
        load_precision(file)
