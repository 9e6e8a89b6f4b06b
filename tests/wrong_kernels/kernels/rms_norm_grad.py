"""The gradient of an RMS norm."""

import ml_dtypes
import numpy as np
from right import rms_norm, wide


def weight_sum_in_bf16(dy, x, rstd, gamma):
    """NVIDIA/SOL-ExecBench: The sum over rows for the weight's gradient stays in BF16."""
    found = rms_norm(dy, x, rstd, gamma)
    total = np.zeros(gamma.size)
    for row in (
        wide(dy).reshape(rstd.size, gamma.size) * wide(x).reshape(rstd.size, gamma.size) * wide(rstd).reshape(-1, 1)
    ):
        total = (total + row).astype(ml_dtypes.bfloat16).astype(np.float64)
    return found | {"dgammaOut": total.reshape(gamma.shape)}
