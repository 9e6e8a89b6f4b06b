"""Calls as other programs dump them."""

from __future__ import annotations

from typing import Any

GRAD = {"shape": [8, 16], "dtype": "torch.float32"}
LAYER_NORM: dict[str, Any] = {
    "operator": "layer_norm_backward",
    "arguments": {
        "grad_out": GRAD,
        "input": GRAD,
        "normalized_shape": [16],
        "mean": {"shape": [8, 1], "dtype": "FLOAT"},
        "rstd": {"shape": [8, 1], "dtype": "f32"},
        "weight": {"shape": [16], "dtype": "float32"},
        "output_mask": [True, True, True],
    },
}
