"""What is looked at together comes to what it comes to alone: outputs, calls, and the data of cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from aclnn_cts.core.case import Case, Data, Tensor
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.expected import Expected, OracleInput
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.rounding import to_dtype
from aclnn_cts.core.target import Target
from aclnn_cts.core.verdict import Judged, Result, SkipReason, Verdict
from aclnn_cts.execution.executor import CallPerformer, CallRequest, PerformedCall
from aclnn_cts.execution.judging import Judge, Judges
from aclnn_cts.generate.choices import stream_block
from aclnn_cts.generate.corner_walk import CornerWalk
from aclnn_cts.generate.recipes import RECIPES, case_arrays, many_arrays
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.judgement.compare import compare_all
from aclnn_cts.judgement.comparison import ComparedOutput, OutputComparison
from aclnn_cts.judgement.model import ComputeModel, load_precision, precision_of
from aclnn_cts.sandbox.open_host import open_host
from aclnn_cts.speclang.load import load_specs
from tests.support.counted import counted

SPECS = load_specs()
FEW_SMALL = {"lightning_indexer_grad", "nsa_selected_attention_grad", "sparse_flash_attention_grad"}
"""Operators most of whose calls are large, as heads of 64 to 512 columns make them."""


def model(dtype: str) -> ComputeModel:
    return load_precision().model(
        operator="aclnnSoftmaxBackward", output="out", dtype=dtype, target=Target(product="atlas-a2")
    )


MODELS = {dtype: model(dtype) for dtype in ("FLOAT", "FLOAT16", "BF16")}
values = st.floats(allow_nan=True, allow_infinity=True, width=32)


@st.composite
def outputs(draw: st.DrawFn) -> ComparedOutput:
    """An output of sums, with results near and far, exact or not, some left open, some inf or nan."""
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=3)))
    size = int(np.prod(shape))
    dtype = draw(st.sampled_from(list(MODELS)))
    exact = draw(st.booleans())
    numbers = st.integers(-50, 50).map(float) if exact else values
    value = np.array(draw(st.lists(numbers, min_size=size, max_size=size)), np.float64).reshape(shape)
    finite = np.where(np.isfinite(value), np.abs(value), 0.0)
    error = draw(st.lists(st.sampled_from([0.0, 0.0, 0.0, 1.0, 64.0, 1e9]), min_size=size, max_size=size))
    got = value + np.array(error).reshape(shape) * 2.0**-24 * finite
    opened = draw(st.none() | st.lists(st.booleans(), min_size=size, max_size=size))
    return ComparedOutput(
        output="out",
        got=to_dtype(got, dtype),
        expected=counted(
            value,
            0 if exact else draw(st.integers(0, 9)),
            finite,
            partial=np.where(np.isnan(value), 0.0, np.abs(value)),
            exact=exact,
            open=None if opened is None else np.array(opened, np.bool_).reshape(shape),
        ),
        model=MODELS[dtype],
    )


def told(comparison: OutputComparison) -> tuple[object, ...]:
    deviation = comparison.deviation
    return comparison.kind, comparison.judged, repr(deviation), msgspec.json.encode(deviation)


@settings(max_examples=150, deadline=None)
@given(st.lists(outputs(), min_size=2, max_size=9))
def test_outputs_compared_together_come_to_what_each_comes_to_alone(items: Sequence[ComparedOutput]) -> None:
    alone = [told(compare_all([item])[0]) for item in items]
    assert [told(comparison) for comparison in compare_all(items)] == alone


def test_more_than_are_looked_at_at_once_are_cut_between_outputs() -> None:
    expected = counted(np.ones(40_000), 1)
    item = ComparedOutput(output="out", got=np.ones(40_000, np.float32), expected=expected, model=MODELS["FLOAT"])
    found = compare_all([item, item, item])
    assert [comparison.deviation.elements for comparison in found] == [40_000] * 3
    assert len({told(comparison) for comparison in found}) == 1


def performed(operator: str, count: int) -> list[PerformedCall]:
    """Random cases as the reference answers them; every third output is spoilt in one element."""
    spec = SPECS[operator]
    target = Target(spec.usual_product)
    sampler = Sampler(spec, target)
    cases = [sampler.case(sampler.draw(choices)) for choices in stream_block(5, "together", 0, count)]
    with open_host("reference", target=target, specs=SPECS) as host:
        done = CallPerformer(host=host, specs=SPECS).perform([CallRequest(case) for case in cases])
        done = [
            msgspec.structs.replace(item, got={name: view.copy() for name, view in item.got.items()}) for item in done
        ]
    for item in done[::3]:
        narrow = {name for name, tensor in item.case.tensors() if tensor.dtype == "HIFLOAT8"}
        for name, view in item.got.items():
            if view.size:
                view.reshape(-1)[:1] = to_dtype(np.array([77.0]), "HIFLOAT8") if name in narrow else 77.0
    return done


def judge_of(operator: str) -> Judge:
    return Judges(has_statuses=True).of(SPECS[operator])


@pytest.mark.mechanism
@pytest.mark.parametrize("operator", list(SPECS))
def test_calls_judged_together_have_the_verdicts_that_each_has_alone(operator: str) -> None:
    calls = performed(operator, 40)
    judge = judge_of(operator)
    prepared = judge.with_batch(calls)
    # Large calls are judged alone: more than half of those with masks of 2,048 squares.
    assert len(prepared.answers) >= 10 or SPECS[operator].stem in FEW_SMALL
    verdicts = [prepared.values(item) for item in calls]
    # As text, since a deviation may be of nan, which equals nothing.
    assert list(map(repr, verdicts)) == [repr(judge.values(item)) for item in calls]
    # The first element of a plane, which is made wrong, lies in a window, where the mask decides.
    wanted = {Result.PASSED} | (set() if operator == "aclnnMaxPool2dWithMaskBackward" else {Result.FAILED})
    assert {verdict.result for verdict in verdicts} >= wanted


def test_a_call_that_asks_for_no_output_passes_by_its_form() -> None:
    spec = SPECS["aclnnLayerNormBackward"]
    target = Target(spec.usual_product)
    walk = CornerWalk(Sampler(spec, target), seed=0)
    calls = (walk.next_call() for _ in range(200))
    cases = [call.case for call in calls if ("mask outputMask", "000") in call.corners]
    outputs = tuple(spec.outputs)
    assert {sum(case.tensor(name) is not None for name in outputs) for case in cases} >= {0, len(outputs)}
    with open_host("reference", target=target, specs=SPECS) as host:
        done = CallPerformer(host=host, specs=SPECS).perform([CallRequest(case) for case in cases])
    for has_statuses in (True, False):
        verdicts = map(Judges(has_statuses=has_statuses).of(spec).values, done)
        assert {(verdict.result, verdict.judged) for verdict in verdicts} == {(Result.PASSED, Judged.FORM)}


def test_a_call_that_the_oracle_fails_on_costs_no_other_its_verdict() -> None:
    calls = performed("aclnnSoftmaxBackward", 12)
    judge = judge_of("aclnnSoftmaxBackward")
    bad = calls[4].arrays["output"].shape

    def oracle(call: OracleInput) -> Expected:
        if call.tensors["output"].shape == bad:
            raise RuntimeError("no idea")
        return judge.oracle(call)

    doubtful = replace(judge, oracle=oracle, first=None)
    prepared = doubtful.with_batch(calls)
    assert id(calls[4]) not in prepared.answers
    with pytest.raises(RuntimeError, match="no idea"):
        prepared.values(calls[4])
    others: list[Verdict] = [prepared.values(item) for item in calls if item.arrays["output"].shape != bad]
    assert others == [judge.values(item) for item in calls if item.arrays["output"].shape != bad]


def test_calls_whose_error_is_nan_are_open_and_no_others() -> None:
    calls = performed("aclnnSoftmaxBackward", 6)
    judge = judge_of("aclnnSoftmaxBackward")
    bad = calls[1].arrays["output"].shape

    def oracle(call: OracleInput) -> Expected:
        expected = judge.oracle(call)["out"]
        if call.tensors["output"].shape == bad:
            unknown = np.full(expected.value.shape, np.nan)
            expected = msgspec.structs.replace(expected, error=unknown, exact=False, open=None)
        return {"out": expected}

    prepared = replace(judge, oracle=oracle, first=None).with_batch(calls)
    verdict = prepared.values(calls[1])
    assert (verdict.result, verdict.kind) == (Result.SKIPPED, SkipReason.OPEN)
    assert prepared.values(calls[0]) == judge.values(calls[0])


_DATA = st.one_of(
    st.builds(
        Data,
        recipe=st.just("integers"),
        seed=st.integers(0, 2**64 - 1),
        low=st.none() | st.integers(-(2**40), 0),
        high=st.none() | st.integers(0, 2**40),
        exponent=st.none() | st.integers(-30, 30),
    ),
    st.builds(
        Data,
        recipe=st.just("normal"),
        seed=st.integers(0, 2**64 - 1),
        mean=st.none() | st.floats(-9.0, 9.0),
        std=st.none() | st.floats(0.0, 1e9),
    ),
    st.builds(
        Data,
        recipe=st.just("uniform"),
        seed=st.integers(0, 2**64 - 1),
        low=st.none() | st.integers(-9, 0),
        high=st.none() | st.integers(0, 9),
        exponent=st.none() | st.integers(-30, 30),
    ),
    st.builds(Data, recipe=st.sampled_from(sorted({*RECIPES} - {"rstd"})), seed=st.integers(0, 2**64 - 1)),
    st.builds(Data, recipe=st.just("rstd"), of=st.sampled_from(["x", "y", "z"]), seed=st.integers(0, 2**64 - 1)),
)
_TENSORS = st.builds(
    Tensor,
    st.lists(st.integers(0, 5), max_size=3).map(tuple),
    st.sampled_from(["FLOAT", "FLOAT16", "BF16", "DOUBLE", "INT32", "INT64", "UINT8", "BOOL", "COMPLEX64"]),
    data=_DATA,
)


def made_alone(case: Case) -> dict[str, NDArray[Any]] | UsageError:
    """The contents; the error of those that are computed from themselves, or from what the case does not have."""
    try:
        return case_arrays(case, list(case.arguments))
    except UsageError as error:
        return error


@settings(max_examples=100, deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from(["x", "y", "z"]), _TENSORS, min_size=1), min_size=1, max_size=6))
def test_data_made_together_are_those_made_alone(arguments: list[dict[str, Tensor]]) -> None:
    cases = [Case(operator="aclnnSome", arguments=item) for item in arguments]
    made = many_arrays([(case, list(case.arguments)) for case in cases])
    for case, found in zip(cases, made, strict=True):
        alone = made_alone(case)
        if isinstance(alone, UsageError) or isinstance(found, UsageError):
            assert str(found) == str(alone)
            continue
        assert list(found) == list(alone) == list(case.arguments)
        for name, contents in alone.items():
            assert (found[name].dtype, found[name].shape) == (contents.dtype, contents.shape)
            assert found[name].tobytes() == contents.tobytes()


@pytest.mark.parametrize("source", ["x", "y"])
def test_data_computed_from_the_whole_call_and_from_themselves_are_refused(source: str) -> None:
    tensors = {name: Tensor((3,), "FLOAT", data=Data(recipe="softmax_max")) for name in ("x", "y")}
    reader = Tensor((3,), "FLOAT", data=Data(recipe="mean", of=source))
    case = Case(operator="aclnnSome", arguments={**tensors, "z": reader})
    (made,) = many_arrays([(case, list(case.arguments))])
    assert isinstance(made, UsageError)
    with pytest.raises(UsageError, match="computed from themselves"):
        case_arrays(case, list(case.arguments))


@pytest.mark.parametrize("data", [Data(recipe="normal", low=1), Data(recipe="normal", seed=2**64)])
def test_data_that_mean_nothing_are_told_of_their_own_case(data: Data) -> None:
    right = Case(operator="aclnnSome", arguments={"x": Tensor((3,), "FLOAT", data=Data(recipe="normal", seed=1))})
    wrong = Case(operator="aclnnSome", arguments={"x": Tensor((3,), "FLOAT", data=data)})
    made = many_arrays([(right, ["x"]), (wrong, ["x"]), (right, ["x"])])
    with pytest.raises(UsageError) as told_alone:
        case_arrays(wrong, ["x"])
    assert str(made[1]) == str(told_alone.value)
    assert all(isinstance(item, dict) for item in (made[0], made[2]))


def test_calls_that_a_compute_model_leaves_out_need_not_repeat() -> None:
    """Rows that a resize makes fifty times as many are such ones."""
    spec = SPECS.find("upsample_bicubic2d_backward")
    sampler = Sampler(spec, Target(product="atlas-a2", deterministic=True))
    judge = Judge(spec=spec, oracle=lambda _: {}, precision=precision_of(spec), has_statuses=False)
    case = sampler.case(sampler.draw(next(iter(stream_block(0, "repeat", 0, 1))), budget=64))

    def promised(rows: int) -> frozenset[str]:
        arguments = {**case.arguments, "inputSize": (1, 1, rows, 2), "outputSize": (2, 2)}
        return judge.repeatable_outputs(
            PerformedCall(case=msgspec.structs.replace(case, arguments=arguments), outcome=Outcome(), arrays={})
        )

    assert promised(99) == {"gradInput"}
    assert promised(100) == frozenset()
