"""The memory of a call: laid out alike everywhere, and every stray write in it found and told where."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from aclnn_cts.core.case import Case, Data, Tensor
from aclnn_cts.core.dtypes import DTYPES, numpy_dtype
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.outcome import BufferState
from aclnn_cts.core.rounding import to_dtype
from aclnn_cts.generate.buffers import (
    ALIGNMENT,
    FILLS,
    GUARD,
    PAGE,
    CallBuffers,
    InputGuards,
    UnsafeViewError,
    attach,
    block_layout,
    check_view,
    prepare,
)
from aclnn_cts.generate.configuration import EXPANDED, VIEWS, lay_out
from aclnn_cts.generate.layouts import storage_dtype
from aclnn_cts.generate.recipes import case_arrays, many_arrays

OUTPUTS = frozenset({"out", "wide"})
INPUTS = ("x", "index", "none")


def laid_out(shape: tuple[int, ...], dtype: str, view: int, data: Data | None = None) -> Tensor:
    found = lay_out(shape, view)
    if found is None:
        return Tensor(shape=shape, dtype=dtype, data=data)
    return Tensor(shape, dtype, strides=found[0], offset=found[1], storage_shape=found[2], data=data)


def a_case(shape: tuple[int, ...] = (3, 5), dtype: str = "FLOAT", view: int = 5) -> Case:
    return Case(
        operator="aclnnAny",
        arguments={
            "wide": laid_out(shape, dtype, 5 if view in EXPANDED else view),
            "x": laid_out(shape, dtype, view, Data(recipe="normal", seed=1)),
            "dim": 1,
            "index": Tensor(shape=(), dtype="BOOL", data=Data(values=(1,))),
            "bias": None,
            "out": Tensor(shape=shape, dtype=dtype),
            "none": laid_out((2, 2), "INT64", 2, Data(recipe="indices", high=5)),
        },
    )


def prepared(case: Case, **options: Any) -> CallBuffers:
    return prepare(case, outputs=OUTPUTS, arrays=case_arrays(case, INPUTS), **options)


def run(buffers: CallBuffers, value: float = 1) -> None:
    """A correct implementation: it writes every element of every output, and nothing else."""
    for buffer in buffers.outputs.values():
        if buffer.view.dtype == numpy_dtype("HIFLOAT8"):
            buffer.view[...] = to_dtype(np.full((), float(value)), "HIFLOAT8")
        else:
            buffer.view[...] = np.ones((), buffer.view.dtype) * buffer.view.dtype.type(value)


def clean(states: dict[str, BufferState]) -> bool:
    return all(
        not (state.unwritten or state.guard_before or state.guard_after or state.gap or state.changed)
        for state in states.values()
    )


@settings(max_examples=60, deadline=None)
@given(
    shape=st.lists(st.integers(0, 5), max_size=4).map(tuple),
    dtype=st.sampled_from(sorted(DTYPES)),
    view=st.integers(0, len(VIEWS) - 1),
    fill=st.integers(0, 1),
)
def test_a_correct_call_leaves_nothing_to_report(shape: tuple[int, ...], dtype: str, view: int, fill: int) -> None:
    case = a_case(shape, dtype, view)
    arrays = case_arrays(case, INPUTS)
    buffers = prepared(case, fill=fill)
    for name, buffer in buffers.inputs.items():
        assert np.array_equal(buffer.view.tobytes(), arrays[name].tobytes())
    assert all(mask.all() and mask.shape == shape for mask in buffers.unwritten().values())
    run(buffers)
    states = buffers.inspect()
    assert clean(states)
    assert list(states) == ["x", "index", "none", "wide", "out"]
    for name in OUTPUTS:
        output = buffers.outputs[name].view
        assert output.shape == shape
        assert output.dtype == storage_dtype(dtype)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), view=st.integers(0, len(VIEWS) - 1), dtype=st.sampled_from(["FLOAT", "BF16", "COMPLEX128"]))
def test_any_byte_outside_the_outputs_is_found_and_located(data: st.DataObject, view: int, dtype: str) -> None:
    case = a_case((3, 4), dtype, view)
    buffers = prepared(case)
    run(buffers)
    target = data.draw(st.sampled_from(sorted(buffers.layout.places)))
    place = buffers.layout.places[target]
    at = data.draw(st.integers(place.start, place.stop - 1))
    inside = place.offset <= at < place.end
    element = _element_of(buffers, target, at) if inside else None
    before = buffers.memory[at]
    buffers.memory[at] = before ^ 0x55
    states = buffers.inspect()
    if place.output and element is not None:
        assert clean(states)
        return
    state = states.pop(target)
    assert clean(states)
    assert state.guard_before == (at < place.offset)
    assert state.guard_after == (at >= place.end)
    assert state.changed == (inside and not place.output)
    assert state.gap == (inside and place.output)
    buffers.memory[at] = before
    assert clean(buffers.inspect())


def _element_of(buffers: CallBuffers, name: str, at: int) -> tuple[int, ...] | None:
    """The index of the view's element that a byte belongs to, by NumPy's own idea of the view's addresses."""
    buffer = buffers.inputs.get(name) or buffers.outputs[name]
    address = buffers.memory.ctypes.data + at
    base = buffer.view.ctypes.data
    for index in np.ndindex(buffer.view.shape):
        start: int = base + sum(place * stride for place, stride in zip(index, buffer.view.strides, strict=True))
        if start <= address < start + buffer.view.itemsize:
            return tuple(int(place) for place in index)
    return None


