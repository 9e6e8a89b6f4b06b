"""A convolution backwards, tap by tap: float32 sums, in any number of dimensions, transposed or not.

A convolution leads from a wide array b to a narrow one m, m[o] = sum w[t] b[o stride - padding + t dilation]; a transposed
one from m to b.
"""

import itertools
from types import SimpleNamespace

import numpy as np


class Convolution:
    """The kernel. Mistakes are subclasses, which change one step."""

    operator = "convolution_backward"

    @classmethod
    def run(cls, **call):
        """What a judge calls."""
        return cls()(**call)

    def __call__(self, **call):
        call = SimpleNamespace(**call)
        wide, narrow = (call.gradOutput, call.input) if call.transposed else (call.input, call.gradOutput)
        b, m, w = self.by_groups(call, wide), self.by_groups(call, narrow), self.weights(call)
        results = {}
        if call.outputMask[0]:
            of_input = self.gather(call, b, w, m.shape) if call.transposed else self.scatter(call, m, w, b.shape)
            results["gradInput"] = of_input.reshape(call.input.shape).astype(call.input.dtype)
        if call.outputMask[1]:
            of_weight = self.of_weight(call, b, m, w.shape)
            results["gradWeight"] = of_weight.reshape(call.weight.shape).astype(call.weight.dtype)
        if call.outputMask[2]:
            results["gradBias"] = self.of_bias(call).astype(call.gradOutput.dtype)
        return results

    def operand(self, call, array):
        """What the matrix unit takes."""
        return array.astype(np.float32)

    def by_groups(self, call, array):
        """[N, groups, channels, ...]."""
        shape = (array.shape[0], call.groups, array.shape[1] // call.groups, *array.shape[2:])
        return self.operand(call, array).reshape(shape)

    def weights(self, call):
        """[groups, narrow channels, wide channels, ...]."""
        shape = call.weight.shape
        return self.operand(call, call.weight).reshape(call.groups, shape[0] // call.groups, *shape[1:])

    def stride(self, call):
        return tuple(call.stride)

    def dilation(self, call):
        return tuple(call.dilation)

    def before(self, call):
        """The padding in front of each dimension."""
        return tuple(call.padding[::2] if len(call.padding) > len(call.stride) else call.padding)

    def padded_sizes(self, call, wide, narrow, kernel):
        """The sizes in which all windows lie."""
        items = zip(wide, narrow, kernel, self.stride(call), self.before(call), self.dilation(call))
        return [max(size + p, (count - 1) * s + (k - 1) * d + 1) for size, count, k, s, p, d in items]

    def inside(self, call, wide):
        """Where the wide array lies among them."""
        return (..., *(slice(p, p + size) for p, size in zip(self.before(call), wide)))

    def taps(self, call, kernel, narrow):
        """Each tap, and where the windows meet it."""
        for tap in itertools.product(*map(range, kernel)):
            places = zip(tap, narrow, self.stride(call), self.dilation(call))
            yield tap, (..., *(slice(t * d, t * d + (count - 1) * s + 1, s) for t, count, s, d in places))

    def padded(self, call, b, narrow, kernel):
        found = np.zeros((*b.shape[:3], *self.padded_sizes(call, b.shape[3:], narrow, kernel)), np.float32)
        found[self.inside(call, b.shape[3:])] = b
        return found

    def scatter(self, call, m, w, shape):
        """The gradient of the wide array."""
        narrow, kernel = m.shape[3:], w.shape[3:]
        found = np.zeros((*shape[:3], *self.padded_sizes(call, shape[3:], narrow, kernel)), np.float32)
        if all(narrow):
            for tap, place in self.taps(call, kernel, narrow):
                found[place] += np.einsum("ngm...,gmb->ngb...", m, w[(..., *tap)])
        return found[self.inside(call, shape[3:])]

    def gather(self, call, b, w, shape):
        """The gradient of the narrow array."""
        narrow, kernel = shape[3:], w.shape[3:]
        found = np.zeros(shape, np.float32)
        if all(narrow):
            padded = self.padded(call, b, narrow, kernel)
            for tap, place in self.taps(call, kernel, narrow):
                found += np.einsum("ngb...,gmb->ngm...", padded[place], w[(..., *tap)])
        return found

    def of_weight(self, call, b, m, shape):
        """The gradient of the weights."""
        narrow, kernel = m.shape[3:], shape[3:]
        found = np.zeros(shape, np.float32)
        if m.size and b.size:
            padded = self.padded(call, b, narrow, kernel)
            flat = m.reshape(*m.shape[:3], -1)
            for tap, place in self.taps(call, kernel, narrow):
                window = padded[place].reshape(*b.shape[:3], -1)
                found[(..., *tap)] = self.summed(call, flat, window)
        return found

    def summed(self, call, m, b):
        """[groups, narrow, wide]: the sum over batches and places."""
        return np.einsum("ngmo,ngbo->gmb", m, b)

    def of_bias(self, call):
        array = call.gradOutput.astype(np.float32)
        return array.sum((0, *range(2, array.ndim)))


direct = Convolution()


class ImplicitGemm(Convolution):
    """The same, its sums over places in blocks of 64."""

    def summed(self, call, m, b):
        found = np.zeros((m.shape[1], m.shape[2], b.shape[2]), np.float32)
        for n, start in itertools.product(range(len(m)), range(0, m.shape[3], 64)):
            found += m[n, :, :, start : start + 64] @ b[n, :, :, start : start + 64].swapaxes(-1, -2)
        return found


implicit_gemm = ImplicitGemm()
