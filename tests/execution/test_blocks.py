"""Large arrays are looked at in blocks, whose size changes no number and no verdict."""

from __future__ import annotations

import contextlib
import functools
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from aclnn_cts.core import rounding
from aclnn_cts.core.case import Case, Data, Tensor, real_view
from aclnn_cts.core.dtypes import from_components
from aclnn_cts.core.expected import ExpectedOutput, Float64
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.rounding import BINARY_FORMATS, round_to, spacing, stored, to_dtype, widen
from aclnn_cts.core.target import Target
from aclnn_cts.core.verdict import Result, Verdict
from aclnn_cts.execution import judging
from aclnn_cts.execution.executor import PerformedCall
from aclnn_cts.execution.judging import Judge, Judges
from aclnn_cts.formula import slices
from aclnn_cts.generate.choices import StreamChoices, stream_words
from aclnn_cts.generate.recipes import case_arrays
from aclnn_cts.generate.recipes_real import normal_values
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.oracles import registry
from aclnn_cts.speclang.load import Specs, load_specs
from aclnn_cts.speclang.model import Spec
from tests.support.targets import HUGE, first_fast

SIZES = (1, 6, 64)
FLOATS = ("FLOAT", "FLOAT16", "BF16", "DOUBLE")
DOUBLES = st.lists(
    st.floats(width=64) | st.sampled_from([0.0, -0.0, 65504.0, 65520.0, 2.0**-25, -(2.0**-149)]),
    min_size=1,
    max_size=40,
)


@pytest.fixture(scope="module")
def specs() -> Specs:
    return load_specs()


@pytest.fixture(scope="module")
def judges() -> Judges:
    return Judges(has_statuses=True)


@contextlib.contextmanager
def in_blocks(size: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounding, "BLOCK", size)
        patch.setattr(slices, "_SLICE", size)
        yield


@given(count=st.integers(0, 99), each=st.integers(0, 9), size=st.sampled_from(SIZES))
def test_blocks_are_all_places_in_order(count: int, each: int, size: int) -> None:
    with in_blocks(size):
        found = list(rounding.blocks(count, each=each))
    assert [place for item in found for place in range(count)[item]] == list(range(count))
    assert all((item.stop - item.start) * each <= max(size, each) for item in found)


@given(values=DOUBLES, form=st.sampled_from(sorted(BINARY_FORMATS)), size=st.sampled_from(SIZES))
def test_rounding_in_blocks_gives_the_same_bits(values: list[float], form: str, size: int) -> None:
    array = np.array(values)
    whole = round_to(array, BINARY_FORMATS[form])
    with in_blocks(size):
        assert round_to(array, BINARY_FORMATS[form]).tobytes() == whole.tobytes()
        if form in FLOATS:
            assert to_dtype(array, form).tobytes() == whole.astype(to_dtype(array[:1], form).dtype).tobytes()


@given(values=DOUBLES, form=st.sampled_from(sorted(BINARY_FORMATS)))
def test_spacing_is_scaled(values: list[float], form: str) -> None:
    array = np.array(values)
    assert (spacing(array, BINARY_FORMATS[form], scale=0.5) == 0.5 * spacing(array, BINARY_FORMATS[form])).all()


def tensor(shape: tuple[int, ...], dtype: str, **data: Any) -> Tensor:
    return Tensor(shape, dtype, data=Data(**data))


@pytest.mark.parametrize("dtype", FLOATS[:3])
@pytest.mark.parametrize(("shape", "axis"), [((7, 6), -1), ((7, 5), 1), ((4, 3, 5), 1), ((42,), 0), ((6, 7), 0)])
def test_a_softmax_in_blocks_has_the_same_bits(shape: tuple[int, ...], axis: int, dtype: str) -> None:
    case = Case("x", {"y": tensor(shape, dtype, recipe="softmax", seed=3, axis=axis)})
    whole = case_arrays(case, ["y"])["y"]
    for size in SIZES:
        with in_blocks(size):
            assert case_arrays(case, ["y"])["y"].tobytes() == whole.tobytes()


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_large_bell_has_the_bits_of_its_formula(dtype: str) -> None:
    count = 4 * 65535 + 11
    case = Case("x", {"y": tensor((count,), dtype, recipe="normal", seed=9, mean=0.3, std=1.7)})
    with np.errstate(all="ignore"):
        expected_bits = stored(normal_values(stream_words(9, "data/y", count), 0.3, 1.7), dtype)
    assert case_arrays(case, ["y"])["y"].tobytes() == expected_bits.tobytes()


