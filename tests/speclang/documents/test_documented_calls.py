"""Single calls, each an operator's example with a change, and what the document promises for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from aclnn_cts.core.case import BoolArray, Case, Data, Tensor
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.evaluate import Evaluation, evaluate
from aclnn_cts.speclang.load import load_specs

ANY = ("ACLNN_ERR_*", "ACLNN_SUCCESS")
VALID = ("ACLNN_SUCCESS",)
INVALID = ("ACLNN_ERR_PARAM_INVALID",)


def evaluated(stem: str, changes: Mapping[str, Any], product: str = "atlas-a2") -> Evaluation:
    """The example of an operator with other arguments, or with other fields of its tensors."""
    spec = load_specs().find(stem)
    arguments = dict(spec.examples[0].arguments)
    for name, change in changes.items():
        given = arguments[name]
        if isinstance(change, dict) and isinstance(given, Tensor):
            arguments[name] = msgspec.structs.replace(given, **change)
        else:
            arguments[name] = change
    return evaluate(spec, Case(spec.operator, arguments, Target(product=product)))


def every(dtype: str, *names: str) -> dict[str, Any]:
    return {name: {"dtype": dtype} for name in names}


LAYER_NORM = "layer_norm_backward"
HALVES = {
    **every("FLOAT16", "weight", "runningMean", "runningVar", "saveMean", "saveInvstd", "gradWeight", "gradBias"),
    **{name: {"dtype": "FLOAT16", "format": "NCL"} for name in ("gradOut", "input", "gradInput")},
}


@pytest.mark.parametrize(
    ("stem", "changes", "broken", "statuses"),
    [
        pytest.param(LAYER_NORM, {"mean": {"shape": (2,)}, "rstd": {"shape": (2,)}}, "mean.shape", ANY, id="mean-rank"),
        pytest.param(
            LAYER_NORM, {"mean": {"shape": (1, 2)}, "rstd": {"shape": (1, 2)}}, "mean.shape", ANY, id="mean-transposed"
        ),
        pytest.param(LAYER_NORM, {"rstd": {"shape": (2,)}}, "rstd.shape", ANY, id="rstd-unlike-mean"),
        pytest.param(LAYER_NORM, {"mean": {"shape": (3, 1)}}, "mean.numel", INVALID, id="mean-number"),
        pytest.param(
            LAYER_NORM, {"weightOptional": None, "biasOptional": {"dtype": "BF16"}}, "dtypes.rows", ANY, id="lone-bias"
        ),
        pytest.param(LAYER_NORM, {"weightOptional": None}, "", VALID, id="lone-bias-of-input"),
        pytest.param(
            "batch_norm_backward",
            {
                **HALVES,
                "outputMask": BoolArray((True, False, True)),
                "gradWeight": None,
                "gradBias": {"dtype": "FLOAT"},
            },
            "dtypes.rows",
            ANY,
            id="lone-grad-bias",
        ),
        pytest.param(
            "batch_norm_backward",
            {**HALVES, "runningMean": None, "runningVar": {"dtype": "FLOAT"}},
            "dtypes.rows",
            ANY,
            id="lone-running-var",
        ),
        pytest.param(
            "group_norm_swish_grad", {"dgammaOut": {"shape": (3,)}}, "dgammaOut.shape", ANY, id="shape-of-gamma"
        ),
        pytest.param("group_norm_swish_grad", {}, "", VALID, id="shape-of-the-example"),
        pytest.param(
            "max_pool2d_with_indices_backward",
            {"gradInput": {"dtype": "FLOAT16"}},
            "gradInput.same_dtype",
            ANY,
            id="unnamed-in-remark",
        ),
        pytest.param(
            "max_pool2d_with_indices_backward",
            {"self": {"data": Data(values=("inf", *[1.0] * 11))}},
            "",
            VALID,
            id="inf",
        ),
        pytest.param(
            "max_pool2d_with_indices_backward",
            {"self": {"data": Data(values=("-inf", *[1.0] * 11))}},
            "self.finite",
            ANY,
            id="minus-inf",
        ),
        pytest.param(
            "max_pool2d_with_indices_backward",
            {"self": {"data": Data(values=("nan", *[1.0] * 11))}},
            "self.finite",
            ANY,
            id="nan",
        ),
        *[
            pytest.param("mse_loss_backward", {name: {"shape": (), "data": None}}, f"{name}.scalar", ANY, id=name)
            for name in ("gradOutput", "self", "target")
        ],
        pytest.param(
            "mse_loss_backward",
            {name: {"shape": (1,) * 7 + (2, 2)} for name in ("gradOutput", "self", "target", "out")},
            "gradOutput.rank self.rank target.rank",
            INVALID,
            id="nine-dimensions",
        ),
        pytest.param(
            "nll_loss_backward",
            {"totalWeight": {"strides": (2,), "storage_shape": (4,)}},
            "totalWeight.contiguous",
            ANY,
            id="strided-total-weight",
        ),
        pytest.param(
            "reflection_pad1d_backward",
            {
                "gradOutput": {"shape": (1, 1), "data": None},
                "self": {"shape": (0, 1), "data": None},
                "padding": (0, 0),
                "gradInput": {"shape": (0, 1)},
            },
            "self.rows",
            ANY,
            id="empty-first-of-two",
        ),
        pytest.param(
            "reflection_pad1d_backward",
            {
                "gradOutput": {"shape": (1, 0, 4), "data": None},
                "self": {"shape": (1, 0, 2), "data": None},
                "gradInput": {"shape": (1, 0, 2)},
            },
            "self.channels",
            INVALID,
            id="empty-channels",
        ),
        pytest.param(
            "rotary_position_embedding_grad",
            {"mode": 2, **{name: {"shape": (1, 1, 1, 6), "data": None} for name in ("dy", "cos", "sin", "dxOut")}},
            "dy.quarter",
            ("ACLNN_ERR_INNER_TILING_ERROR",),
            id="quarter",
        ),
        pytest.param("rotary_position_embedding_grad", {"mode": 2}, "mode.named", ANY, id="mode-of-formulas"),
    ],
)  # fmt: skip
def test_changed_example_has_the_promise_of_its_document(
    stem: str, changes: Mapping[str, Any], broken: str, statuses: tuple[str, ...]
) -> None:
    found = evaluated(stem, changes)
    assert ({item.id for item in found.broken}, found.statuses) == (set(broken.split()), statuses)


@pytest.mark.parametrize(
    ("ignored", "target", "broken", "unsafe"),
    [
        (-100, (0, -100), "target.ignored", False),
        (4, (0, 4), "target.ignored", False),
        (2, (0, 2), "", False),
        (-100, (0, -9), "target.range", True),
        (-100, (0, 3), "target.range", True),
    ],
)
def test_ignored_target_outside_the_classes_is_open_and_safe(
    ignored: int, target: tuple[int, ...], *, broken: str, unsafe: bool
) -> None:
    found = evaluated("nll_loss_backward", {"ignoreIndex": ignored, "target": {"data": Data(values=target)}})
    assert [item.id for item in found.broken] == broken.split()
    assert any(item.unsafe for item in found.broken) == unsafe
    assert found.strength == ({"": "valid", "target.ignored": "open"}.get(broken, "limit"))
    assert found.has_values == bool(broken)


def test_last_format_of_ascend_950_has_height_and_width_before_channels() -> None:
    arguments = dict(load_specs().find("max_pool2d_with_indices_backward").examples[0].arguments)
    last = {
        name: {"format": "NHWC", "shape": (1, *value.shape[2:], 1)}
        for name, value in arguments.items()
        if isinstance(value, Tensor)
    }
    stem = "max_pool2d_with_indices_backward"
    assert evaluated(stem, last, "ascend-950").statuses == VALID
    assert evaluated(stem, last).statuses == INVALID
    turned = {name: {"format": "NHWC", "shape": (1, 1, 2, 1)} for name in ("gradOutput", "indices")}
    assert [item.id for item in evaluated(stem, {**last, **turned}, "ascend-950").broken] == ["gradOutput.windows_last"]
    three = {name: {**change, "shape": change["shape"][1:]} for name, change in last.items()}
    assert [item.id for item in evaluated(stem, three, "ascend-950").broken] == ["gradOutput.layout"]


def test_dtype_that_a_remark_takes_from_other_tensors_is_open() -> None:
    found = evaluated("avg_pool2d_backward", {"gradOutput": {"dtype": "BF16"}}, "atlas-training")
    assert (found.strength, found.statuses) == ("open", ANY)
