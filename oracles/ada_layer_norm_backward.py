"""aclnnAdaLayerNormBackward: the gradients of a layer normalisation that each sample scales and shifts."""

import math

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.oracles._normalisation import Groups, Sizes, centred, normalisation, normalised


def _groups(sizes: Sizes) -> Groups:
    return Groups((math.prod(sizes[:-2]), *sizes[-2:]), within=(2,), across=(0, 1))


def _of_samples(array: Array, sizes: Sizes) -> Array:
    return array.reshape(math.prod(sizes[:-2]), 1, sizes[-1])


def _backward(  # noqa: PLR0913, PLR0917 - the parameters of the prototype
    f: F, gradOut: Array, input: Array, rstd: Array, mean: Array, scale: Array, weightOptional: Array | None,
    biasOptional: Array | None, shift: Array, normalizedShape: Sizes,
) -> Outputs:  # fmt: skip
    groups = _groups(input.shape)
    g, normal = groups.grouped(gradOut), groups.normal(f, input, mean, rstd)
    scaled = g * (1.0 + _of_samples(scale, input.shape))
    weighted = scaled if weightOptional is None else scaled * groups.weight(weightOptional)
    y = normal if weightOptional is None else normal * groups.weight(weightOptional)
    y = y if biasOptional is None else y + groups.weight(biasOptional)
    found = centred(weighted, normal, groups.within) * groups.statistic(rstd)
    return {
        "gradInputOut": found.reshape(*input.shape),
        "gradScaleOut": (g * y).sum(1).reshape(*scale.shape),
        "gradShiftOut": g.sum(1).reshape(*shift.shape),
        "gradWeightOut": (scaled * normal).sum(groups.across).reshape(*normalizedShape),
        "gradBiasOut": scaled.sum(groups.across).reshape(*normalizedShape),
    }


def _forward(
    f: F,
    input: Array,
    scale: Array,
    shift: Array,
    weightOptional: Array | None,
    biasOptional: Array | None,
    mean: Sizes,
) -> Outputs:
    found = normalised(f, _groups(input.shape), input, weightOptional, biasOptional, mean)
    groups = _groups(input.shape)
    y = groups.grouped(found["y"]) * (1.0 + _of_samples(scale, input.shape)) + _of_samples(shift, input.shape)
    return found | {"y": y.reshape(*input.shape)}


FORMULA = normalisation(
    _backward,
    _forward,
    ("mean", "rstd"),
    gradInputOut="input",
    gradScaleOut="scale",
    gradShiftOut="shift",
    gradWeightOut="weightOptional",
    gradBiasOut="biasOptional",
)
