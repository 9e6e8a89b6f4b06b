"""Gradients as documents state them, in float64: what the wrong kernels spoil."""

import math

import numpy as np


def wide(*arrays):
    """In float64."""
    found = [None if array is None else np.asarray(array).astype(np.float64) for array in arrays]
    return found[0] if len(found) == 1 else found


def softmax_backward(gradOutput, output, dim):
    g, y = wide(gradOutput, output)
    return y * (g - (g * y).sum(axis=dim, keepdims=True))


def embedding(grad, indices, numWeights, paddingIdx, scaleGradByFreq, keep=None):
    rows = wide(grad).reshape(indices.size, grad.shape[-1])
    index = indices.reshape(-1).astype(np.int64)
    used = index != paddingIdx if keep is None else keep
    out = np.zeros((numWeights, grad.shape[-1]))
    np.add.at(out, index[used], rows[used])
    if scaleGradByFreq:
        out /= np.maximum(np.bincount(index[used], minlength=numWeights)[:numWeights, None], 1)
    return out


def asked(mask, **outputs):
    """The outputs that a mask asks for."""
    return {name: array for (name, array), given in zip(outputs.items(), mask) if given}


def normalised(g, x, mean, rstd, weight, within, across):
    """Gradients of a normalisation over the axes `within`, and of its weight and bias over `across`."""
    xhat = (x - mean) * rstd
    scaled = g if weight is None else g * weight
    centred = scaled - scaled.mean(axis=within, keepdims=True) - xhat * (scaled * xhat).mean(axis=within, keepdims=True)
    return rstd * centred, (g * xhat).sum(axis=across), g.sum(axis=across)


def layer_norm(gradOut, input, normalizedShape, mean, rstd, weightOptional, outputMask):
    d = math.prod(normalizedShape)
    g, x = (wide(array).reshape(-1, d) for array in (gradOut, input))
    m, r = (wide(array).reshape(-1, 1) for array in (mean, rstd))
    weight = None if weightOptional is None else wide(weightOptional).reshape(-1)
    dx, dw, db = normalised(g, x, m, r, weight, 1, 0)
    dw, db = (array.reshape(normalizedShape) for array in (dw, db))
    return asked(outputMask, gradInputOut=dx.reshape(input.shape), gradWeightOut=dw, gradBiasOut=db)


def batch_norm(gradOut, input, weight, runningMean, runningVar, saveMean, saveInvstd, training, eps, outputMask):
    g, x, w = wide(gradOut, input, weight)
    shape = (1, -1, *(1,) * (x.ndim - 2))
    axes = (0, *range(2, x.ndim))
    m, r = wide(saveMean, saveInvstd) if training else (wide(runningMean), 1 / np.sqrt(wide(runningVar) + eps))
    m, r = m.reshape(shape), r.reshape(shape)
    scale = None if w is None else w.reshape(shape)
    dx, dw, db = normalised(g, x, m, r, scale, axes, axes)
    if not training:
        dx = g * (r if scale is None else scale * r)
    return asked(outputMask, gradInput=dx, gradWeight=dw, gradBias=db)


