"""Dtypes that promote and outputs that are cast: what specs say, which calls are made of it, how they are judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aclnn_cts.core.case import Tensor
from aclnn_cts.core.dtypes import can_convert, promoted_dtype
from aclnn_cts.core.target import Target
from aclnn_cts.generate.choices import StreamChoices
from aclnn_cts.generate.negative import invalid_cases
from aclnn_cts.generate.recover import recover_drawing
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.judgement.model import precision_of
from aclnn_cts.speclang.binding import infer_outputs
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.expression import FUNCTIONS
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.speclang.model import Spec

SPECS = load_specs()
LEAKY, GELU, SIGMOID = (SPECS.find(name) for name in ("leaky_relu_backward", "gelu_backward_v2", "sigmoid_backward"))
TARGET = Target(product="atlas-a2")

MIXED = """\
operator: aclnnAddGrad
document: {title: aclnnAddGrad, language: en}
family: public
examples:
  - arguments: {x: "FLOAT [2] = 1", y: "FLOAT [2] = 1", alpha: {scalar: {dtype: FLOAT, value: 1}}, out: "FLOAT [2]"}
products: [atlas-a2]
tables: {all: {atlas-a2: [FLOAT, FLOAT16, INT32, UINT32]}}
parameters:
  - {name: x, type: const aclTensor *, shape: "[*A]", dtypes: all}
  - {name: y, type: const aclTensor *, same_shape_as: x, dtypes: all, promotes_with: PROPERTY}
  - {name: alpha, type: const aclScalar *, dtypes: [FLOAT]}
  - {name: out, type: aclTensor *, same_shape_as: x, dtypes: [FLOAT, FLOAT16], casts_from: "promote(x, y)"}
draws:
  - {run: A, length: [1, 8], sizes: [1, 64]}
  - {name: alpha, one_of: [1, 2]}
