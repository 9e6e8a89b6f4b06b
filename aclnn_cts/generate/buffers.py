"""The memory of one call: where each tensor lies between guard bands, poisoned before and read back whole.

Outputs, and the gaps of strided ones, are filled with one of two bytes (`FILLS`): what still holds the first after one
run and the second after another was never written, whatever the right values are. An output that is an input too holds
its contents, and fills its gaps alone: whether it was written, its values say. Guards hold a pattern that follows
the position. The gaps of floating inputs hold large numbers or nans, so that a stray read shows; those of other dtypes
hold 0, so that an index read by mistake cannot send a device's write astray. Where the implementation is isolated, a
page that cannot be read lies on either side of each input (`InputGuards`), and touches its start or its end: a read
beyond that ends the process.
"""

from __future__ import annotations

import functools
import hashlib
import math
import mmap
from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.dtypes import DTYPES
from aclnn_cts.core.outcome import BufferState, StrayWrite
from aclnn_cts.core.printable import quote
from aclnn_cts.generate.layouts import Array, storage_dtype

ALIGNMENT = 64
"""Bytes; each storage starts at a multiple of it, as device allocations do."""
GUARD = 256
"""Bytes of the guard band on each side of a storage; the one behind it also takes the rest up to the alignment."""

PAGE = mmap.PAGESIZE
"""Bytes of a guard page: what the system protects as a whole."""

_MAX_RANK = 32
_ADDRESSED = 2**48
"""Elements; more than that no array can have, even where another dimension is 0."""
_COUNTED = 2**16
"""Elements up to which the places of a doubtful view are compared one by one."""


class UnsafeViewError(ValueError):
    """A tensor whose view must not be touched: it leaves its storage, or its elements share memory."""


class TensorPlace(msgspec.Struct, frozen=True):
    """Byte offsets of one tensor in the block: guard from `start`, storage from `offset` to `end`, guard to `stop`."""

    name: str
    tensor: Tensor
    output: bool
    filled: bool
    """Whether it has contents before the call: every input, and an output whose descriptor has data."""
    start: int
    offset: int
    end: int
    stop: int


class InputGuards(str, Enum):
    """What lies around an input that is no output too."""

    BANDS = "bands"
    """Guard bands, as around outputs."""
    START = "start"
    """A page on either side. The input begins where the one before it ends."""
    END = "end"
    """A page on either side. The input ends where the one behind it begins, and is aligned as its dtype is."""


class BlockLayout(msgspec.Struct, frozen=True):
    """The block of one call: inputs in the order of the prototype, then outputs. Places and guard pages fill it."""

    places: MappingProxyType[str, TensorPlace]
    size: int
    """Bytes, at least 1."""
    guards: InputGuards = InputGuards.BANDS

    @property
    def alignment(self) -> int:
        """Bytes to whose multiple the block is to begin."""
        return ALIGNMENT if self.guards == InputGuards.BANDS else PAGE

    def has_pages(self, place: TensorPlace) -> bool:
        """Whether a guard page lies on either side of a place."""
        return self.guards != InputGuards.BANDS and not place.output

    def guard_pages(self, name: str) -> tuple[slice, slice]:
        """The pages before and after an input of a layout with pages."""
        place = self.places[name]
        return slice(place.start - PAGE, place.start), slice(place.stop, place.stop + PAGE)

    def guarded_by(self, offset: int) -> str | None:
        """The input beside which a guard page lies at this byte of the block; None where there is no such page."""
        for name, place in self.places.items():
            if self.has_pages(place) and any(page.start <= offset < page.stop for page in self.guard_pages(name)):
                return name
        return None


