"""Bindings read backwards: torch's arguments become parameters again."""

from __future__ import annotations

import pytest

from aclnn_cts.speclang.load import load_specs
from aclnn_cts.training.inverse import InverseBinding, inverse_bindings

SPECS = load_specs()


def inverse(function: str, operator: str = "") -> InverseBinding:
    """The binding that a function belongs to, of several the operator's."""
    [found] = [item for item in inverse_bindings()[function] if item.operator in SPECS and operator in item.operator]
    return found


@pytest.mark.parametrize(
    ("function", "operator", "parameters", "outputs"),
    [
        ("tanh_backward", "aclnnTanhBackward", {"grad_output": "gradOutput", "output": "output"}, {"gradInput": 0}),
        (
            "native_layer_norm_backward",
            "aclnnLayerNormBackward",
            {"grad_out": "gradOut", "weight": "weightOptional", "output_mask": "outputMask"},
            {"gradInputOut": 0, "gradWeightOut": 1, "gradBiasOut": 2},
        ),
        (
            "native_batch_norm_backward",
            "aclnnBatchNormBackward",
            {"grad_out": "gradOut", "train": "training", "output_mask": "outputMask"},
            {"gradInput": 0, "gradWeight": 1, "gradBias": 2},
        ),
        (
            "convolution_backward",
            "aclnnConvolutionBackward",
            {"grad_output": "gradOutput", "bias_sizes": "biasSizes", "output_mask": "outputMask"},
            {"gradInput": 0, "gradWeight": 1, "gradBias": 2},
        ),
        (
            "max_pool2d_with_indices_backward",
            "aclnnMaxPool2dWithIndicesBackward",
            {"grad_output": "gradOutput", "indices": "indices", "ceil_mode": "ceilMode"},
            {"gradInput": 0},
        ),
    ],
)
def test_arguments_and_results_have_parameters(
    function: str, operator: str, parameters: dict[str, str], outputs: dict[str, int]
) -> None:
    found = inverse(function, operator)
    assert found.operator == operator
    assert {name: found.arguments[name].parameter for name in parameters} == parameters
    assert found.outputs == outputs


def test_conversions_are_taken_back() -> None:
    padding = inverse("embedding_dense_backward").arguments["padding_idx"]
    assert (padding.parameter, padding.restored(-1), padding.restored(3)) == ("paddingIdx", 2**64 - 1, 3)
    divisor = inverse("avg_pool2d_backward").arguments["divisor_override"]
    assert (divisor.parameter, divisor.restored(None), divisor.restored(4)) == ("divisorOverride", 0, 4)


@pytest.mark.parametrize("function", sorted(inverse_bindings()))
def test_every_parameter_is_one_of_the_operator(function: str) -> None:
    for item in inverse_bindings()[function]:
        spec = SPECS.get(item.operator)
        if spec is not None:
            names = {parameter.name for parameter in spec.parameters}
            assert {source.parameter for source in item.arguments.values()} | set(item.outputs) <= names


def test_a_function_that_is_called_with_a_product_of_a_parameter_is_not_that_operator() -> None:
    assert inverse("silu_backward").operator == "aclnnSiluBackward"
    operators = {item.operator for items in inverse_bindings().values() for item in items}
    assert not operators & {"aclnnFastGeluBackward", "aclnnSwishBackward"}
