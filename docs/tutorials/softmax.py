import numpy as np


def softmax_backward(gradOutput, output, dim):
    grad, y = np.float32(gradOutput), np.float32(output)
    weighted = (grad * y).swapaxes(dim, -1)
    total = weighted[..., :1024].sum(axis=-1, keepdims=True).swapaxes(dim, -1)
    return y * (grad - total)