"""


def mixed(folder: Path, said: str) -> Spec:
    (folder / "add_grad.yaml").write_text(MIXED.replace("PROPERTY", said), encoding="utf-8")
    return load_specs([folder]).find("add_grad")


def dtypes(case: Any) -> tuple[str, ...]:
    return tuple(tensor.dtype for _, tensor in case.tensors())


def test_valid_calls_mix_dtypes_that_promote_half_of_the_time() -> None:
    sampler = Sampler(LEAKY, TARGET)
    found = [dtypes(sampler.case(drawing := sampler.draw(StreamChoices(0, "mix", number)))) for number in range(400)]
    assert drawing.dtypes in sampler.dtype_rows
    assert 0.4 < sum(one == other for one, other, _ in found) / len(found) < 0.75
    listed = LEAKY.parameter("self").dtypes["atlas-a2"]
    assert {(one, other) for one, other, _ in found} == {(one, other) for one in listed for other in listed}
    assert {(promoted_dtype([one, other]), out) for one, other, out in found} == {
        (one, out) for one in listed for out in listed
    }


def test_an_output_has_the_promoted_dtype_where_the_document_says_so() -> None:
    sampler = Sampler(GELU, TARGET)
    for number in range(60):
        case = sampler.case(sampler.draw(StreamChoices(0, "promoted", number)))
        one, other, out = dtypes(case)
        assert out == promoted_dtype([one, other])
        assert not evaluate(GELU, case).broken
        assert recover_drawing(sampler, case) is not None


def test_complex_results_are_cast_to_complex_outputs_alone() -> None:
    for row in Sampler(SIGMOID, TARGET).dtype_rows:
        assert can_convert(row["gradOutput"], row["gradInput"]), row
    found = list(invalid_cases(Sampler(SIGMOID, TARGET), SIGMOID.constraint("gradInput.cast"), seed=0, count=4))
    assert len(found) >= 3
    for item in found:
        gradient, _, out = dtypes(item.case)
        assert gradient.startswith("COMPLEX")
        assert not out.startswith("COMPLEX")
        assert item.broken == ("gradInput.cast",)


def test_a_rule_on_promotion_is_broken_alone_where_the_lists_allow_it(tmp_path: Path) -> None:
    spec = mixed(tmp_path, "{is: x, strength: limit}")
    [*found] = invalid_cases(Sampler(spec, TARGET), spec.constraint("y.promotion"), seed=0, count=3)
    assert len(found) == 3
    for item in found:
        one, other, _ = dtypes(item.case)
        assert promoted_dtype([one, other]) is None
        assert set(item.broken) == {"y.promotion"}
    for row in Sampler(spec, TARGET).dtype_rows:
        assert promoted_dtype([row["x"], row["y"]]) is not None
        # Neither an unsigned integer nor a mixture of integers is converted to one.
        assert can_convert(promoted_dtype([row["x"], row["y"]]) or "", row["out"])


def test_the_promoted_dtype_may_have_to_be_in_a_list(tmp_path: Path) -> None:
    spec = mixed(tmp_path, "{is: x, in: [FLOAT, INT32]}")
    found = {promoted_dtype([row["x"], row["y"]]) for row in Sampler(spec, TARGET).dtype_rows}
    assert found == {"FLOAT", "INT32"}
    assert "FLOAT, INT32" in spec.constraint("y.promotion").rule.describe("atlas-a2").en


def test_functions_read_tensors_scalars_and_words() -> None:
    promote, castable = FUNCTIONS["promote"][1], FUNCTIONS["castable"][1]
    assert promote(Tensor((1,), "FLOAT16"), Tensor((1,), "BF16")) == "FLOAT"
    assert promote("INT8", Tensor((1,), "INT16")) == "INT16"
    assert castable(Tensor((1,), "INT8"), "FLOAT")
    assert not castable("FLOAT", Tensor((1,), "INT8"))
    with pytest.raises(KeyError):
        promote("UINT32", "FLOAT")


def test_outputs_are_inferred_by_promotion() -> None:
    arguments: dict[str, Any] = {"gradOutput": Tensor((2,), "FLOAT16"), "self": Tensor((2,), "BF16")}
    found = infer_outputs(GELU, {**arguments, "approximate": "none"}, target=TARGET, format="ND")
    assert found["gradInput"] == Tensor((2,), "FLOAT")


@pytest.mark.parametrize(
    ("gradient", "out", "accumulation", "through"),
    [
        ("FLOAT16", "FLOAT", "FLOAT", "FLOAT16"),
        ("BF16", "FLOAT", "FLOAT", "BF16"),
        ("FLOAT", "FLOAT16", "FLOAT", None),
        ("FLOAT", "DOUBLE", "FLOAT", "FLOAT"),
        ("DOUBLE", "FLOAT", "DOUBLE", None),
        ("DOUBLE", "FLOAT16", "DOUBLE", "FLOAT"),
    ],
)
def test_a_result_is_computed_in_the_promoted_dtype_and_then_cast(
    gradient: str, out: str, accumulation: str, through: str | None
) -> None:
    precision = precision_of(LEAKY)
    model = precision.model(
        operator=LEAKY.operator, output="out", dtype=out, target=TARGET, source=gradient, computed=gradient
    )
    assert model.accumulation.name == accumulation
    assert (model.through and model.through.name) == through
    assert model.output.name == out


def test_a_call_is_computed_in_what_its_inputs_promote_to() -> None:
    sampler = Sampler(LEAKY, TARGET)
    for number in range(20):
        case = sampler.case(sampler.draw(StreamChoices(1, "computed", number)))
        assert LEAKY.computed_in(case) == promoted_dtype(dtypes(case)[:2])
    softmax = SPECS.find("softmax_backward")
    case = Sampler(softmax, TARGET).case(Sampler(softmax, TARGET).draw(StreamChoices(1, "computed", 0)))
    assert softmax.computed_in(case) is None
