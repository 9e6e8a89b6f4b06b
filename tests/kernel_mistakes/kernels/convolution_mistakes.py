"""Mistakes that kernels of convolutions have: each changes one step of a right one."""

import numpy as np
from convolution import Convolution


class PaddingOfOneSide(Convolution):
    """Of four paddings those of the height are taken for the width too."""

    def before(self, call):
        before = super().before(call)
        return (before[0], before[0]) if len(call.padding) > len(call.stride) else before


class PaddingBehindIgnored(Convolution):
    """Windows that reach into the padding behind the width add nothing to the gradient of the weights."""

    def of_weight(self, call, b, m, shape):
        places = np.arange(m.shape[-1]) * self.stride(call)[-1] - self.before(call)[-1]
        last = places + (shape[-1] - 1) * self.dilation(call)[-1]
        return super().of_weight(call, b, np.where(last < b.shape[-1], m, np.float32(0)), shape)


class PaddingSwapped(Convolution):
    """The paddings of height and width are exchanged."""

    def before(self, call):
        before = super().before(call)
        return (*before[:-2], before[-1], before[-2]) if len(before) > 1 else before


class DilationOfOneAxis(Convolution):
    """The dilation of the width holds for the height too."""

    def dilation(self, call):
        found = super().dilation(call)
        return (*found[:-2], found[-1], found[-1]) if len(found) > 1 else found


class DilationOfDepthIgnored(Convolution):
    """The depth is not dilated."""

    def dilation(self, call):
        found = super().dilation(call)
        return (1, *found[1:]) if len(found) == 3 else found


class StrideSwapped(Convolution):
    """The strides of height and width are exchanged in the gradient of the input."""

    def scatter(self, call, m, w, shape):
        stride = list(call.stride)
        if len(stride) > 1:
            call.stride = [*stride[:-2], stride[-1], stride[-2]]
        found = super().scatter(call, m, w, shape)
        call.stride = stride
        return found


class StrideTail(Convolution):
    """Where a stride leaves a tail of the width over, the last windows are left out."""

    def scatter(self, call, m, w, shape):
        reached = (m.shape[-1] - 1) * self.stride(call)[-1] + (w.shape[-1] - 1) * self.dilation(call)[-1] + 1
        if reached < shape[-1] + self.before(call)[-1] and m.shape[-1] > 1:
            m = np.concatenate((m[..., :-1], np.zeros_like(m[..., -1:])), -1)
        return super().scatter(call, m, w, shape)


class GroupOffset(Convolution):
    """From the third group on, weights are those of the group before."""

    def weights(self, call):
        found = super().weights(call)
        groups = np.arange(len(found))
        return found[np.where(groups > 1, groups - 1, groups)]


class GroupOffsetByOtherChannels(Convolution):
    """Groups of the wide array lie as far apart as those of the narrow one."""

    def by_groups(self, call, array):
        found = super().by_groups(call, array)
        count = call.weight.shape[0] // call.groups
        if found.shape[2] <= count or call.groups == 1:
            return found
        flat = self.operand(call, array)
        return np.stack([flat[:, n * count :][:, : found.shape[2]] for n in range(call.groups)], 1)


class OutputPaddingIgnored(Convolution):
    """Of a transposed convolution the rows of the output padding add nothing to the gradient of the weights."""

    def of_weight(self, call, b, m, shape):
        if call.transposed:
            b = b.copy()
            for axis, extra in enumerate(call.outputPadding):
                if extra:
                    b[(..., slice(-extra, None), *[slice(None)] * (len(call.outputPadding) - axis - 1))] = 0
        return super().of_weight(call, b, m, shape)


class LowPrecisionWherePromised(Convolution):
    """Operands in FLOAT are cut to HFLOAT32 where cubeMathType keeps the dtype."""

    def operand(self, call, array):
        found = super().operand(call, array)
        if call.cubeMathType != 0 or array.dtype != np.float32:
            return found
        return (
            (np.ascontiguousarray(found).view(np.uint32) & np.uint32(0xFFFFF000)).view(np.float32).reshape(found.shape)
        )


class BiasInHalf(Convolution):
    """The gradient of the bias is added up in the dtype of the gradient, one row after the other."""

    def of_bias(self, call):
        flat = np.moveaxis(call.gradOutput, 1, -1).reshape(-1, call.gradOutput.shape[1])
        found = np.zeros(flat.shape[1], flat.dtype)
        for row in flat:
            found = found + row
        return found


class WeightSumsInHalf(Convolution):
    """The gradient of the weights is rounded to the dtype after each batch."""

    def summed(self, call, m, b):
        found = np.zeros((m.shape[1], m.shape[2], b.shape[2]), np.float32)
        for n in range(len(m)):
            found = (
                (found + super().summed(call, m[n : n + 1], b[n : n + 1])).astype(call.weight.dtype).astype(np.float32)
            )
        return found


class KernelMirrored(Convolution):
    """The taps of the height are taken in the other order where the kernel is no square."""

    def weights(self, call):
        found = super().weights(call)
        return found[..., ::-1, :] if found.ndim > 4 and found.shape[-1] != found.shape[-2] else found


class LastChannelsDropped(Convolution):
    """Wide channels behind the last whole block of 16 get no gradient."""

    def weights(self, call):
        found = super().weights(call)
        whole = found.shape[2] // 16 * 16
        return (
            found
            if not whole
            else np.where((np.arange(found.shape[2]) < whole).reshape(-1, *[1] * (found.ndim - 3)), found, 0)
        )


class BatchesBeyondBlock(Convolution):
    """The gradient of the weights takes the first 16 batches."""

    def summed(self, call, m, b):
        return super().summed(call, m[:16], b[:16])


class UnreadRowsUnwritten(Convolution):
    """With kernels of one element and a stride, places between the windows keep what the memory held."""

    def __call__(self, **call):
        results = super().__call__(**call)
        array = call["gradInput"]
        if "gradInput" in results and not call["transposed"] and set(call["weight"].shape[2:]) == {1}:
            met = np.zeros(array.shape, bool)
            items = zip(call["stride"], call["padding"][:: 2 if len(call["padding"]) > len(call["stride"]) else 1])
            met[(..., *(slice(-p % s, None, s) for s, p in items))] = True
            results["gradInput"] = np.where(met, results["gradInput"], array)
        return results


class BiasNeedsWeight(Convolution):
    """The bias gets no gradient where the weights get none."""

    def __call__(self, **call):
        results = super().__call__(**call)
        if "gradBias" in results and not call["outputMask"][1]:
            del results["gradBias"]
        return results


class InputBatchOverflow(Convolution):
    """Channels of the narrow array are counted with eight bits."""

    def weights(self, call):
        found = super().weights(call)
        return found[:, np.arange(found.shape[1]) % 256]
