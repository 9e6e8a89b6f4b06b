"""The gradient of a max pooling."""

import numpy as np
from right import wide


def overlapping_windows(gradOutput, self, indices, *, formats):
    """FluxML/Flux.jl#1197: Where windows overlap, the last one's gradient replaces the others'."""
    last = formats["gradOutput"] == "NHWC"
    g, index, like = (np.moveaxis(array, -1, -3) if last else array for array in (gradOutput, indices, self))
    out = np.zeros((int(np.prod(like.shape[:-2], dtype=int)), like.shape[-2] * like.shape[-1]))
    planes = np.arange(len(out))[:, None]
    out[planes, index.reshape(len(out), -1).astype(np.int64)] = wide(g).reshape(len(out), -1)
    out = out.reshape(like.shape)
    return np.moveaxis(out, -3, -1) if last else out