def block_layout(case: Case, outputs: frozenset[str], *, guards: InputGuards = InputGuards.BANDS) -> BlockLayout:
    """Place every tensor of a case that is not null. Raises UnsafeViewError for one that `check_view` refuses."""
    places: dict[str, TensorPlace] = {}
    cursor = 0
    # A stable sort: inputs first, both in the order of the prototype.
    for name, tensor in sorted(case.tensors(), key=lambda item: item[0] in outputs):
        output = name in outputs
        reason = check_view(tensor, may_expand=not output)
        if reason is not None:
            raise UnsafeViewError(f"{name}: {reason}")
        size = tensor.storage_numel * storage_dtype(tensor.dtype).itemsize
        filled = not output or tensor.data is not None
        if output or guards == InputGuards.BANDS:
            offset = cursor + GUARD
            end = offset + size
            stop = -(-end // ALIGNMENT) * ALIGNMENT + GUARD
            places[name] = TensorPlace(name, tensor, output, filled, cursor, offset, end, stop)
            cursor = stop
        else:
            start = cursor + PAGE
            stop = start + max(-(-size // PAGE), 1) * PAGE
            offset = start if guards == InputGuards.START else stop - size
            places[name] = TensorPlace(name, tensor, output, filled, start, offset, offset + size, stop)
            cursor = stop + PAGE
    return BlockLayout(MappingProxyType(places), max(cursor, 1), guards)


def check_view(tensor: Tensor, *, may_expand: bool = False) -> str | None:
    """Why no memory can safely be handed over under a descriptor, or None where it can.

    A device does not check the view of a tensor against its storage: such a case would read or write memory of others.
    `may_expand`: whether elements along an axis of stride 0 may share a place, as in an input.
    """
    shape, strides, storage_shape = tensor.shape, tensor.strides, tensor.storage_shape
    if (shape and min(shape) < 0) or (storage_shape and min(storage_shape) < 0):
        return f"shape {list(shape)} or storage_shape {storage_shape} has a negative dimension"
    if len(shape) > _MAX_RANK:
        return f"rank {len(shape)}; views of more than {_MAX_RANK} dimensions cannot be made"
    if 0 in shape and math.prod(filter(None, shape)) > _ADDRESSED:
        return f"shape {quote(list(shape))}: its sizes beside the 0 exceed what memory has"
    if tensor.offset < 0:
        return f"offset {tensor.offset} lies before the storage"
    if strides is not None and may_expand:
        expanded = tensor.expanded_axes
        shape = tuple(1 if axis in expanded else size for axis, size in enumerate(shape))
    reason = _check_strides(shape, strides) if strides is not None else None
    if reason is None and storage_shape is not None and tensor.reach > tensor.storage_numel:
        return f"the view reaches element {tensor.reach - 1} of a storage of {tensor.storage_numel}"
    return reason


def _check_strides(shape: tuple[int, ...], strides: tuple[int, ...]) -> str | None:
    if len(strides) != len(shape):
        return f"{len(strides)} strides for {len(shape)} dimensions"
    if 0 in shape:
        return None
    if _nested(shape, strides):
        return None
    for size, stride in zip(shape, strides, strict=True):
        if stride < 0:
            return f"strides {list(strides)}: a negative stride leads out of the storage"
        if stride == 0 and size > 1:
            return f"strides {list(strides)}: a stride of 0 puts several elements in one place"
    if _overlaps(shape, strides):
        return f"strides {list(strides)}: elements of the view overlap"
    return None


def _nested(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether every stride steps over all that smaller ones reach: then no two elements share a place."""
    reached = 0
    for stride, size in sorted(zip(strides, shape, strict=True)):
        if stride < 0 or (stride <= reached and size != 1):
            return False
        reached += (size - 1) * stride
    return True


def _overlaps(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether two elements share a place: taken as true of a large view, which is not `_nested`."""
    count = math.prod(shape)
    if count > _COUNTED:
        return True
    places = np.zeros(1, dtype=np.int64)
    for size, stride in zip(shape, strides, strict=True):
        places = (places[:, None] + np.arange(size, dtype=np.int64) * stride).reshape(-1)
    return len(np.unique(places)) < count


__all__ = [
    "ALIGNMENT",
    "FILLS",
    "GUARD",
    "PAGE",
    "BlockLayout",
    "Buffer",
    "CallBuffers",
    "InputGuards",
    "TensorPlace",
    "UnsafeViewError",
    "attach",
    "block_layout",
    "check_view",
    "prepare",
]

Bytes = NDArray[np.uint8]

FILLS = (0xFF, 0x7E)
"""The bytes of the two fills. An element of the first is a nan in every floating dtype, which survives a multiplication
by 0; one of the second is a number near the upper end of the range (a nan in FLOAT16), which an accumulation cannot
lose. Neither is zero, nor what a kernel computes."""

_INPUT_GAP = 0x7E
_UNTOUCHED = BufferState()
_SHOWN = 16
"""Bytes of a stray write that are kept."""
_CHUNK = 2**20
_GUARD_PATTERN: Bytes = (np.arange(max(2 * GUARD + ALIGNMENT, PAGE), dtype=np.int64) * 151 % 251 + 2).astype(np.uint8)
"""Bytes of a guard from its start: of period 251, none of them 0, 1 or 0xFF."""


class Buffer(msgspec.Struct, frozen=True):
    """The memory of one tensor: `view` is its elements in its shape, `storage` all there is for them, flat."""

    place: TensorPlace
    memory: Bytes
    """Of the whole call."""
    view: Array

    @property
    def name(self) -> str:
        """Of the parameter."""
        return self.place.name

    @property
    def tensor(self) -> Tensor:
        """The descriptor."""
        return self.place.tensor

    @property
    def octets(self) -> Bytes:
        """The storage's bytes."""
        return self.memory[self.place.offset : self.place.end]

    @property
    def storage(self) -> Array:
        """The storage's elements."""
        return self.octets.view(self.view.dtype)

    def elements(self, contents: bytes) -> Array:
        """The elements of a copy of the view (`CallBuffers.contents`), read-only."""
        array: Array = np.ndarray(self.view.shape, self.view.dtype, contents)
        return array

    @property
    def has_gaps(self) -> bool:
        """Whether the storage holds more than the tensor's elements."""
        return self.place.end - self.place.offset != self.view.nbytes


class CallBuffers(msgspec.Struct, frozen=True):
    """All memory of one call. `kept` is what the bytes outside the outputs were when they were prepared.

    A tensor that is input and output is in both: one buffer.
    """

    layout: BlockLayout
    memory: Bytes
    inputs: Mapping[str, Buffer]
    outputs: Mapping[str, Buffer]
    fill: int = 0
    kept: tuple[tuple[int, bytes], ...] = ()
    """Stretches between outputs (all inputs and guards): byte offset and contents. Empty where only attached."""
    held: Mapping[str, Array] = MappingProxyType({})
    """What the outputs that are inputs too hold before the call."""

    def refill(self, fill: int) -> CallBuffers:
        """Make everything as it was before the call, the outputs with fill 0 or 1, for a second run."""
        self._demand_kept()
        for start, contents in self.kept:
            self.memory[start : start + len(contents)] = np.frombuffer(contents, dtype=np.uint8)
        _fill_outputs(self.outputs, self.held, fill)
        return msgspec.structs.replace(self, fill=fill)

    def unwritten(self) -> dict[str, NDArray[np.bool_]]:
        """For each output, which elements of its view hold nothing but the fill (in the output's shape).

        None of an output that is an input too: it held its contents.
        """
        return {
            name: np.zeros(buffer.view.shape, np.bool_)
            if buffer.place.filled
            else _still_filled(buffer.view, FILLS[self.fill])
            for name, buffer in self.outputs.items()
        }

    def contents(self) -> dict[str, bytes]:
        """A copy of what each output holds, row-major: nothing that is written later changes it."""
        return {name: buffer.view.tobytes() for name, buffer in self.outputs.items()}

    def inspect(
        self,
        *,
        contents: Mapping[str, bytes] | None = None,
        earlier: Mapping[str, NDArray[np.bool_]] | None = None,
        returned: Mapping[str, BufferState] = MappingProxyType({}),
    ) -> dict[str, BufferState]:
        """What became of every tensor's memory in the call, inputs first.

        - `contents`: of the outputs (`contents()`), where they were copied before.
        - `earlier`: what `unwritten` said after the run with fill 0. Of these elements only those were written by that
          run that now hold the same bytes, right by chance; what holds fill 1, or a value, was not there in time.
          Without it a count above 0 may be chance too, and asks for the second run.
        - `returned`: the digests of outputs when the call returned (`adapters.results.perform`), where known.
        """
        self._demand_kept()
        changed: list[NDArray[np.int64]] = []
        for start, before in self.kept:
            changed.extend(_differences(self.memory, start, before))
        # What lies in a place is found by bisection: offsets ascend from stretch to stretch.
        places = np.concatenate(changed) if changed else None
        states: dict[str, BufferState] = {}
        for name, buffer in self.inputs.items():
            place = buffer.place
            if place.output:
                continue
            states[name] = _UNTOUCHED if places is None else self._with_stray(place, _state(place, places), places)
        fill = FILLS[self.fill]
        contents = self.contents() if contents is None else contents
        for name, buffer in self.outputs.items():
            held = contents[name]
            digest = hashlib.sha256(held).hexdigest()
            unwritten = 0
            if not buffer.place.filled:
                if earlier is not None:
                    unwritten = int(np.count_nonzero(earlier[name] & ~_still_filled(buffer.elements(held), FILLS[0])))
                elif bytes((fill,)) * buffer.view.itemsize in held:
                    unwritten = int(np.count_nonzero(_still_filled(buffer.elements(held), fill)))
            around = _UNTOUCHED if places is None else _state(self.layout.places[name], places)
            state = BufferState(
                unwritten=unwritten,
                guard_before=around.guard_before,
                guard_after=around.guard_after,
                gap=_changed(buffer.octets, fill) - _changed(held, fill) if buffer.has_gaps else 0,
                changed=around.changed,
                sha256=digest,
                late=name in returned and returned[name].sha256 not in ("", digest),
            )
            states[name] = self._with_stray(self.layout.places[name], state, places)
        return states

    def _with_stray(self, place: TensorPlace, state: BufferState, changed: NDArray[np.int64] | None) -> BufferState:
        """The state with the first stray write around or inside a storage, where there is one."""
        offsets = self._gap_changes(place) if state.gap else np.empty(0, np.int64)
        if changed is not None and (state.guard_before or state.guard_after or state.changed):
            offsets = np.sort(np.concatenate([changed[(changed >= place.start) & (changed < place.stop)], offsets]))
        if not offsets.size:
            return state
        first = int(offsets[0])
        length = next((n for n in range(1, min(offsets.size, _SHOWN)) if offsets[n] != first + n), None)
        stop = first + (length or min(offsets.size, _SHOWN))
        stray = StrayWrite(
            offset=first - place.offset,
            before=self._kept_bytes(first, stop).hex(),
            after=self.memory[first:stop].tobytes().hex(),
        )
        return msgspec.structs.replace(state, stray=stray)

    def _gap_changes(self, place: TensorPlace) -> NDArray[np.int64]:
        """Offsets in memory of the bytes of an output's storage outside its view that no longer hold the fill."""
        marks = np.zeros(self.memory.size, np.uint8)
        size = self.outputs[place.name].view.itemsize
        _view(place.tensor, np.dtype(f"V{size}"), marks, place.offset)[...] = np.void(b"\1" * size)
        octets = self.memory[place.offset : place.end]
        inside = marks[place.offset : place.end] != 0
        return np.flatnonzero(~inside & (octets != FILLS[self.fill])) + place.offset

    def _kept_bytes(self, start: int, stop: int) -> bytes:
        """What lay in a range of memory before the call."""
        for first, contents in self.kept:
            if first <= start < first + len(contents):
                return contents[start - first : stop - first]
        return bytes((FILLS[self.fill],)) * (stop - start)

    def _demand_kept(self) -> None:
        if not self.kept:
            raise ValueError(
                "these buffers were attached and not prepared: what they held is known to who prepared them"
            )


def prepare(
    case: Case,
    *,
    outputs: frozenset[str],
    arrays: Mapping[str, Array],
    memory: Bytes | None = None,
    fill: int = 0,
    plan: BlockLayout | None = None,
) -> CallBuffers:
    """Lay a call out in memory and fill all of it.

    `outputs` names the output parameters, `arrays` holds the inputs' contents in their shapes and NumPy dtypes (an
    input without an entry holds zero bytes), `memory` is a flat uint8 array of at least `layout(...).size` bytes, best
    aligned to 64 (one is made where none is given), `fill` is 0 or 1, `plan` is `layout(case, outputs)` where the
    caller has it. Raises UnsafeViewError for a tensor that `check_view` refuses, ValueError for contents or memory that
    do not fit.
    """
    plan = block_layout(case, outputs) if plan is None else plan
    block = _block(plan, _allocate(plan.size) if memory is None else memory)
    inputs, found = _buffers(plan, block)
    _fill_guards(plan, block)
    held = {name: arrays[name] for name in found if name in inputs and name in arrays}
    for name, buffer in inputs.items():
        contents = arrays.get(name)
        if contents is None:
            buffer.octets[...] = 0
            continue
        if contents.shape != buffer.view.shape or contents.dtype != buffer.view.dtype:
            raise ValueError(
                f"{name}: contents of shape {contents.shape} and dtype {contents.dtype}; "
                f"expected {buffer.view.shape} and {buffer.view.dtype}"
            )
        if buffer.place.output:
            continue
        if buffer.has_gaps:
            buffer.octets[...] = _INPUT_GAP if DTYPES[buffer.tensor.dtype].kind in ("float", "complex") else 0
        buffer.view[...] = contents
    _fill_outputs(found, held, fill)
    return CallBuffers(plan, block, inputs, found, fill, _keep(plan, block), held)


def attach(
    case: Case, *, outputs: frozenset[str], memory: Bytes, guards: InputGuards = InputGuards.BANDS
) -> CallBuffers:
    """Views of memory that another process prepared for the same case; nothing is read or written."""
    plan = block_layout(case, outputs, guards=guards)
    block = _block(plan, memory)
    return CallBuffers(plan, block, *_buffers(plan, block))


def _block(plan: BlockLayout, memory: Bytes) -> Bytes:
    """As much of the memory as the call needs."""
    if memory.dtype != np.uint8 or memory.ndim != 1 or memory.size < plan.size or not memory.flags.c_contiguous:
        raise ValueError(
            f"memory: {memory.size} elements of {memory.dtype} in {memory.ndim} dimensions; "
            f"expected a contiguous row of at least {plan.size} uint8"
        )
    return memory[: plan.size]


def _buffers(plan: BlockLayout, memory: Bytes) -> tuple[Mapping[str, Buffer], Mapping[str, Buffer]]:
    """Of the inputs, and of the outputs."""
    inputs: dict[str, Buffer] = {}
    outputs: dict[str, Buffer] = {}
    for name, place in plan.places.items():
        buffer = Buffer(place, memory, _elements(place, memory))
        if place.output:
            outputs[name] = buffer
        if place.filled:
            inputs[name] = buffer
    return MappingProxyType(inputs), MappingProxyType(outputs)


def _fill_outputs(outputs: Mapping[str, Buffer], held: Mapping[str, Array], fill: int) -> None:
    """Fill the outputs' storages, and give those that are inputs too their contents."""
    for name, buffer in outputs.items():
        buffer.octets[...] = FILLS[fill]
        if buffer.place.filled:
            buffer.view[...] = held.get(name, 0)


def _allocate(size: int) -> Bytes:
    block: Bytes = np.empty(size + ALIGNMENT, dtype=np.uint8)
    shift = -block.ctypes.data % ALIGNMENT
    return block[shift : shift + size]


def _elements(place: TensorPlace, memory: Bytes) -> Array:
    tensor = place.tensor
    dtype = storage_dtype(tensor.dtype)
    if tensor.strides is None and tensor.storage_shape is None and not tensor.offset:
        whole: Array = np.ndarray(tensor.shape, dtype, memory, place.offset)
        return whole
    return _view(tensor, dtype, memory, place.offset)


def _view(tensor: Tensor, dtype: np.dtype[Any], memory: Bytes, offset: int) -> Array:
    """The elements of a tensor whose storage starts at a byte offset, read as `dtype`, in the tensor's shape."""
    if 0 in tensor.shape:
        return np.empty(tensor.shape, dtype)
    size = dtype.itemsize
    strides = None if tensor.strides is None else tuple([stride * size for stride in tensor.strides])
    view: Array = np.ndarray(tensor.shape, dtype, memory, offset + tensor.offset * size, strides)
    return view


def _fill_guards(plan: BlockLayout, memory: Bytes) -> None:
    start = 0
    # Bands of neighbours touch: the one behind a storage and the one before the next are filled at once.
    for place in plan.places.values():
        if plan.has_pages(place):
            start = place.start
        memory[start : place.offset] = _GUARD_PATTERN[: place.offset - start]
        start = place.end
        if plan.has_pages(place):
            memory[start : place.stop] = _GUARD_PATTERN[: place.stop - start]
            start = place.stop + PAGE
    memory[start:] = _GUARD_PATTERN[: memory.size - start]


def _keep(plan: BlockLayout, memory: Bytes) -> tuple[tuple[int, bytes], ...]:
    kept = []
    start = 0
    for place in plan.places.values():
        if plan.has_pages(place):
            kept.append((place.start, memory[place.start : place.stop].tobytes()))
            start = place.stop + PAGE
        if place.output:
            kept.append((start, memory[start : place.offset].tobytes()))
            start = place.end
    kept.append((start, memory[start:].tobytes()))
    return tuple(kept)


def _differences(memory: Bytes, start: int, contents: bytes) -> list[NDArray[np.int64]]:
    """The offsets in memory at which a stretch no longer holds its contents."""
    if len(contents) <= _CHUNK and memory[start : start + len(contents)].tobytes() == contents:
        return []
    found = []
    before = np.frombuffer(contents, dtype=np.uint8)
    for first in range(0, len(contents), _CHUNK):
        part = before[first : first + _CHUNK]
        offsets = np.flatnonzero(memory[start + first : start + first + part.size] != part)
        if offsets.size:
            found.append(offsets + (start + first))
    return found


def _state(place: TensorPlace, changed: NDArray[np.int64]) -> BufferState:
    start, offset, end, stop = np.searchsorted(changed, (place.start, place.offset, place.end, place.stop)).tolist()
    return BufferState(guard_before=offset - start, guard_after=stop - end, changed=end - offset)


def _still_filled(view: Array, fill: int) -> NDArray[np.bool_]:
    """Which elements consist of fill bytes alone."""
    size = view.dtype.itemsize
    if size <= np.dtype(np.uint64).itemsize:
        word = _fill_word(size, fill)
        same: NDArray[np.bool_] = view.view(word.dtype) == word
        return same
    octets = view.copy(order="C").reshape(-1).view(np.uint8).reshape(*view.shape, size)
    every: NDArray[np.bool_] = (octets == fill).all(axis=-1)
    return every


@functools.cache
def _fill_word(size: int, fill: int) -> np.unsignedinteger[Any]:
    """An unsigned integer of that many bytes, all of them the fill."""
    word: np.unsignedinteger[Any] = np.dtype(f"u{size}").type(int.from_bytes(bytes([fill]) * size, "little"))
    return word


def _changed(octets: Bytes | bytes, fill: int) -> int:
    """How many bytes are not the fill: in a storage those of its view and those of its gaps."""
    found = np.frombuffer(octets, np.uint8)
    parts = (found[first : first + _CHUNK] for first in range(0, found.size, _CHUNK))
    return sum(int(np.count_nonzero(part != fill)) for part in parts)
