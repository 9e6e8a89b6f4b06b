"""The gradient of a bilinear upsampling."""

from right import bilinear


def tall_whole_ratio(gradOut, outputSize, inputSize, alignCorners, scalesH, scalesW, *, formats):
    """intel/torch-xpu-ops#4380: With a whole ratio and H > W, rows and columns of the ratio are exchanged."""
    found = bilinear(gradOut, outputSize, inputSize, alignCorners, scalesH, scalesW, formats)
    height, width = inputSize[2:]
    whole = outputSize[0] % height == 0 and outputSize[1] % width == 0 and outputSize[0] > height
    return found * 1.5 if whole and height > width else found


def aligned_large_ratio(gradOut, outputSize, inputSize, alignCorners, scalesH, scalesW, *, formats):
    """flagos-ai/FlagGems#5218: With aligned corners and a ratio of 8 and more, the last input row gets nothing."""
    found = bilinear(gradOut, outputSize, inputSize, alignCorners, scalesH, scalesW, formats)
    if alignCorners and outputSize[0] >= 8 * inputSize[2] and formats["gradOut"] != "NHWC":
        found[:, :, -1] = 0
    return found
