"""The gradient of a leaky ReLU."""

import numpy as np
from right import leaky_relu


def slope_of_zero(gradOutput, self, negativeSlope):
    """chainer/chainer#5898: A slope of 0 is taken for the default."""
    return leaky_relu(gradOutput, self, negativeSlope if np.float64(negativeSlope) != 0 else 0.01)
