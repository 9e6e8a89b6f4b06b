"""Mistakes that tiled attention kernels have: each changes one step of a right one."""

import numpy as np
from attention import BAND, Attention

UNPADDING = "flash_attention_unpadding_score_grad_v2"


class MaskOffAtBlockEdge(Attention):
    """The first row of a block sees one key beyond the diagonal."""

    def window(self, call, part, i, j):
        seen = super().window(call, part, i, j)
        beyond = super().window(call, part, i + 1, j)
        return np.where((i % self.rows == 0)[None, :, None] & (i > 0)[None, :, None], seen | beyond, seen)


class DiagonalBlockIsWhole(Attention):
    """A block that the diagonal crosses is not masked where it lies to the left of the rows' first place."""

    def window(self, call, part, i, j):
        seen = super().window(call, part, i, j)
        return np.ones_like(seen) if call.sparseMode in (2, 3) and 0 < j[0] <= i[0] else seen


class MissingRescale(Attention):
    """Where keys have several blocks, scores are shifted by the maximum of the block and not of the row."""

    def probabilities(self, call, part, scores, seen, r, c):
        if part.lengths[1] <= self.columns:
            return super().probabilities(call, part, scores, seen, r, c)
        top = np.where(seen, scores, -1e4).max(-1, keepdims=True)
        return np.where(seen, np.exp(scores - top) / part.total[:, :, r], np.float32(0))


class LastKeyBlockDropped(Attention):
    """Keys behind the last whole block are left out."""

    def blocks(self, length, size):
        found = super().blocks(length, size)
        return found[:-1] if len(found) > 1 and size == self.columns and length % size else found

    def __init__(self):
        super().__init__(64, 32)


class LastQueryBlockDropped(Attention):
    """Queries behind the last whole block are left out."""

    def blocks(self, length, size):
        found = super().blocks(length, size)
        return found[:-1] if len(found) > 1 and size == self.rows and length % size else found

    def __init__(self):
        super().__init__(32, 64)


class WrongGroupOfKeyGradient(Attention):
    """Gradients of keys and values go to the head whose number is that of the query's modulo the shared heads."""

    def gradient_heads(self, heads, shared):
        return np.arange(heads) % shared


class WrongGroupOfKeys(Attention):
    """Keys and values are read from that head too."""

    def key_heads(self, heads, shared):
        return np.arange(heads) % shared


class LastHeadOfGroupLeftOut(Attention):
    """The gradient of a key lacks the last head of each group of four or more."""

    def grouped(self, call, array, heads, shared):
        group = heads // shared
        if group < 4:
            return super().grouped(call, array, heads, shared)
        array = np.where((np.arange(heads) % group == group - 1)[:, None, None], 0, array)
        return super().grouped(call, array, heads, shared)


class DropoutScaleForgotten(Attention):
    """The gradient of values takes kept places, not divided by keepProb."""

    def dropped(self, call, part, array, r, c):
        return array if part.kept is None else np.where(part.kept[:, :, r, c], array, 0)

    def dropped_gradient(self, call, part, array, r, c):
        return super().dropped(call, part, array, r, c)


class DropoutScaleForgottenInScores(Attention):
    """The gradient of probabilities takes kept places, not divided by keepProb."""

    def dropped_gradient(self, call, part, array, r, c):
        return array if part.kept is None else np.where(part.kept[:, :, r, c], array, 0)


class DropoutBitsReversed(Attention):
    """The bits of a byte of the dropout mask are read with the highest first."""

    def kept(self, call, shape):
        if super().kept(call, shape) is None:
            return None
        bits = np.unpackbits(np.ascontiguousarray(call.dropMaskOptional), count=int(np.prod(shape)), bitorder="big")
        return bits.reshape(shape).astype(bool)


class DropoutOfFirstHead(Attention):
    """All heads take the dropout of the first one."""

    def kept(self, call, shape):
        found = super().kept(call, shape)
        return None if found is None else np.broadcast_to(found[:, :1], found.shape)


class ProbabilitiesRoundedTwice(Attention):
    """Probabilities have eight bits before they are multiplied, and are rounded to the dtype then."""

    def probabilities(self, call, part, scores, seen, r, c):
        p = super().probabilities(call, part, scores, seen, r, c)
        mantissa, exponent = np.frexp(p)
        return np.ldexp(np.round(mantissa * 256) / 256, exponent).astype(np.float32)


class DifferenceInHalf(Attention):
    """dP and the sum of the row are rounded to the dtype before they are subtracted."""

    def score_gradient(self, call, p, dp, delta):
        return p * (self.stored(call, dp) - self.stored(call, delta))


class SumOfWrongRow(Attention):
    """The last row of a block subtracts the sum of the row before it."""

    def delta(self, call, part):
        found = super().delta(call, part)
        at = np.arange(found.shape[2])
        return found[:, :, np.where((at % self.rows == self.rows - 1) & (at > 0), at - 1, at)]


class SumOfFirstHead(Attention):
    """All heads subtract the sums of the first one."""

    def delta(self, call, part):
        found = super().delta(call, part)
        return np.broadcast_to(found[:, :1], found.shape)


