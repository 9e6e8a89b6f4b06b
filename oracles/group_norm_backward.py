"""aclnnGroupNormBackward: the gradients of a group normalisation, whose groups are channels, from their statistics."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.oracles._normalisation import Groups, Sizes, gradients, normalisation, normalised


def _backward(  # noqa: PLR0913 - the parameters of the prototype
    f: F, gradOut: Array, input: Array, mean: Array, rstd: Array, gamma: Array | None, *, N: int, C: int, HxW: int,
    group: int, gradGammaOut: Sizes | None, gradBetaOut: Sizes | None,
) -> Outputs:  # fmt: skip
    shapes = {"gradInput": input.shape, "gradGammaOut": gradGammaOut, "gradBetaOut": gradBetaOut}
    return gradients(f, Groups.of_channels((N, C, HxW), group), gradOut, input, mean, rstd, gamma, shapes)


def _forward(f: F, input: Array, gamma: Array | None, *, N: int, C: int, HxW: int, group: int, mean: Sizes) -> Outputs:
    return normalised(f, Groups.of_channels((N, C, HxW), group), input, gamma, None, mean)


FORMULA = normalisation(_backward, _forward, ("mean", "rstd"), gradInput="input", gradGammaOut="gamma")