@pytest.mark.parametrize("dtype", ["FLOAT", "FLOAT16", "BF16", "DOUBLE", "INT8", "BOOL", "COMPLEX128"])
@pytest.mark.parametrize("name", sorted(OUTPUTS))
def test_unwritten_elements_are_counted_by_two_fills(name: str, dtype: str) -> None:
    buffers = prepared(a_case(dtype=dtype))

    def faulty(call: CallBuffers) -> None:
        """Leaves two elements out, and computes in two others what happens to be one fill and the other."""
        octets = call.outputs[name].view.view(f"V{call.outputs[name].view.itemsize}")
        kept = octets.copy()
        run(call)
        octets[1, 2], octets[2, 4] = kept[1, 2], kept[2, 4]
        for column, fill in enumerate(FILLS):
            octets[0, column] = np.void(bytes([fill]) * octets.itemsize)

    faulty(buffers)
    assert buffers.inspect()[name].unwritten == 3
    masks = {key: mask.copy() for key, mask in buffers.unwritten().items()}
    again = buffers.refill(1)
    faulty(again)
    states = again.inspect(earlier=masks)
    assert states.pop(name).unwritten == 2
    assert clean(states)


@pytest.mark.parametrize("view", range(1, len(VIEWS)))
@pytest.mark.parametrize("fill", [0, 1])
def test_every_gap_of_an_output_is_watched(view: int, fill: int) -> None:
    buffers = prepared(a_case(view=view), fill=fill)
    run(buffers)
    place = buffers.layout.places["wide"]
    gaps = [at for at in range(place.offset, place.end) if _element_of(buffers, "wide", at) is None]
    assert len(gaps) == place.end - place.offset - 15 * 4
    for at in gaps:
        buffers.memory[at] ^= 1
        assert buffers.inspect()["wide"].gap == 1
        buffers.memory[at] ^= 1
    assert clean(buffers.inspect())


def test_refill_restores_everything() -> None:
    buffers = prepared(a_case())
    fresh = prepared(a_case(), fill=1)
    buffers.memory[:] = 0
    again = buffers.refill(1)
    assert again.fill == 1
    assert np.array_equal(again.memory, fresh.memory)
    assert buffers.fill == 0


def test_an_array_that_a_view_shifts_is_seen() -> None:
    """A row of zeros where a guard was, the whole guard and the neighbour's as well."""
    buffers = prepared(a_case())
    run(buffers)
    place = buffers.layout.places["x"]
    buffers.memory[place.end : place.stop + 10] = 0
    states = buffers.inspect()
    assert states["x"].guard_after == place.stop - place.end
    assert states["index"].guard_before == 10
    assert states["x"].changed == 0


def test_a_swap_of_guard_bytes_is_seen() -> None:
    buffers = prepared(a_case())
    run(buffers)
    place = buffers.layout.places["out"]
    buffers.memory[place.start : place.start + 64] = buffers.memory[place.start + 64 : place.start + 128].copy()
    assert buffers.inspect()["out"].guard_before > 60


