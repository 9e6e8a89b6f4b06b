"""Compute models: what precision.yaml says, and how a mistake in such a file is reported."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import yaml

from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.target import Target
from aclnn_cts.judgement.model import BASES, ComputeModel, gamma, load_precision, precision_of, weakest_basis
from aclnn_cts.speclang.load import package_folder
from tests.speclang.small_spec import changed
from tests.support.spec_text import spec_from_text

CONV = "aclnnConvTbcBackward"


def conv(output: str, dtype: str, operand: str | None) -> ComputeModel:
    return load_precision().model(operator=CONV, output=output, dtype=dtype, operand=operand)


def test_bases_have_an_order() -> None:
    assert BASES == ("assumed", "published", "document")
    assert weakest_basis(["document", "published"]) == "published"


@pytest.mark.parametrize(
    ("operand", "output", "expected"),
    [
        (None, "gradInput", "operands as stored, accumulation in FLOAT (truncating), output in FLOAT"),
        ("FLOAT", "gradWeight", "operands as stored, accumulation in FLOAT (truncating), output in FLOAT"),
        ("HFLOAT32", "gradInput", "operands in HFLOAT32, accumulation in FLOAT (truncating), output in FLOAT"),
        (
            "FLOAT16",
            "gradInput",
            "operands in FLOAT16, accumulation in FLOAT (truncating), output in FLOAT by way of FLOAT16",
        ),
        ("FLOAT16", "gradWeight", "operands in FLOAT16, accumulation in FLOAT (truncating), output in FLOAT"),
        ("FLOAT16", "gradBias", "operands as stored, accumulation in FLOAT, output in FLOAT"),
    ],
)
def test_modes_of_conv_tbc(operand: str | None, output: str, expected: str) -> None:
    assert conv(output, "FLOAT", operand).describe() == expected


def test_a_result_may_be_rounded_to_half_precision_on_its_way_to_eight_bits() -> None:
    own = "precision:\n  - result: {from: input, basis: assumed, source: nothing is said}\nclauses:"
    precision = precision_of(spec_from_text(changed("clauses:", own), stem="small"))

    def by_way_of(source: str, dtype: str) -> str | None:
        through = precision.model(operator="aclnnSmall", output="y", dtype=dtype, source=source).through
        return None if through is None else through.name

    assert by_way_of("FLOAT16", "FLOAT8_E4M3FN") == "FLOAT16"
    assert by_way_of("BF16", "FLOAT") == "BF16"
    assert by_way_of("FLOAT", "FLOAT8_E4M3FN") is None  # intermediates are FLOAT
    assert by_way_of("FLOAT16", "FLOAT16") is None


def test_hfloat32_counts_on_the_coarser_of_two_sources() -> None:
    model = conv("gradInput", "FLOAT", "HFLOAT32")
    assert model.operand is not None
    assert (model.operand.significand, model.operand_roundoff) == (11, 2.0**-11)


def test_bf16_loses_range_but_no_digit_in_float16() -> None:
    model = conv("gradInput", "BF16", "FLOAT16")
    assert model.operand is not None
    assert model.operand.name == "FLOAT16"
    assert model.operand_roundoff == 0.0
    assert conv("gradInput", "BF16", "BF16").operand is None


def test_every_operator_accumulates_wider_than_half() -> None:
    precision = load_precision()
    for dtype in ("FLOAT", "FLOAT16", "BF16"):
        model = precision.model(operator="aclnnOfTheUsersOwn", output="out", dtype=dtype)
        assert model.accumulation.name == "FLOAT"
        assert model.output.name == dtype
        assert model.basis == "assumed"


def test_double_is_computed_in_double_by_every_operator() -> None:
    for operator in ("aclnnOfTheUsersOwn", CONV, "aclnnSoftmaxBackward", "aclnnRmsNormGrad"):
        model = load_precision().model(operator=operator, output="gradInput", dtype="DOUBLE", operand="DOUBLE")
        assert (model.accumulation.name, model.truncates, model.flushes_compute) == ("DOUBLE", False, False)


def test_only_the_operands_of_conv_tbc_are_documented() -> None:
    documented = {
        (operator, section)
        for operator in (CONV, "aclnnSoftmaxBackward", "aclnnRmsNormGrad", "aclnnEmbeddingDenseBackward", "aclnnX")
        for section, basis, _ in load_precision().model(operator=operator, output="gradInput", dtype="FLOAT").sources
        if basis == "document"
    }
    assert documented == {(CONV, "operand")}


def test_saturation_comes_from_the_product_unless_the_target_says_it() -> None:
    def saturates(target: Target) -> bool:
        model = load_precision().model(operator="aclnnSoftmaxBackward", output="out", dtype="FLOAT", target=target)
        return model.saturates

    assert [saturates(Target(product=name)) for name in ("atlas-inference", "atlas-training", "atlas-a2")] == [
        True,
        True,
        False,
    ]
    assert saturates(Target(product="atlas-a2", overflow_mode="saturation"))


def test_selectors_by_product() -> None:
    precision = load_precision()

    def basis(product: str) -> dict[str, str]:
        model = precision.model(
            operator="aclnnEmbeddingDenseBackward", output="out", dtype="FLOAT", target=Target(product=product)
        )
        return {section: basis for section, basis, _ in model.sources}

    assert basis("atlas-a2")["accumulation"] == "published"
    assert basis("atlas-training")["accumulation"] == "assumed"


def test_repeatable() -> None:
    precision = load_precision()
    found = {
        operator: precision.model(operator=operator, output="out", dtype="FLOAT").repeatable
        for operator in ("aclnnSoftmaxBackward", "aclnnRmsNormGrad")
    }
    assert found == {"aclnnSoftmaxBackward": "always", "aclnnRmsNormGrad": "deterministic"}


def test_a_spec_file_adds_models_of_its_own_operator() -> None:
    model = "{outputs: [out], accumulation: {format: FLOAT16, rounding: nearest, basis: document, source: section 3}}"
    spec = spec_from_text(changed("draws:\n", f"precision: [{model}]\ndraws:\n"), stem="small")
    precision = precision_of(spec)
    assert precision.model(operator=spec.operator, output="out", dtype="FLOAT").accumulation.name == "FLOAT16"
    assert precision.model(operator=spec.operator, output="other", dtype="FLOAT").accumulation.name == "FLOAT"
    assert precision.model(operator="aclnnOther", output="out", dtype="FLOAT").accumulation.name == "FLOAT"
    assert load_precision().model(operator=spec.operator, output="out", dtype="FLOAT").accumulation.name == "FLOAT"


def test_mistakes_name_file_and_path(tmp_path: Path) -> None:
    content = yaml.safe_load((package_folder() / "precision.yaml").read_text(encoding="utf-8"))

    def message(change: dict[str, object]) -> str:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.yaml"
        path.write_text(yaml.safe_dump(content | change), encoding="utf-8")
        with pytest.raises(UsageError) as caught:
            load_precision(path)
        place, _, said = str(caught.value).partition(": ")
        assert re.fullmatch(re.escape(str(path)) + r":\d+", place)
        return said

    assert message({"modles": []}) == (
        "unknown key 'modles'; expected any of format, significands, models; did you mean 'models'?"
    )
    assert message({"models": [{"output": {"rounding": "up", "basis": "assumed", "source": "x"}}]}) == (
        "models.0.output.rounding: 'up'; expected nearest or truncation"
    )
    assert message({"models": [{"output": {"rounding": "nearest", "basis": "guess", "source": "x"}}]}) == (
        "models.0.output.basis: 'guess'; expected assumed, document or published"
    )
    assert message({"models": content["models"][1:]}) == (
        "models: no default `operand` for FLOAT; expected an entry that has it and no selector"
    )
    assert message({"significands": {"HFLOAT32": {"bits": 13, "basis": "assumed", "source": "x"}}}) == (
        "significands.HFLOAT32.bits: 13; expected 2 to 12"
    )
    assert message({"significands": {"HFLOAT23": {"bits": 11, "basis": "assumed", "source": "x"}}}) == (
        "significands: unknown format 'HFLOAT23'; expected one of FLOAT, FLOAT16, BF16, DOUBLE, FLOAT8_E5M2, "
        "FLOAT8_E4M3FN, FLOAT8_E8M0, HIFLOAT8, HFLOAT32, INT16, INT32, INT64, INT8, UINT16, UINT32, UINT8; "
        "did you mean 'HFLOAT32'?"
    )


@pytest.mark.parametrize("roundoff", [Fraction(1, 2**8), Fraction(1, 2**11), Fraction(1, 2**24)])
def test_gamma_bounds_any_product_of_roundings(roundoff: Fraction) -> None:
    """In rational arithmetic: the extremes of prod (1 + delta)^(+-1), and roundings of roundings."""

    def exact(count: int) -> Fraction:
        return count * roundoff / (1 - count * roundoff)

    for count in (0, 1, 2, 3, 10, 100):
        for ups in {0, min(1, count), count // 2, count}:
            for product in ((1 + roundoff) ** ups / (1 - roundoff) ** (count - ups), (1 - roundoff) ** count):
                assert abs(product - 1) <= exact(count)
        for other in (1, 7, 20):
            assert exact(count) + exact(other) + exact(count) * exact(other) <= exact(count + other)
        assert gamma(count, float(roundoff)) == pytest.approx(float(exact(count)), rel=1e-12)


def test_gamma_does_not_run_away() -> None:
    assert gamma(4, 0.25**8) == pytest.approx(4 * 0.25**8, rel=1e-3)
    assert gamma(3, 0.25) == 1.5
    assert gamma(np.array([0, 1, 3]), 0.25).tolist() == [0.0, pytest.approx(1 / 3), 1.5]
    assert gamma(10**9, 2.0**-11) > 10**5
