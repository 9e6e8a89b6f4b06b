"""What the calls of all attention operators share: how arrays lie in a layout, and which keys a query sees."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]
Numbers = NDArray[Any]

ADDS_FIRST = 1
"""The pseType with which pse is added before the scaling."""
AS_INPUT = "same_as_input"
"""The softmaxInLayout of statistics that lie in memory as their shape says: [T, N, 8], and not [N, T, 8]."""
COMPRESSED = frozenset({2, 3, 4, 6, 7, 8})
"""Sparse modes with a mask that is the same for all calls."""
LAYOUTS = frozenset({"BSH", "SBH", "BSND", "BNSD", "TND"})
"""How queries, keys and values may lie."""
_DEFAULT, _ALL, _BAND = 0, 1, 4
_PREFIX = frozenset({5, 6})
_FROM_THE_UPPER_LEFT = frozenset({0, 1, 2})
_USUAL = {
    "key": "keyIn",
    "attentionOut": "attentionInOptional",
    "attentionOutGrad": "dy",
    "softmaxMax": "softmaxMaxOptional",
    "softmaxSum": "softmaxSumOptional",
}
_OF_A_SELECTION: Mapping[str, Any] = {
    "pseShiftOptional": None,
    "dropMaskOptional": None,
    "attenMaskOptional": None,
    "keepProb": 1.0,
    "preTokens": 0,
    "nextTokens": 0,
    "sparseMode": _DEFAULT,
}
"""What a call has that sees all selected keys."""
_CUT_BEHIND = 7
_CUT = {7: 3, 8: 2}
"""Modes of sequences that several devices share: the last one, or the first, is a band, the others have a mode."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequences:
    """One batch of sequences of equal length, or in the layout TND one sequence, and where its parts lie."""

    layout: str
    heads: int
    """Of the queries, and of what has a row for each of them."""
    shared: int
    """Of the keys and values."""
    rows: slice
    """Queries along T."""
    columns: slice
    """Keys along T."""
    batches: slice
    """The sequences by number."""
    is_alone: bool = True
    """Whether these are all sequences of the call."""
    is_first: bool = True
    """Whether no sequence before it has queries and keys."""
    is_last: bool = True
    """Whether no sequence behind it has queries and keys."""

    def of_queries(self, array: Any) -> Any:  # noqa: ANN401 - a NumPy array or one of a formula
        """[B, N, S, D] of query, dy or the attention; the heads that share keys are apart: [B, shared, group, S, D]."""
        found = by_heads(array, self.layout, self.heads, self.rows)
        return self.grouped(found)

    def of_keys(self, array: Any) -> Any:  # noqa: ANN401 - as above
        """[B, N, S, D] of keys or values."""
        return by_heads(array, self.layout, self.shared, self.columns)

    def grouped(self, array: Any) -> Any:  # noqa: ANN401 - as above
        """[B, N, ...] as [B, shared, group, ...]; one head stands for all."""
        batches, heads, *rest = array.shape
        shared = self.shared if heads > 1 else 1
        return array.reshape(batches, shared, heads // shared, *rest)


def by_heads(array: Any, layout: str, heads: int, part: slice) -> Any:  # noqa: ANN401 - NumPy's or a formula's
    """[B, N, S, D] of an array in a layout."""
    if layout in ("BSH", "SBH"):
        first, second, width = array.shape
        found = array.reshape(first, second, heads, width // heads)
        return found.transpose(0, 2, 1, 3) if layout == "BSH" else found.transpose(1, 2, 0, 3)
    if layout == "TND":
        found = array[part].transpose(1, 0, 2)
        return found.reshape(1, *found.shape)
    return array.transpose(0, 2, 1, 3) if layout == "BSND" else array


def in_layout(array: Any, layout: str) -> Any:  # noqa: ANN401 - as above
    """The array in a layout, from [B, N, S, D]."""
    batches, heads, length, width = array.shape
    if layout == "BNSD":
        return array
    if layout == "SBH":
        return array.transpose(2, 0, 1, 3).reshape(length, batches, heads * width)
    found = array.transpose(0, 2, 1, 3)
    if layout == "BSND":
        return found
    return found.reshape(batches, length, heads * width) if layout == "BSH" else found.reshape(length, heads, width)


def sequences(
    layout: str, heads: int, query: Sequence[int], key: Sequence[int], ends: tuple[Sequence[int], Sequence[int]]
) -> Iterator[Sequences]:
    """The sequences of a call from the shapes of query and key, and in the layout TND where each of them ends.

    ValueError for an unknown layout, and for shapes that do not fit it.
    """
    flat = layout in ("BSH", "SBH")
    if (
        layout not in LAYOUTS
        or len(query) != (3 if flat or layout == "TND" else 4)
        or len(key) != len(query)
        or heads < 1
    ):
        raise ValueError(f"shapes {query} and {key} in the layout {layout}")
    if flat:
        width = query[2] // heads
        shared = key[2] // width if width else 0
    else:
        shared = key[1 if layout in ("TND", "BNSD") else 2]
    if not shared or heads % shared:
        raise ValueError(f"{heads} heads share {shared}")
    whole = slice(None)
    if layout != "TND":
        yield Sequences(layout=layout, heads=heads, shared=shared, rows=whole, columns=whole, batches=whole)
        return
    places = [
        (slice(first, last), slice(start, stop))
        for first, last, start, stop in zip((0, *ends[0]), ends[0], (0, *ends[1]), ends[1], strict=False)
    ]
    filled = [number for number, (rows, columns) in enumerate(places) if _length(rows) and _length(columns)]
    for number, (rows, columns) in enumerate(places):
        yield Sequences(
            layout=layout,
            heads=heads,
            shared=shared,
            rows=rows,
            columns=columns,
            batches=slice(number, number + 1),
            is_alone=len(places) == 1,
            is_first=filled[:1] == [number],
            is_last=filled[-1:] == [number],
        )


def _length(part: slice) -> int:
    return int(part.stop - part.start)


@dataclass(frozen=True, kw_only=True)
class Sparsity:
    """Which keys a query sees: the sparse mode with what it reads."""

    mode: int
    before: int
    """preTokens: how far back from its own place."""
    after: int
    """nextTokens: how far on."""
    prefix: Sequence[int]
    """Keys of each sequence that every query sees."""
    mask: Numbers | None
    selected: Numbers | None = None
    """[T, shared, count]: the blocks of keys that a query sees, by number in its sequence; None where it sees all."""
    block: int = 1
    """Keys of a block."""

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> Sparsity:
        """That of a call, from its arguments."""
        return cls(
            mode=arguments["sparseMode"],
            before=arguments["preTokens"],
            after=arguments["nextTokens"],
            prefix=arguments.get("prefixOptional") or (),
            mask=arguments["attenMaskOptional"],
            selected=arguments.get("topkIndices"),
            block=arguments.get("selectedBlockSize", 1),
        )

    def window(self, rows: int, columns: int, place: Sequences) -> Flags:
        """[B or 1, Sq, Skv]: what the mode itself lets a query see, whatever the mask holds."""
        mode = self.mode
        if mode in _CUT:
            mode = _BAND if (place.is_last if mode == _CUT_BEHIND else place.is_first) else _CUT[mode]
        if mode == _ALL or (mode == _DEFAULT and self.mask is None):
            return np.ones((1, rows, columns), np.bool_)
        keys = np.arange(columns)
        own = np.arange(rows)[:, None] + (0 if mode in _FROM_THE_UPPER_LEFT else columns - rows)
        far = rows + columns  # beyond every key, and the sums fit
        if mode in (_DEFAULT, _BAND):
            first, last = own - min(max(self.before, -far), far), own + min(max(self.after, -far), far)
            return ((keys >= first) & (keys <= last))[None]
        seen = (keys <= own)[None]
        if mode in _PREFIX:
            ahead = np.asarray(self.prefix, np.int64)[place.batches].reshape(-1, 1, 1)
            return seen | (keys < ahead)
        return seen

    def seen(self, rows: int, columns: int, place: Sequences) -> Flags:
        """[B or 1, N or 1, Sq, Skv]: where a query sees a key."""
        window = self.window(rows, columns, place)[:, None]
        if self.selected is not None:
            window = window & self._chosen(self.selected[place.rows], columns, place)
        mask = self._explicit(rows, columns, place)
        if mask is None:
            return window
        seen: Flags = (window & (mask == 0)) if self.mode == _DEFAULT else mask == 0
        return seen

    def _chosen(self, numbers: Numbers, columns: int, place: Sequences) -> Flags:
        """[1, N, Sq, Skv]: where the keys of selected blocks are, whose numbers are [Sq, shared, count]."""
        blocks = np.arange(columns) // self.block
        chosen: Flags = (numbers[..., None] == blocks).any(2).transpose(1, 0, 2)
        return chosen.repeat(place.heads // place.shared, axis=0)[None]

    def is_contradicted(self, rows: int, columns: int, place: Sequences) -> bool:
        """Whether mask and mode say different things, or a mode lacks its mask: nothing says what then holds."""
        if self.mask is None:
            return self.mode != _DEFAULT
        if self.mode in COMPRESSED:
            return not self._is_compressed
        mask, window = self._explicit(rows, columns, place), self.window(rows, columns, place)[:, None]
        if mask is None:
            return True
        return bool(((mask == 0) & ~window).any() or (self.mode in _PREFIX and ((mask == 0) != window).any()))

    @functools.cached_property
    def _is_compressed(self) -> bool:
        """Whether the mask is the one that a compressed mode asks for."""
        if self.mask is None:
            return False
        wanted = compressed(self.mask.shape)
        # Bytes of one dtype are compared several times as fast as flags with numbers.
        return np.array_equal(self.mask, wanted.view(np.uint8) if self.mask.dtype == np.uint8 else wanted)

    def _explicit(self, rows: int, columns: int, place: Sequences) -> Numbers | None:
        """[B or 1, N or 1, Sq, Skv] of a mask that holds the places themselves; None of any other."""
        if self.mask is None or self.mode in COMPRESSED or self.mask.shape[-2:] != (rows, columns):
            return None
        found: Numbers = of_sequences(self.mask.reshape((1,) * (4 - self.mask.ndim) + self.mask.shape), place)
        return found


def under_usual_names(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments of a call, those of an operator that selects keys under the names of the other operators.

    Its mask has no meaning in its document.
    """
    if "topkIndices" not in arguments:
        return arguments
    names = {_USUAL.get(name, name): value for name, value in arguments.items()}
    return {**names, **_OF_A_SELECTION}


def of_sequences(array: Any, place: Sequences) -> Any:  # noqa: ANN401 - a NumPy array or one of a formula
    """The sequences' part of an array whose first index counts all of them; of one with a single index, all."""
    return array if place.is_alone or array.shape[0] == 1 else array[place.batches]


@functools.lru_cache(maxsize=2)  # modes 2 to 4 share one of 4 MB, mode 6 has another
def compressed(shape: tuple[int, ...]) -> Flags:
    """The compressed mask: True above the diagonal of its square, below that in the right half. Not to be written."""
    rows, columns = np.arange(shape[-2])[:, None], np.arange(shape[-1])
    found: Flags = np.where(rows < shape[-1], columns > rows, columns >= shape[-1] // 2)
    found.setflags(write=False)
    return found


def band(shape: Sequence[int], low: int, high: int, prefix: Sequence[int]) -> Flags:
    """A mask: False where a column is from `low` to `high` beyond its row, or below the first index's prefix."""
    far = shape[-2] + shape[-1]
    masked = np.broadcast_to(_diagonal_band(shape[-2], shape[-1], max(low, -far), max(min(high, far), -far)), shape)
    if not prefix:
        return masked
    ahead = np.asarray(prefix, np.int64)[np.arange(shape[0]) % len(prefix)].reshape(-1, *[1] * (len(shape) - 1))
    return masked & (np.arange(shape[-1]) >= ahead)


@functools.lru_cache(maxsize=2)  # most calls with a mask of 4 MB have the same one
def _diagonal_band(height: int, width: int, low: int, high: int) -> Flags:
    """False where a column is from `low` to `high` beyond its row. Not to be written."""
    far = height + width
    # The sums fit, and numbers of half the size take half the time.
    places = np.int32 if far < 2**30 else np.int64
    rows, columns = np.arange(height, dtype=places)[:, None], np.arange(width, dtype=places)
    masked: Flags = columns > rows + high
    if low > -far:
        masked |= columns < rows + min(low, far)
    masked.setflags(write=False)
    return masked


def kept_bits(mask: Numbers, shape: Sequence[int]) -> Flags:
    """The flags of a dropout mask, eight in a byte, the lowest first, in the order of [B, N, Sq, Skv].

    ValueError for a mask with too few.
    """
    count = int(np.prod(shape))
    bytes_ = mask.astype(np.uint8, copy=False).reshape(-1)
    if 8 * bytes_.size < count:
        raise ValueError(f"{8 * bytes_.size} bits for {count} places")
    return np.unpackbits(bytes_, count=count, bitorder="little").reshape(tuple(shape)).view(np.bool_)