def test_large_blocks_are_compared_in_parts() -> None:
    tensor = Tensor(shape=(1_200_000,), dtype="FLOAT", data=Data(recipe="zeros"))
    case = Case(operator="a", arguments={"x": tensor, "out": Tensor(shape=(3,), dtype="FLOAT")})
    buffers = prepare(case, outputs=OUTPUTS, arrays=case_arrays(case, ["x"]))
    run(buffers)
    assert clean(buffers.inspect())
    buffers.inputs["x"].view[[5, 700_000, 1_199_999]] = 1
    state = buffers.inspect()["x"]
    assert state.changed == 3 * 2
    assert not state.guard_before + state.guard_after


@pytest.mark.parametrize("dtype", ["FLOAT", "FLOAT16", "BF16", "DOUBLE"])
def test_fills_are_neither_zero_nor_plausible(dtype: str) -> None:
    buffers = prepared(a_case(dtype=dtype))
    first = buffers.outputs["out"].view.astype(np.float64)
    second = buffers.refill(1).outputs["out"].view.astype(np.float64)
    assert np.isnan(first).all()
    assert (np.isnan(second) | (np.abs(second) > 1e37)).all()


def test_gaps_of_inputs_show_a_read_and_stay_safe_as_indices() -> None:
    buffers = prepared(a_case(view=2))
    for name, implausible in [("x", True), ("none", False)]:
        buffer = buffers.inputs[name]
        assert buffer.tensor.strides is not None
        gaps = buffer.storage[buffer.view.shape[1] : buffer.tensor.strides[0]]
        assert len(gaps) == 3
        assert (np.abs(gaps) > 1e37).all() if implausible else not np.any(gaps)


def test_sha256_is_of_the_elements_and_not_of_the_layout() -> None:
    strided, plain = prepared(a_case(view=5)), prepared(a_case(view=0))
    for buffers in (strided, plain):
        run(buffers, 3)
    states = strided.inspect()
    assert states["wide"].sha256 == states["out"].sha256 == plain.inspect()["wide"].sha256
    run(plain, 4)
    assert plain.inspect()["wide"].sha256 != states["wide"].sha256


@settings(max_examples=40, deadline=None)
@given(shape=st.lists(st.integers(0, 9), max_size=3).map(tuple), view=st.integers(0, len(VIEWS) - 1))
def test_layout_is_aligned_guarded_and_complete(shape: tuple[int, ...], view: int) -> None:
    case = a_case(shape, "BF16", view)
    plan = block_layout(case, OUTPUTS)
    cursor = 0
    for place in plan.places.values():
        assert place.start == cursor
        assert place.offset % ALIGNMENT == 0
        assert place.offset - place.start == GUARD
        assert GUARD <= place.stop - place.end < GUARD + ALIGNMENT
        assert place.end - place.offset == place.tensor.nbytes
        cursor = place.stop
    assert plan.size == cursor
    assert plan == block_layout(a_case(shape, "BF16", view), OUTPUTS)


@settings(max_examples=40, deadline=None)
@given(
    shape=st.lists(st.integers(0, 30), max_size=3).map(tuple),
    view=st.integers(0, len(VIEWS) - 1),
    guards=st.sampled_from([InputGuards.START, InputGuards.END]),
)
def test_a_guard_page_touches_the_start_or_the_end_of_an_input(
    shape: tuple[int, ...], view: int, guards: InputGuards
) -> None:
    plan = block_layout(a_case(shape, "FLOAT", view), OUTPUTS, guards=guards)
    covered = []
    for name, place in plan.places.items():
        covered.append((place.start, place.stop))
        size = storage_dtype(place.tensor.dtype).itemsize
        assert place.end - place.offset == place.tensor.storage_numel * size
        if name in OUTPUTS:
            assert place.offset % ALIGNMENT == 0
            continue
        before, after = plan.guard_pages(name)
        covered += [(before.start, before.stop), (after.start, after.stop)]
        assert before.start % PAGE == after.start % PAGE == 0
        assert place.offset % size == 0
        assert (place.offset == before.stop) if guards == InputGuards.START else (place.end == after.start)
    covered.sort()
    assert [start for start, _ in covered] == [0, *(stop for _, stop in covered[:-1])]
    assert covered[-1][1] == plan.size