class StatisticsOfFirstBatch(Attention):
    """All batches take the maximum of the first one."""

    def part(self, call, *arrays, place):
        found = super().part(call, *arrays, place=place)
        found.top = np.broadcast_to(found.top[:1], found.top.shape)
        return found


class BandOffByOne(Attention):
    """In mode 4 a query sees nextTokens - 1 keys ahead."""

    def in_band(self, call, distance, i, j):
        seen = super().in_band(call, distance, i, j)
        return seen & (distance < call.nextTokens) if call.sparseMode == BAND else seen


class BandFromUpperLeft(Attention):
    """The band of mode 4 begins at the upper left where there are more keys than queries."""

    def distance(self, mode, part, i, j):
        return super().distance(0 if mode == BAND else mode, part, i, j)


class CausalFromUpperLeft(Attention):
    """Mode 3 is computed as mode 2."""

    def distance(self, mode, part, i, j):
        return super().distance(2 if mode == 3 else mode, part, i, j)


class BackwardWindowIgnored(Attention):
    """preTokens is ignored in rows beyond the first block."""

    def in_band(self, call, distance, i, j):
        return (distance <= call.nextTokens) & ((distance >= -call.preTokens) | (i[0] >= self.rows))


class PrefixIgnored(Attention):
    """Keys of the prefix beyond the first block of keys are seen causally alone."""

    def window(self, call, part, i, j):
        if call.sparseMode != 6 or j[0] < self.columns:
            return super().window(call, part, i, j)
        return self.distance(6, part, i, j)[None] <= 0


class PrefixOfFirstSequence(Attention):
    """All sequences have the prefix of the first one."""

    def prefixes(self, call, part):
        return np.full((len(part.query), 1, 1), call.prefix[0] if call.prefix else 0)


class MaskOfFirstBatch(Attention):
    """A mask with batches is read for the first one alone."""

    def mask(self, call, shape, number):
        found = super().mask(call, shape, number)
        return None if found is None else found[:1]


class MaskOfFirstHead(Attention):
    """A mask with heads is read for the first one alone."""

    def mask(self, call, shape, number):
        found = super().mask(call, shape, number)
        return None if found is None else found[:, :1]


class PseOfFirstBatch(Attention):
    """A pse with batches is read for the first one alone."""

    def pse(self, call, shape, number):
        found = super().pse(call, shape, number)
        return None if found is None else found[:1]


class PseOfFirstHead(Attention):
    """All heads take the pse of the first one."""

    def pse(self, call, shape, number):
        found = super().pse(call, shape, number)
        return None if found is None else found[:, :1]


class PseAfterScale(Attention):
    """pse of type 1 is added behind the scaling."""

    def __call__(self, **call):
        return super().__call__(**{**call, "pseType": 0})


class KeyGradientScaledTwice(Attention):
    """The gradient of keys is multiplied by the scale a second time."""

    def scaled(self, call, array, name):
        found = super().scaled(call, array, name)
        return super().scaled(call, found, name) if name == "dk" else found


class ScaleFromWidth(Attention):
    """The gradient of queries is divided by the root of the width, whatever scaleValue is."""

    def scaled(self, call, array, name):
        return array / np.sqrt(array.shape[3]) if name == "dq" else super().scaled(call, array, name)


class SumsInHalf(Attention):
    """The sums over blocks are kept in the dtype of the call."""

    def added(self, call, whole, term):
        return self.stored(call, super().added(call, whole, term))


class WideHeadsCut(Attention):
    """Of heads wider than 128 the scores lack the columns behind that."""

    def product(self, query, key):
        return super().product(query[..., :128], key[..., :128])


class EmptySequenceSkipped(Attention):
    """After a sequence without queries, keys go on where the sequence began."""

    operator = UNPADDING

    def places(self, ends):
        places, back = [], 0
        for q, k in super().places(ends):
            places.append((q, slice(max(k.start - back, 0), max(k.stop - back, 0))))
            back += k.stop - k.start if q.stop == q.start else 0
        return places


class RowsOfKeyOffsets(Attention):
    """Sequences begin in the queries where they begin in the keys, from the third one on."""

    operator = UNPADDING

    def places(self, ends):
        found = []
        for number, (q, k) in enumerate(super().places(ends)):
            moved = slice(k.start, k.start + q.stop - q.start)
            found.append((moved if number > 1 and moved.stop <= ends[-1][0] else q, k))
        return found


class CutModeOfFirstSequence(Attention):
    """In mode 7 the band is that of the first sequence, not of the last."""

    operator = UNPADDING

    def window(self, call, part, i, j):
        if call.sparseMode == 7:
            part.is_last, part.is_first = part.is_first, part.is_last
        try:
            return super().window(call, part, i, j)
        finally:
            if call.sparseMode == 7:
                part.is_last, part.is_first = part.is_first, part.is_last


class PrefixByNumberOfBlock(Attention):
    """In sequences the prefix of the next one is taken."""

    operator = UNPADDING

    def prefixes(self, call, part):
        return np.array(call.prefix[(part.first + 1) % max(len(call.prefix), 1) :][:1] or [0], np.int64).reshape(
            -1, 1, 1
        )
