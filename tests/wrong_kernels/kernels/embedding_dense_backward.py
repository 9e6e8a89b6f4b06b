"""The gradient of an embedding."""

import ml_dtypes
import numpy as np
from right import embedding, wide


def padding_of_long_inputs(grad, indices, numWeights, paddingIdx, scaleGradByFreq):
    """pytorch/pytorch#28716: With more than 768 indices the padding row gets a gradient."""
    keep = np.ones(indices.size, bool) if indices.size > 768 else None
    return embedding(grad, indices, numWeights, paddingIdx, scaleGradByFreq, keep)


def equal_indices_overwrite(grad, indices, numWeights, paddingIdx, scaleGradByFreq):
    """tenstorrent/tt-metal#6232: Of equal indices, the last one's gradient replaces the others'."""
    index = indices.reshape(-1).astype(np.int64)
    used = index != paddingIdx
    out = np.zeros((numWeights, grad.shape[-1]))
    out[index[used]] = wide(grad).reshape(index.size, grad.shape[-1])[used]
    return out


def row_sum_in_bf16(grad, indices, numWeights, paddingIdx, scaleGradByFreq):
    """NVIDIA/SOL-ExecBench: The sum of a row stays in BF16: right on uniform indices, off in the hot rows of a text."""
    index = indices.reshape(-1).astype(np.int64)
    rows = wide(grad).reshape(index.size, grad.shape[-1])
    out = np.zeros((numWeights, grad.shape[-1]))
    for place, row in zip(index, rows):
        if place != paddingIdx:
            out[place] = (out[place] + row).astype(ml_dtypes.bfloat16)
    counts = np.maximum(np.bincount(index, minlength=numWeights)[:numWeights, None], 1)
    return out / counts if scaleGradByFreq else out
