"""A tiled attention kernel, backwards: float32 sums by blocks of queries and keys, operands in the dtype of the call."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

LOWER_RIGHT = 3
BAND = 4
PREFIX = (5, 6)
FROM_THE_UPPER_LEFT = (0, 1, 2)
CUT = {7: 3, 8: 2}
COMPRESSED = (2, 3, 4, 6, 7, 8)


@dataclass
class Part:
    """Sequences of one length: arrays are [B, N, S, D] in float32, statistics [B, N, Sq, 1]."""

    query: np.ndarray
    key: np.ndarray
    value: np.ndarray
    dy: np.ndarray
    y: np.ndarray
    top: np.ndarray
    total: np.ndarray
    pse: np.ndarray | None
    mask: np.ndarray | None
    kept: np.ndarray | None
    first: int
    """The number of the first sequence."""
    is_first: bool
    is_last: bool

    @property
    def lengths(self):
        return self.query.shape[2], self.key.shape[2]


class Attention:
    """The kernel. Mistakes are subclasses, which change one step."""

    operator = "flash_attention_score_grad_v2"

    def __init__(self, rows=64, columns=64):
        self.rows, self.columns = rows, columns

    @classmethod
    def run(cls, **call):
        """What a judge calls."""
        return cls()(**call)

    def __call__(self, **call):
        call = SimpleNamespace(**call)
        call.pseType = getattr(call, "pseType", 1)
        call.dtype = call.query.dtype
        call.prefix = [] if call.prefixOptional is None else list(call.prefixOptional)
        found = [self.gradients(call, part) for part in self.parts(call)]
        results = {name: np.concatenate(arrays) for name, arrays in zip(("dqOut", "dkOut", "dvOut"), zip(*found))}
        return {name: array.astype(call.dtype) for name, array in results.items()}

    # How arrays lie

    def parts(self, call):
        by_heads, heads = self.by_heads, call.headNum
        query = by_heads(call.query, call, heads)
        shared = self.shared_heads(call, query.shape[3])
        arrays = [by_heads(call.keyIn, call, shared), by_heads(call.value, call, shared)]
        rows = [by_heads(array, call, heads) for array in (call.dy, call.attentionInOptional)]
        if call.inputLayout != "TND":
            statistics = [array[..., :1] for array in (call.softmaxMaxOptional, call.softmaxSumOptional)]
            yield self.part(call, query, *arrays, *rows, *statistics, place=None)
            return
        statistics = [
            array[..., :1].transpose(1, 0, 2)[None] for array in (call.softmaxMaxOptional, call.softmaxSumOptional)
        ]
        ends = list(zip(call.actualSeqQLenOptional, call.actualSeqKvLenOptional))
        places = self.places(ends)
        filled = [number for number, (q, k) in enumerate(places) if q.stop > q.start and k.stop > k.start]
        for number, (q, k) in enumerate(places):
            of_rows = [array[:, :, q] for array in (query, *rows, *statistics)]
            of_keys = [array[:, :, k] for array in arrays]
            place = (number, [number] == filled[:1], [number] == filled[-1:], len(places) == 1)
            yield self.part(call, of_rows[0], *of_keys, *of_rows[1:], place=place)

    def part(self, call, query, key, value, dy, y, top, total, *, place):
        shape = (*query.shape[:3], key.shape[2])
        number, is_first, is_last, is_alone = place or (0, True, True, True)
        return Part(
            *(array.astype(np.float32) for array in (query, key, value, dy, y, top, total)),
            pse=self.pse(call, shape, None if is_alone else number),
            mask=self.mask(call, shape, None if is_alone else number),
            kept=self.kept(call, shape) if is_alone else None,
            first=number,
            is_first=is_first,
            is_last=is_last,
        )

    def places(self, ends):
        starts = [(0, 0), *ends]
        return [(slice(q, stop), slice(k, end)) for (q, k), (stop, end) in zip(starts, ends)]

    def by_heads(self, array, call, heads):
        layout = call.inputLayout
        if layout in ("BSH", "SBH"):
            first, second, width = array.shape
            found = array.reshape(first, second, heads, width // heads)
            return found.transpose((0, 2, 1, 3) if layout == "BSH" else (1, 2, 0, 3))
        if layout == "TND":
            return array.transpose(1, 0, 2)[None]
        return array.transpose(0, 2, 1, 3) if layout == "BSND" else array

    def in_layout(self, array, call):
        batches, heads, length, width = array.shape
        if call.inputLayout == "BNSD":
            return array
        if call.inputLayout == "SBH":
            return array.transpose(2, 0, 1, 3).reshape(length, batches, heads * width)
        found = array.transpose(0, 2, 1, 3)
        if call.inputLayout == "BSND":
            return found
        return found.reshape((batches, length, -1) if call.inputLayout == "BSH" else (length, heads, width))

    def shared_heads(self, call, width):
        shape = call.keyIn.shape
        if call.inputLayout in ("BSH", "SBH"):
            return shape[2] // width
        return shape[1 if call.inputLayout in ("TND", "BNSD") else 2]

    # What a query sees, and what is added and dropped

    def pse(self, call, shape, number):
        array = call.pseShiftOptional
        if array is None or array.shape[-1] != shape[3] or array.shape[2] not in (1, shape[2]):
            return None
        array = array if number is None or len(array) == 1 else array[number : number + 1]
        return array.astype(np.float32)

    def mask(self, call, shape, number):
        mask = call.attenMaskOptional
        if mask is None or call.sparseMode in COMPRESSED or mask.shape[-2:] != shape[2:]:
            return None
        mask = mask.reshape((1,) * (4 - mask.ndim) + mask.shape)
        return mask if number is None or len(mask) == 1 else mask[number : number + 1]

    def kept(self, call, shape):
        if call.dropMaskOptional is None or call.keepProb == 1:
            return None
        count = int(np.prod(shape))
        bits = np.unpackbits(np.ascontiguousarray(call.dropMaskOptional), count=count, bitorder="little")
        return bits.reshape(shape).astype(bool)

    def distance(self, mode, part, i, j):
        """How far a key is ahead of the query's own place."""
        rows, columns = part.lengths
        ahead = j[None, :] - i[:, None]
        return ahead if mode in FROM_THE_UPPER_LEFT else ahead - (columns - rows)

    def prefixes(self, call, part):
        return np.array(call.prefix[part.first :][: len(part.query)], np.int64).reshape(-1, 1, 1)

    def in_band(self, call, distance, i, j):
        return (distance >= -call.preTokens) & (distance <= call.nextTokens)

    def window(self, call, part, i, j):
        """[B or 1, rows, columns]."""
        mode = call.sparseMode
        if mode in CUT:
            mode = BAND if (part.is_last if mode == 7 else part.is_first) else CUT[mode]
        distance = self.distance(mode, part, i, j)[None]
        if mode == 1 or (mode == 0 and call.attenMaskOptional is None):
            return np.ones(distance.shape, bool)
        if mode in (0, BAND):
            return self.in_band(call, distance, i, j)
        seen = distance <= 0
        return seen | (j < self.prefixes(call, part)) if mode in PREFIX else seen

    def sees(self, call, part, i, j):
        """[B or 1, N or 1, rows, columns]."""
        explicit = part.mask is not None
        if explicit and call.sparseMode != 0:
            return part.mask[:, :, i[0] : i[-1] + 1, j[0] : j[-1] + 1] == 0
        window = self.window(call, part, i, j)[:, None]
        return window & (part.mask[:, :, i[0] : i[-1] + 1, j[0] : j[-1] + 1] == 0) if explicit else window

    # The arithmetic

    def blocks(self, length, size):
        return [slice(start, min(start + size, length)) for start in range(0, length, size)]

    def key_heads(self, heads, shared):
        """The head of the keys that each head of the queries reads."""
        return np.arange(heads) // (heads // shared)

    def gradient_heads(self, heads, shared):
        """The head of the keys to which each head of the queries adds its gradient."""
        return self.key_heads(heads, shared)

    def product(self, query, key):
        return query @ key.swapaxes(-1, -2)

    def scores(self, call, part, query, key, r, c):
        scores = self.product(query, key)
        pse = part.pse
        if pse is not None:
            pse = pse[:, :, r if pse.shape[2] > 1 else slice(None), c]
            return (scores + pse) * call.scaleValue if call.pseType == 1 else scores * call.scaleValue + pse
        return scores * np.float32(call.scaleValue)

    def probabilities(self, call, part, scores, seen, r, c):
        return np.where(seen, np.exp(scores - part.top[:, :, r]) / part.total[:, :, r], np.float32(0))

    def dropped(self, call, part, array, r, c):
        if part.kept is None:
            return array
        return np.where(part.kept[:, :, r, c], array / np.float32(call.keepProb), np.float32(0))

    def dropped_gradient(self, call, part, array, r, c):
        return self.dropped(call, part, array, r, c)

    def delta(self, call, part):
        """The sums of dY Y, one a row."""
        return (part.dy * part.y).sum(3, keepdims=True)

    def stored(self, call, array):
        """An operand of the matrix unit."""
        return array.astype(call.dtype).astype(np.float32)

    def score_gradient(self, call, p, dp, delta):
        return p * (dp - delta)

    def added(self, call, whole, term):
        """A sum over blocks goes on."""
        return whole + term

    def scaled(self, call, array, name):
        return array * np.float32(call.scaleValue)

    def grouped(self, call, array, heads, shared):
        """The sum over the heads of a group."""
        found = np.zeros((array.shape[0], shared, *array.shape[2:]), np.float32)
        for head, place in enumerate(self.gradient_heads(heads, shared)):
            found[:, place] = self.added(call, found[:, place], array[:, head])
        return found

    def gradients(self, call, part):
        heads, shared = part.query.shape[1], part.key.shape[1]
        read = self.key_heads(heads, shared)
        key, value = part.key[:, read], part.value[:, read]
        dq, dk, dv = np.zeros_like(part.query), np.zeros_like(key), np.zeros_like(value)
        delta, (rows, columns) = self.delta(call, part), part.lengths
        for r in self.blocks(rows, self.rows):
            for c in self.blocks(columns, self.columns):
                seen = self.sees(call, part, np.arange(r.start, r.stop), np.arange(c.start, c.stop))
                if not seen.any():
                    continue
                scores = self.scores(call, part, part.query[:, :, r], key[:, :, c], r, c)
                p = self.probabilities(call, part, scores, seen, r, c)
                dp = self.dropped_gradient(call, part, self.product(part.dy[:, :, r], value[:, :, c]), r, c)
                ds = self.stored(call, self.score_gradient(call, p, dp, delta[:, :, r]))
                kept = self.stored(call, self.dropped(call, part, p, r, c))
                dq[:, :, r] = self.added(call, dq[:, :, r], ds @ key[:, :, c])
                dk[:, :, c] = self.added(call, dk[:, :, c], ds.swapaxes(-1, -2) @ part.query[:, :, r])
                dv[:, :, c] = self.added(call, dv[:, :, c], kept.swapaxes(-1, -2) @ part.dy[:, :, r])
        return (
            self.in_layout(self.scaled(call, dq, "dq"), call),
            self.in_layout(self.scaled(call, self.grouped(call, dk, heads, shared), "dk"), call),
            self.in_layout(self.grouped(call, dv, heads, shared), call),
        )


by_16 = Attention(16, 16)
by_64 = Attention(64, 64)
by_128_and_32 = Attention(128, 32)