def performed(case: Case, judge: Judge, *, place: int = 0, factor: float = 1.0) -> PerformedCall:
    """A call with the reference's results, one element of which is multiplied."""
    arrays = case_arrays(case, judge.spec.given_inputs(case))
    known = PerformedCall(case=case, outcome=Outcome(phase_one=0, phase_two=0), arrays=arrays)
    values = registry.load(judge.spec.stem).values(judge.question(known))
    got: dict[str, NDArray[Any]] = {}
    for name in judge.spec.output_tensors(case):
        descriptor = case.tensor(name)
        if descriptor is not None:
            real = real_view(descriptor)
            array = np.array(to_dtype(np.broadcast_to(values[name], real.shape), real.dtype))
            if array.size and factor != 1.0:
                flat = array.reshape(-1)
                flat[place % flat.size] = to_dtype(widen(flat[place % flat.size :][:1]) * factor, real.dtype)[0]
            got[name] = from_components(array, descriptor.dtype)
    return PerformedCall(case=case, outcome=known.outcome, arrays=arrays, got=got)


@functools.cache
def sampler_of(operator: str) -> Sampler:
    spec = load_specs()[operator]
    return Sampler(spec, Target(spec.usual_product))


def small_case(spec: Spec, number: int) -> Case | None:
    """A random call; None where its tensors have no contents."""
    sampler = sampler_of(spec.operator)
    case = sampler.case(sampler.draw(StreamChoices(number, "blocks", 0), budget=160))
    return None if case.call.phases == 1 else case


def verdicts(judge: Judge, call: PerformedCall) -> Iterator[Verdict]:
    yield judge.values(call)
    for size in SIZES:
        with in_blocks(size):
            yield judge.values(call)


def with_leading(specs: Specs) -> list[str]:
    return [spec.stem for spec in specs.values() if hasattr(registry.load_module(spec.stem), "LEADING")]


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(number=st.integers(0, 10**6), place=st.integers(0, 10**4), factor=st.sampled_from([1.0, 1.0, 1.5, -1.0]))
# Blocks of a few elements take minutes for a large call.
@pytest.mark.parametrize("stem", first_fast(spec.stem for spec in load_specs().values() if spec.stem not in HUGE))
def test_the_size_of_blocks_changes_no_verdict(
    stem: str, number: int, place: int, factor: float, specs: Specs, judges: Judges
) -> None:
    spec, judge = specs.find(stem, where="test"), judges.of(specs.find(stem, where="test"))
    case = small_case(spec, number)
    if case is None:
        return
    first, *others = verdicts(judge, performed(case, judge, place=place, factor=factor))
    is_sliced = spec.elementwise or stem in with_leading(specs)
    assert {verdict_text(other, with_bounds=not is_sliced) for other in others} == {
        verdict_text(first, with_bounds=not is_sliced)
    }


def verdict_text(verdict: Verdict, *, with_bounds: bool) -> str:
    """Written out, since nan is not equal to itself. What underflows elsewhere is no part of a slice's bound."""
    if with_bounds or verdict.result == Result.FAILED:
        return repr(verdict)
    counts = [(item.output, item.elements, item.open) for item in verdict.deviations]
    return repr((verdict.result, verdict.message, verdict.judged, verdict.facts, counts))