def group_norm(gradOut, input, mean, rstd, gamma, N, C, HxW, group, outputMask):
    shape = (N, group, C // group, HxW)
    g, x = (wide(array).reshape(shape) for array in (gradOut, input))
    m, r = (wide(array).reshape(N, group, 1, 1) for array in (mean, rstd))
    weight = None if gamma is None else wide(gamma).reshape(1, group, C // group, 1)
    dx, dw, db = normalised(g, x, m, r, weight, (2, 3), (0, 3))
    given = (C,) if gamma is None else gamma.shape
    dx, dw, db = dx.reshape(input.shape), dw.reshape(given), db.reshape(given)
    return asked(outputMask, gradInput=dx, gradGammaOut=dw, gradBetaOut=db)


def rms_norm(dy, x, rstd, gamma):
    shape = (rstd.size, gamma.size)
    g, v = (wide(array).reshape(shape) for array in (dy, x))
    r, w = wide(rstd).reshape(-1, 1), wide(gamma).reshape(-1)
    xhat = v * r
    dx = (g * w - xhat * (g * w * xhat).mean(axis=1, keepdims=True)) * r
    return {"dxOut": dx.reshape(x.shape), "dgammaOut": (g * xhat).sum(axis=0).reshape(gamma.shape)}


def nll_loss(gradOutput, self, target, weight, reduction, ignoreIndex, totalWeight):
    classes = self.shape[-1]
    labels = target.reshape(-1).astype(np.int64)
    rows = np.flatnonzero(labels != ignoreIndex)
    out = np.zeros((labels.size, classes))
    upper = np.broadcast_to(wide(gradOutput).reshape(-1), labels.shape)[rows]
    value = -wide(weight)[labels[rows]] * upper
    out[rows, labels[rows]] = value / wide(totalWeight)[0] if reduction == 1 else value
    return out.reshape(self.shape)


def avg_pool(gradOutput, self, kernelSize, stride, padding, countIncludePad, divisorOverride, ceiled=False):
    kernel, pad = ([*items, *items][:2] for items in (kernelSize, padding))
    step = [*stride, *stride][:2] or kernel
    height, width = self.shape[-2:]
    out = np.zeros((*self.shape[:-2], height + pad[0], width + pad[1]))
    g = wide(gradOutput)
    for i in range(g.shape[-2]):
        top = i * step[0] - pad[0]
        bottom = top + kernel[0] if ceiled else min(top + kernel[0], height + pad[0])
        for j in range(g.shape[-1]):
            left = j * step[1] - pad[1]
            right = left + kernel[1] if ceiled else min(left + kernel[1], width + pad[1])
            area = (bottom - top) * (right - left)
            if not countIncludePad:
                area = (min(bottom, height) - max(top, 0)) * (min(right, width) - max(left, 0))
            share = g[..., i : i + 1, j : j + 1] / (divisorOverride or area)
            out[..., max(top, 0) : bottom, max(left, 0) : right] += share
    return out[..., :height, :width]


def axis_weights(size, out, aligned, scale):
    """Of each output place, the share of every input place."""
    if aligned:
        ratio = np.float32(size - 1) / np.float32(out - 1) if out > 1 else np.float32(0)
        place = np.arange(out, dtype=np.float32) * ratio
    else:
        ratio = np.float32(1 / scale) if scale > 0 else np.float32(size) / np.float32(out)
        place = np.maximum((np.arange(out, dtype=np.float32) + np.float32(0.5)) * ratio - np.float32(0.5), 0)
    low = np.minimum(place.astype(np.int64), size - 1)
    high = np.minimum(low + 1, size - 1)
    share = np.minimum(np.maximum(place - low, 0), 1).astype(np.float64)
    weights = np.zeros((out, size))
    np.add.at(weights, (np.arange(out), low), 1 - share)
    np.add.at(weights, (np.arange(out), high), share)
    return weights


def along(g, weights, axis):
    """What the shares of an axis that are not 0 make of a gradient: 0 times inf would be nan."""
    g = np.moveaxis(g, axis, 0)
    out = np.zeros((weights.shape[1], *g.shape[1:]))
    for place, into in np.argwhere(weights):
        out[into] += weights[place, into] * g[place]
    return np.moveaxis(out, 0, axis)


def bilinear(gradOut, outputSize, inputSize, alignCorners, scalesH, scalesW, formats):
    last = formats["gradOut"] == "NHWC"
    g = wide(gradOut)
    g = np.moveaxis(g, -1, 1) if last else g
    rows = axis_weights(inputSize[2], outputSize[0], alignCorners, scalesH)
    columns = axis_weights(inputSize[3], outputSize[1], alignCorners, scalesW)
    out = along(along(g, rows, 2), columns, 3)
    return np.moveaxis(out, 1, -1) if last else out


def rotary(dy, cos, sin, xOptional, mode):
    """Modes: 0 half, 1 interleaved, 2 quarter, 3 interleaved with halves of cos and sin."""

    def halves(array, mode):
        length = array.shape[-1]
        blocks = {0: 1, 1: length // 2, 2: 2, 3: length // 2}[mode]
        split = array.reshape(*array.shape[:3], blocks, 2, -1)
        return [split[..., place, :].reshape(*array.shape[:3], -1) for place in (0, 1)]

    def joined(first, second, mode):
        length = first.shape[-1]
        blocks = {0: 1, 1: length, 2: 2, 3: length}[mode]
        parts = [half.reshape(*half.shape[:3], blocks, -1) for half in (first, second)]
        return np.stack(parts, axis=4).reshape(*first.shape[:3], -1)

    def summed(array):
        axes = tuple(axis for axis in range(4) if cos.shape[axis] == 1 and array.shape[axis] != 1)
        return array.sum(axis=axes, keepdims=True)

    (g1, g2), (c1, c2), (s1, s2) = (halves(wide(array), mode % 3) for array in (dy, cos, sin))
    dx = joined(c1 * g1 + s2 * g2, c2 * g2 - s1 * g1, mode)
    if xOptional is None:
        return {"dxOut": dx}
    x1, x2 = halves(wide(xOptional), mode)
    dcos, dsin = joined(g1 * x1, g2 * x2, mode % 3), joined(-g1 * x2, g2 * x1, mode % 3)
    return {"dxOut": dx, "dcosOut": summed(dcos), "dsinOut": summed(dsin)}


def leaky_relu(gradOutput, self, negativeSlope):
    g, x = wide(gradOutput, self)
    return np.where(x > 0, g, g * negativeSlope)


def smooth_l1(gradOut, self, target, reduction, beta):
    g, x, y = wide(gradOut, self, target)
    d = x - y
    slope = np.sign(d) if beta == 0 else np.clip(d / beta, -1, 1)
    return g * slope / (max(self.size, 1) if reduction == 1 else 1)


ERF = np.vectorize(math.erf, otypes=[float])


def gelu(gradOutput, self, approximate):
    g, x = wide(gradOutput, self)
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
        t = np.tanh(inner)
        slope = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x**2)
        return g * (0.5 * (1 + t) + 0.5 * x * (1 - t) * (1 + t) * slope)
    return g * (0.5 * (1 + ERF(x / math.sqrt(2))) + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi))
