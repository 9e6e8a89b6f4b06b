"""The gradient of a rotary embedding."""

from right import rotary


def interleaved_as_half(dy, cos, sin, xOptional, mode):
    """vllm-project/vllm#5984: Interleaved pairs are computed as halves."""
    return rotary(dy, cos, sin, xOptional, 0 if mode == 1 else mode)
