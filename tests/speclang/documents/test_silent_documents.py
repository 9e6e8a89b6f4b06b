"""Calls of which a document says nothing, or says it in two ways: neither success nor a code is promised."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.target import Target
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.kinds_dtype import ListedRule
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.speclang.model import Spec
from tests.speclang.documents.support import A2, ANYTHING, INVALID, OK, SPECS, check, t
from tests.support.drawn import drawn

PUBLIC = load_specs(edition="public")


def adaptive_avg_pool(*formats: str) -> dict[str, Any]:
    names = ("gradOutput", "self", "out")
    return {name: t(1, 1, 1, dtype="FLOAT16", form=form) for name, form in zip(names, formats, strict=True)}


@pytest.mark.parametrize(
    ("formats", "broken", "statuses"),
    [
        (("ND", "ND", "ND"), "", OK),
        (("NCL", "NCL", "NCL"), "", OK),
        (("ND", "NCL", "ND"), "self.same_format", ANYTHING),
        (("NCL", "NCL", "ND"), "out.same_format", ANYTHING),
        (("NHWC", "ND", "ND"), "gradOutput.format", INVALID),
    ],
)
def test_adaptive_avg_pool2d_of_mixed_formats_is_open(
    formats: tuple[str, ...], broken: str, statuses: tuple[str, ...]
) -> None:
    check("aclnnAdaptiveAvgPool2dBackward", adaptive_avg_pool(*formats), A2, broken, statuses)


def bilinear(
    form: str, out: tuple[int, ...], size: tuple[int, ...], grad: tuple[int, ...], to: tuple[int, int]
) -> dict[str, Any]:
    height, width = (2, 3) if form == "NCHW" else (1, 2)
    return {
        "gradOut": t(*grad, form=form),
        "outputSize": to,
        "inputSize": size,
        "alignCorners": False,
        "scalesH": to[0] / out[height],
        "scalesW": to[1] / out[width],
        "out": t(*out, form=form),
    }


@pytest.mark.parametrize(
    ("arguments", "broken", "statuses"),
    [
        (bilinear("NCHW", (2, 3, 4, 5), (2, 3, 4, 5), (2, 3, 8, 10), (8, 10)), "", OK),
        # Both orders of inputSize are the same array.
        (bilinear("NHWC", (2, 3, 3, 3), (2, 3, 3, 3), (2, 6, 9, 3), (6, 9)), "", OK),
        (bilinear("NHWC", (2, 4, 5, 3), (2, 3, 4, 5), (2, 8, 10, 3), (8, 10)), "inputSize.order", ANYTHING),
        (bilinear("NHWC", (2, 4, 5, 3), (2, 4, 5, 3), (2, 8, 10, 3), (8, 10)), "inputSize.order", ANYTHING),
        # In both orders there are other channels, or another height, than out has.
        (bilinear("NHWC", (2, 3, 3, 3), (2, 4, 4, 4), (2, 6, 9, 3), (6, 9)), "gradOut.channels out.sizes", INVALID),
    ],
)
def test_the_order_of_input_size_in_nhwc_is_open(
    arguments: Mapping[str, Any], broken: str, statuses: tuple[str, ...]
) -> None:
    found = _evaluated(SPECS["aclnnUpsampleBilinear2dBackwardV2"], arguments)
    assert {item.id for item in found.broken} == set(broken.split())
    assert found.statuses[: len(statuses)] == statuses


def _evaluated(spec: Spec, arguments: Mapping[str, Any]) -> Any:
    return evaluate(spec, Case(spec.operator, arguments, Target(product=A2)))


def _nd_lists(spec: Spec) -> set[str]:
    """The tensors of which a document lists ND and no other format."""
    lists: dict[str, set[str]] = {}
    for item in spec.constraints_for(spec.usual_product):
        if isinstance(item.rule, ListedRule) and item.rule.what == "format":
            lists.setdefault(item.rule.of, set()).update(item.rule.table[spec.usual_product])
    return {name for name, formats in lists.items() if formats == {"ND"}}


@pytest.mark.parametrize(
    "spec", [*SPECS.values(), *(spec for spec in PUBLIC.values() if spec.edition)], ids=lambda item: item.path
)
def test_another_format_beside_nd_is_promised_no_code(spec: Spec) -> None:
    sampler = Sampler(spec, Target(product=spec.usual_product))
    (case,) = drawn(sampler, 1, stream="formats")
    for name in sorted(_nd_lists(spec)):
        tensor = case.arguments[name]
        if isinstance(tensor, Tensor):
            other = Tensor(tensor.shape, tensor.dtype, "NCHW", data=tensor.data, strides=tensor.strides)
            changed = Case(case.operator, {**case.arguments, name: other}, case.target)
            assert evaluate(spec, changed).statuses == ANYTHING, name
