"""aclnnLayerNormBackward: the gradients of a layer normalisation, whose groups are rows, from their statistics."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.oracles._normalisation import Groups, Sizes, gradients, normalisation, normalised


def _backward(
    f: F, gradOut: Array, input: Array, normalizedShape: Sizes, mean: Array, rstd: Array, weightOptional: Array | None
) -> Outputs:
    rows = Groups.of_rows(input.shape, normalizedShape)
    shapes = {"gradInputOut": input.shape, "gradWeightOut": normalizedShape, "gradBiasOut": normalizedShape}
    return gradients(f, rows, gradOut, input, mean, rstd, weightOptional, shapes)


def _forward(
    f: F, input: Array, normalizedShape: Sizes, weightOptional: Array | None, biasOptional: Array | None, mean: Sizes
) -> Outputs:
    rows = Groups.of_rows(input.shape, normalizedShape)
    return normalised(f, rows, input, weightOptional, biasOptional, mean)


_WRT = {"gradInputOut": "input", "gradWeightOut": "weightOptional", "gradBiasOut": "biasOptional"}
FORMULA = normalisation(_backward, _forward, ("mean", "rstd"), **_WRT)
