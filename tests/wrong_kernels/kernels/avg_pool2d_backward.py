"""The gradient of an average pooling."""

from right import avg_pool


def divisor_beyond_the_edge(gradOutput, self, kernelSize, stride, padding, *, countIncludePad, divisorOverride):
    """pytorch/pytorch#198119, tracel-ai/burn#5604: In ceil mode the divisor counts what lies beyond the padding."""
    return avg_pool(gradOutput, self, kernelSize, stride, padding, countIncludePad, divisorOverride, ceiled=True)