@pytest.mark.parametrize("guards", InputGuards)
def test_a_write_beside_an_input_is_noticed_where_no_page_touches_it(guards: InputGuards) -> None:
    case = a_case()
    buffers = prepared(case, plan=block_layout(case, OUTPUTS, guards=guards))
    run(buffers, 3)
    assert clean(buffers.inspect())
    place = buffers.layout.places["x"]
    buffers.memory[place.end if guards == InputGuards.START else place.offset - 1] ^= 1
    state = buffers.inspect()["x"]
    assert (state.guard_before, state.guard_after) == ((0, 1) if guards == InputGuards.START else (1, 0))
    buffers = buffers.refill(1)
    run(buffers, 3)
    assert clean(buffers.inspect())


def test_another_process_attaches_to_the_same_bytes() -> None:
    case = a_case()
    memory: NDArray[np.uint8] = np.zeros(block_layout(case, OUTPUTS).size + 1000, dtype=np.uint8)
    mine = prepared(case, memory=memory)
    snapshot = memory.copy()
    theirs = attach(a_case(), outputs=OUTPUTS, memory=memory)
    assert np.array_equal(memory, snapshot)
    assert theirs.inputs["x"].view.tobytes() == mine.inputs["x"].view.tobytes()
    theirs.outputs["wide"].view[...] = 7
    theirs.outputs["out"].view[...] = 7
    assert (mine.outputs["wide"].view == 7).all()
    assert clean(mine.inspect())
    assert not memory[mine.layout.size :].any()
    for refused in (theirs.inspect, lambda: theirs.refill(1)):
        with pytest.raises(ValueError, match="attached and not prepared"):
            refused()


@pytest.mark.parametrize("view", sorted(set(range(len(VIEWS))) - set(EXPANDED)))
def test_an_output_with_data_is_an_input_too(view: int) -> None:
    """One buffer: both runs begin with its contents, and nobody says that it was not written."""
    case = Case("aclnnAny", {"total": laid_out((3, 5), "FLOAT", view, Data(recipe="normal", seed=1))})
    arrays = case_arrays(case, ["total"])
    buffers = prepare(case, outputs=frozenset({"total"}), arrays=arrays)
    assert buffers.inputs["total"] is buffers.outputs["total"]
    theirs = attach(case, outputs=frozenset({"total"}), memory=buffers.memory)
    for fill in (0, 1):
        again = buffers.refill(fill)
        assert np.array_equal(theirs.inputs["total"].view, arrays["total"])
        assert not again.unwritten()["total"].any()
        theirs.outputs["total"].view[...] += 1
        states = again.inspect()
        assert clean(states)
        place = again.layout.places["total"]
        again.memory[place.end] ^= 1
        assert again.inspect()["total"].guard_after == 1
        gap = next((at for at in range(place.offset, place.end) if _element_of(again, "total", at) is None), None)
        if gap is not None:
            again.memory[gap] ^= 1
            assert again.inspect()["total"].gap == 1


def test_a_call_without_tensors_has_memory_all_the_same() -> None:
    case = Case(operator="a", arguments={"dim": 1, "out": None})
    assert prepare(case, outputs=OUTPUTS, arrays={}).inspect() == {}


def test_an_input_without_contents_is_zero() -> None:
    case = Case(operator="a", arguments={"x": Tensor(shape=(3,), dtype="FLOAT", offset=2)})
    assert not prepare(case, outputs=OUTPUTS, arrays={}).inputs["x"].storage.any()


UNSAFE = [
    (Tensor((2, 3), "FLOAT", strides=(0, 1)), "a stride of 0 puts several elements in one place"),
    (Tensor((2, 3), "FLOAT", strides=(-3, 1), offset=3), "a negative stride leads out of the storage"),
    (Tensor((2, 3), "FLOAT", strides=(2, 1)), "elements of the view overlap"),
    (Tensor((300, 300), "FLOAT", strides=(299, 1)), "elements of the view overlap"),
    (Tensor((2, 3), "FLOAT", strides=(3, 1), storage_shape=(5,)), "reaches element 5 of a storage of 5"),
    (Tensor((2, 3), "FLOAT", offset=1, storage_shape=(2, 3)), "reaches element 6 of a storage of 6"),
    (Tensor((2, 3), "FLOAT", storage_shape=(2, 2)), "reaches element 5 of a storage of 4"),
    (Tensor((2,), "FLOAT", offset=-1), "offset -1 lies before the storage"),
    (Tensor((2, -3), "FLOAT"), "negative dimension"),
    (Tensor((2, 3), "FLOAT", storage_shape=(-6,)), "negative dimension"),
    (Tensor((2, 3), "FLOAT", strides=(1,)), "1 strides for 2 dimensions"),
    (Tensor((1,) * 40, "FLOAT"), "rank 40"),
]