def elementwise_call(judge: Judge, *, elements: int, factor: float = 1.0) -> PerformedCall:
    shape = (elements // 512, 512)
    arguments: dict[str, Any] = {
        "gradOutput": tensor(shape, "FLOAT", recipe="normal", seed=1),
        "self": tensor(shape, "FLOAT", recipe="normal", seed=2),
        "gradInput": Tensor(shape, "FLOAT"),
    }
    return performed(Case("aclnnSiluBackward", arguments), judge, place=elements - 1, factor=factor)


def test_a_large_elementwise_call_is_judged_in_blocks(judges: Judges, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = judges.of(load_specs()["aclnnSiluBackward"])
    call = elementwise_call(judge, elements=2 * rounding.BLOCK)
    as_whole = replace(judge, blocks=None).values(call)
    assert judge.values(elementwise_call(judge, elements=2 * rounding.BLOCK, factor=1.5)).kind == Fault.VALUE
    with monkeypatch.context() as patch:
        patch.setattr(Judge, "_answer", lambda *_: pytest.fail("looked at as a whole"))
        in_parts = judge.values(call)
    assert verdict_text(in_parts, with_bounds=False) == verdict_text(as_whole, with_bounds=False)
    assert in_parts.result == Result.PASSED


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(number=st.integers(0, 10**6), place=st.integers(0, 10**4), factor=st.sampled_from([1.0, 1.5, -1.0, np.nan]))
@pytest.mark.parametrize(
    "stem", ["silu_backward", "kl_div_backward", "mse_loss_backward", "softmax_backward", "threshold_backward"]
)
def test_a_call_too_large_for_a_look_at_the_whole_is_judged_the_same(
    stem: str, number: int, place: int, factor: float, specs: Specs, judges: Judges
) -> None:
    spec, judge = specs.find(stem, where="test"), judges.of(specs.find(stem, where="test"))
    case = small_case(spec, number)
    if case is None:
        return
    call = performed(case, judge, place=place, factor=factor)
    as_whole = judge.values(call)
    with in_blocks(7), pytest.MonkeyPatch.context() as patch:
        patch.setattr(judging, "_WHOLE", 0)
        in_parts = judge.values(call)
    told = [(found.result, found.kind, found.facts.get("output")) for found in (in_parts, as_whole)]
    counts = [[(item.beyond, item.elements, item.open) for item in found.deviations] for found in (in_parts, as_whole)]
    assert (told[0], counts[0]) == (told[1], counts[1])


@pytest.mark.parametrize(
    "spec", [spec for spec in load_specs().values() if spec.elementwise], ids=lambda spec: spec.stem
)
def test_every_elementwise_formula_answers_in_blocks(spec: Spec, judges: Judges) -> None:
    judge = judges.of(spec)
    assert judge.blocks is not None
    for case in (small_case(spec, number) for number in range(4)):
        if case is not None:
            arrays = case_arrays(case, spec.given_inputs(case))
            found = list(judge.blocks(judge.question(PerformedCall(case=case, outcome=Outcome(), arrays=arrays))))
            assert found == [None] or None not in found


@pytest.mark.parametrize("order", [np.asfortranarray, lambda array: array[::-1]])
def test_no_slice_copies_all_of_an_array(
    judges: Judges, monkeypatch: pytest.MonkeyPatch, order: Callable[[NDArray[Any]], NDArray[Any]]
) -> None:
    judge = judges.of(load_specs()["aclnnSiluBackward"])
    call = elementwise_call(judge, elements=1 << 12)
    ordered = {name: order(array) for name, array in call.arrays.items()}
    question = judge.question(msgspec.structs.replace(call, arrays=ordered))
    widened: list[NDArray[Any]] = []

    def as_operand(array: NDArray[Any]) -> NDArray[Any]:
        widened.append(array)
        return rounding.as_operand(array)

    monkeypatch.setattr(slices, "_SLICE", 700)
    monkeypatch.setattr(slices, "as_operand", as_operand)
    assert judge.blocks is not None
    # As they came: `question` has them in float64.
    parts = judge.blocks(msgspec.structs.replace(question, tensors=ordered))
    found = [np.ravel(part.outputs["gradInput"].value) for part in parts if part is not None]
    assert len(found) > 2
    assert np.concatenate(found).tobytes() == np.ravel(judge.oracle(question)["gradInput"].value).tobytes()
    cut = [array for array in widened if array.dtype == np.float32]
    assert len(cut) == len(found) * len(ordered)
    assert all(any(np.shares_memory(array, item) for item in ordered.values()) for array in cut)


@pytest.mark.parametrize("stem", with_leading(load_specs()))
def test_slices_along_leading_axes_have_the_values_of_the_whole(stem: str, specs: Specs, judges: Judges) -> None:
    spec, judge = specs.find(stem, where="test"), judges.of(specs.find(stem, where="test"))
    sliced = 0
    for case in filter(None, (small_case(spec, number) for number in range(40))):
        if sliced == 8:
            break
        call = PerformedCall(case=case, outcome=Outcome(), arrays=case_arrays(case, spec.given_inputs(case)))
        question = judge.question(call)
        whole = judge.oracle(question)
        assert judge.blocks is not None
        with in_blocks(4):
            parts = list(judge.blocks(question))
        if None in parts or any(not output.value.size for output in whole.values()):
            continue
        sliced += len(parts) > 1
        for name, output in whole.items():
            found = [np.ravel(part.outputs[name].value) for part in parts if part is not None]
            np.testing.assert_array_equal(np.concatenate(found), np.ravel(output.value))
            assert [part.place.start for part in parts if part is not None] == [0, *np.cumsum([*map(len, found)])[:-1]]
    assert sliced > 2


def test_a_mean_over_a_block_is_no_mean_over_all(judges: Judges) -> None:
    shape = (4 * rounding.BLOCK,)
    names = ("gradOutput", "self", "target")
    arguments: dict[str, Any] = {
        **{name: tensor(shape, "FLOAT", recipe="normal", seed=number) for number, name in enumerate(names)},
        "reduction": 1,
        "out": Tensor(shape, "FLOAT"),
    }
    judge = judges.of(load_specs()["aclnnMseLossBackward"])
    call = performed(Case("aclnnMseLossBackward", arguments), judge)
    assert judge.values(call).result == Result.PASSED
    wrong = {name: array * np.float32(4.0) for name, array in call.got.items()}
    assert judge.values(msgspec.structs.replace(call, got=wrong)).kind == Fault.VALUE


@pytest.mark.parametrize("factor", [1.0, 1.5])
def test_a_large_elementwise_call_takes_little_memory(judges: Judges, factor: float) -> None:
    judge = judges.of(load_specs()["aclnnSiluBackward"])
    elements = 1 << 23
    call = elementwise_call(judge, elements=elements, factor=factor)
    tracemalloc.start()
    try:
        verdict = judge.values(call)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert verdict.result == (Result.PASSED if factor == 1.0 else Result.FAILED)
    assert peak < 2 * elements * np.dtype(np.float64).itemsize  # no input was widened as a whole


SOFTMAX = st.fixed_dictionaries(
    {
        "shape": st.sampled_from([(9, 7), (5, 4, 3), (2, 3, 2, 5), (11,), ()]),
        "dim": st.integers(-1, 0),
        "dtype": st.sampled_from(FLOATS[:3]),
        "y": st.sampled_from(["softmax", "subnormal", "wide", "integers", "zeros"]),
        "g": st.sampled_from(["normal", "large", "special", "integers", "cancel"]),
        "seed": st.integers(0, 99),
    }
)


def bounds(output: ExpectedOutput) -> Float64:
    return np.broadcast_to(output.error, np.shape(output.value)).reshape(-1)


def with_care(output: ExpectedOutput) -> bool:
    """Whether the bound was found with care, which makes it narrower: an oracle takes care of a call as a whole."""
    return output.partial is not None


@given(drawn=SOFTMAX, size=st.sampled_from(SIZES))
def test_slices_of_softmax_say_no_more_than_the_whole(drawn: Mapping[str, Any], size: int, judges: Judges) -> None:
    shape, dtype, seed = drawn["shape"], drawn["dtype"], drawn["seed"]
    arguments: dict[str, Any] = {
        "gradOutput": tensor(shape, dtype, recipe=drawn["g"], seed=seed),
        "output": tensor(shape, dtype, recipe=drawn["y"], seed=seed + 1),
        "dim": drawn["dim"],
        "out": Tensor(shape, dtype),
    }
    case = Case("aclnnSoftmaxBackward", arguments)
    judge = judges.of(load_specs()["aclnnSoftmaxBackward"])
    arrays = case_arrays(case, judge.spec.inputs)
    question = judge.question(PerformedCall(case=case, outcome=Outcome(), arrays=arrays))
    whole = judge.oracle(question)["out"]
    error = bounds(whole)
    assert judge.blocks is not None
    with in_blocks(size), pytest.MonkeyPatch.context() as patch:
        patch.setattr(slices, "_SLICE", size)
        found = list(judge.blocks(question))
    if found == [None]:
        return
    blocks = [block for block in found if block is not None]
    assert [place for block in blocks for place in range(whole.value.size)[block.place]] == list(range(error.size))
    for at, outputs, careful in blocks:
        part = outputs["out"]
        assert np.array_equal(np.ravel(part.value), whole.value.reshape(-1)[at], equal_nan=True)
        assert careful is not None
        both = careful()["out"]
        settled = np.isfinite(error[at]) if both.open is None else ~np.ravel(both.open)
        if with_care(part) == with_care(both):
            assert (bounds(part) <= bounds(both))[settled].all()
        if with_care(both) == with_care(whole):
            assert (bounds(both) <= error[at] * (1.0 + 2.0**-40))[settled].all()


def test_a_large_call_of_softmax_is_judged_in_blocks(judges: Judges, monkeypatch: pytest.MonkeyPatch) -> None:
    shape = (2 * rounding.BLOCK // 512, 512)
    judge = judges.of(load_specs()["aclnnSoftmaxBackward"])
    for dtype in FLOATS[:3]:
        arguments: dict[str, Any] = {
            "gradOutput": tensor(shape, dtype, recipe="normal", seed=1),
            "output": tensor(shape, dtype, recipe="softmax", seed=2, axis=-1),
            "dim": -1,
            "out": Tensor(shape, dtype),
        }
        call = performed(Case("aclnnSoftmaxBackward", arguments), judge)
        as_whole = judge.values(performed(call.case, judge, factor=1.5))
        assert as_whole.result == Result.FAILED
        with monkeypatch.context() as patch:
            patch.setattr(Judge, "_answer", lambda *_: pytest.fail("looked at as a whole"))
            assert judge.values(call).result == Result.PASSED
