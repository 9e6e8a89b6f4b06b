"""The gradient of a bilinear upsampling."""

from right import bilinear


def tall_whole_ratio(gradOut, outputSize, inputSize, alignCorners, scalesH, scalesW, *, formats):
    """intel/torch-xpu-ops#4380: With a whole ratio and H > W, rows and columns of the ratio are exchanged."""
    height, width = inputSize[2:]
    whole = outputSize[0] % max(height, 1) == 0 and outputSize[1] % max(width, 1) == 0
    scales = (scalesW, scalesH) if whole and height > width else (scalesH, scalesW)
    return bilinear(gradOut, outputSize, inputSize, alignCorners, *scales, formats)


def aligned_large_ratio(gradOut, outputSize, inputSize, alignCorners, scalesH, scalesW, *, formats):
    """flagos-ai/FlagGems#5218: With aligned corners and a ratio of 8 and more, the last input row gets nothing."""
    found = bilinear(gradOut, outputSize, inputSize, alignCorners, scalesH, scalesW, formats)
    if alignCorners and outputSize[0] >= 8 * inputSize[2] and formats["gradOut"] != "NHWC":
        found[:, :, -1] = 0
    return found