@pytest.mark.parametrize(("tensor", "reason"), UNSAFE, ids=[reason for _, reason in UNSAFE])
def test_unsafe_views_are_refused(tensor: Tensor, reason: str) -> None:
    said = check_view(tensor)
    assert said is not None
    assert reason in said
    for name in ("x", "out") if "stride of 0" not in reason else ("out",):
        with pytest.raises(UnsafeViewError, match=f"{name}: "):
            block_layout(Case(operator="a", arguments={name: tensor}), OUTPUTS)


@pytest.mark.parametrize(
    "tensor",
    [
        Tensor((2, 3), "FLOAT", strides=(1, 2)),
        Tensor((2, 2), "FLOAT", strides=(2, 3)),
        Tensor((1, 3), "FLOAT", strides=(0, 1)),
        Tensor((0, 3), "FLOAT", strides=(0, 0)),
        Tensor((), "FLOAT", strides=(), offset=4),
        Tensor((2, 3), "FLOAT", strides=(100, 7), offset=5),
    ],
)
def test_safe_views_are_accepted(tensor: Tensor) -> None:
    assert check_view(tensor) is None
    block_layout(Case(operator="a", arguments={"x": tensor}), OUTPUTS)


@pytest.mark.parametrize("dtype", ["FLOAT", "BF16", "COMPLEX64"])
def test_equal_elements_of_an_input_share_a_place(dtype: str) -> None:
    x = Tensor((2, 3), dtype, strides=(0, 1), storage_shape=(2, 3), data=Data(recipe="normal", seed=1))
    case = Case(operator="a", arguments={"x": x, "out": Tensor((2, 3), "FLOAT")})
    [arrays] = many_arrays([(case, ("x",))])
    assert not isinstance(arrays, UsageError)
    assert (arrays["x"] == case_arrays(case, ("x",))["x"]).all()
    assert (arrays["x"][0] == arrays["x"][1]).all()
    assert len(set(arrays["x"][0].tolist())) == 3
    buffers = prepare(case, outputs=frozenset({"out"}), arrays=arrays)
    assert (buffers.inputs["x"].view == arrays["x"]).all()
    assert check_view(Tensor((2, 3), "FLOAT", strides=(0, 0), offset=1), may_expand=True) is None
    assert check_view(Tensor((2, 2, 3), "FLOAT", strides=(0, 1, 1)), may_expand=True) is not None


@settings(max_examples=150, deadline=None)
@given(data=st.data(), shape=st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple))
def test_overlap_is_told_exactly(data: st.DataObject, shape: tuple[int, ...]) -> None:
    strides = tuple(data.draw(st.integers(1, 9)) for _ in shape)
    places = [sum(i * s for i, s in zip(index, strides, strict=True)) for index in np.ndindex(shape)]
    refused = check_view(Tensor(shape, "FLOAT", strides=strides)) is not None
    assert refused == (len(set(places)) < len(places))


def test_contents_and_memory_that_do_not_fit_are_refused() -> None:
    case = a_case()
    arrays = case_arrays(case, INPUTS)
    for wrong in (arrays["x"][:1], arrays["x"].astype(np.float64), arrays["x"].reshape(5, 3)):
        with pytest.raises(ValueError, match=r"x: contents of shape .*; expected \(3, 5\) and float32"):
            prepare(case, outputs=OUTPUTS, arrays=arrays | {"x": wrong})
    size = block_layout(case, OUTPUTS).size
    unfit: list[NDArray[Any]] = [
        np.zeros(size - 1, np.uint8),
        np.zeros(size, np.int8),
        np.zeros(2 * size, np.uint8)[::2],
    ]
    for memory in unfit:
        with pytest.raises(ValueError, match=f"expected a contiguous row of at least {size} uint8"):
            prepare(case, outputs=OUTPUTS, arrays=arrays, memory=memory)
