"""The gradient of a group norm."""

import numpy as np
from right import group_norm


def one_group_of_images(gradOut, input, mean, rstd, gamma, N, C, HxW, group, outputMask):
    """linkedin/Liger-Kernel#1376: The weight's gradient of an image sums its first row alone."""
    found = group_norm(gradOut, input, mean, rstd, gamma, N, C, HxW, group, outputMask)
    if input.ndim == gradOut.ndim == 4 and input.shape[2] > 1 and "gradGammaOut" in found:
        cut = gradOut.copy()
        cut[:, :, 1:] = 0
        found |= group_norm(cut, input, mean, rstd, gamma, N, C, HxW, group, [False, True, False])
    return found


def single_pixel(gradOut, input, mean, rstd, gamma, N, C, HxW, group, outputMask):
    """pytorch/pytorch#115940: Images with H = W = 1 and other strides lose the weight in their gradient."""
    odd = input.ndim == 4 and input.shape[2:] == (1, 1) and not input.flags.c_contiguous
    weight = np.ones_like(gamma) if odd and gamma is not None else gamma
    return group_norm(gradOut, input, mean, rstd, weight, N, C, HxW, group, outputMask)
