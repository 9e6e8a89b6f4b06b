from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import ml_dtypes
import numpy as np
import pytest

from aclnn_cts.adapters.protocol import Call, Capabilities, Inexpressible, Rejected
from aclnn_cts.adapters.results import dtype_fact, outcome_of, perform, run_each, shape_fact
from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.outcome import CallEnd, Outcome
from aclnn_cts.generate.buffers import CallBuffers, prepare


def call_of(dtype: str = "FLOAT", *, strides: tuple[int, ...] | None = None) -> Call:
    case = Case("aclnnX", {"out": Tensor((2, 3), dtype, strides=strides)})
    return Call(case, prepare(case, outputs=frozenset({"out"}), arrays={}))


def buffers_of(call: Call) -> CallBuffers:
    assert isinstance(call.buffers, CallBuffers)
    return call.buffers


@pytest.mark.parametrize("strides", [None, (1, 2), (7, 2)])
def test_results_are_copied_into_the_output_whatever_its_strides(strides: tuple[int, ...] | None) -> None:
    call = call_of(strides=strides)
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    outcome = outcome_of(call, {"out": values})
    assert (outcome.ended, outcome.facts) == (CallEnd.RETURNED, {})
    assert (buffers_of(call).outputs["out"].view == values).all()
    state = buffers_of(call).inspect()["out"]
    assert (state.gap, state.guard_after, state.unwritten) == (0, 0, 0)


def test_a_scalar_array_and_bfloat16() -> None:
    call = call_of("BF16")
    outcome = outcome_of(call, {"out": np.ones((2, 3), ml_dtypes.bfloat16)})
    assert outcome.facts == {}
    assert (buffers_of(call).outputs["out"].view == 1).all()


@pytest.mark.parametrize(
    ("result", "facts"),
    [
        (np.ones((3, 2), np.float32), {shape_fact("out"): "[3, 2]"}),
        (np.ones((1, 3), np.float32), {shape_fact("out"): "[1, 3]"}),
        (np.float32(1), {shape_fact("out"): "[]"}),
        (np.ones((2, 3)), {dtype_fact("out"): "DOUBLE"}),
        (np.ones((2, 3), ml_dtypes.bfloat16), {dtype_fact("out"): "BF16"}),
        (np.ones((2, 3), ml_dtypes.float8_e4m3b11fnuz), {dtype_fact("out"): "float8_e4m3b11fnuz"}),
        ([[1, 2]], {shape_fact("out"): "[1, 2]", dtype_fact("out"): "INT64"}),
    ],
)
def test_another_shape_or_dtype_is_a_fact_and_nothing_is_written(result: object, facts: dict[str, str]) -> None:
    call = call_of()
    outcome = outcome_of(call, {"out": result})  # type: ignore[dict-item]  # what no adapter should give
    assert (outcome.ended, outcome.facts) == (CallEnd.RETURNED, facts)
    assert buffers_of(call).inspect()["out"].unwritten == 6


def test_an_output_without_a_result_stays_unwritten() -> None:
    call = call_of()
    assert outcome_of(call, {}) == Outcome()
    assert buffers_of(call).inspect()["out"].unwritten == 6


def test_a_result_for_no_output_is_the_adapters_mistake() -> None:
    with pytest.raises(KeyError, match="'gradInput' is no output of aclnnX that has memory"):
        outcome_of(call_of(), {"gradInput": np.ones(1)})


def refuse(call: Call) -> Outcome:
    raise ValueError(f"{call.case.operator}: no")


def speechless(call: Call) -> Outcome:
    raise Inexpressible(f"{call.case.operator} is unknown")


def hungry(call: Call) -> Outcome:
    raise MemoryError(call.case.operator)


@pytest.mark.parametrize(
    ("function", "ended", "message"),
    [
        (refuse, CallEnd.RAISED, "ValueError: aclnnX: no"),
        (speechless, CallEnd.INEXPRESSIBLE, "aclnnX is unknown"),
        (hungry, CallEnd.NOT_RUN, "out of memory: aclnnX"),
    ],
)
def test_what_is_raised_becomes_an_outcome(function: Callable[[Call], Outcome], ended: str, message: str) -> None:
    class Mine:
        capabilities = Capabilities()
        environment: Mapping[str, str] = MappingProxyType({})

        def run(self, calls: Sequence[Call]) -> list[Outcome]:
            return [function(call) for call in calls]

        def close(self) -> None: ...

    call = Call(Case("aclnnX", {}))
    for (outcome,) in (run_each([call], function), perform(Mine(), [call])):
        assert (outcome.ended, outcome.message) == (ended, message)


def reject(call: Call) -> Outcome:
    raise Rejected("dim is out of range")


@pytest.mark.parametrize("declared", [True, False])
def test_a_rejection_counts_where_it_is_declared(*, declared: bool) -> None:
    class Mine:
        capabilities = Capabilities(rejections=declared)
        environment: Mapping[str, str] = MappingProxyType({})

        def run(self, calls: Sequence[Call]) -> list[Outcome]:
            return run_each(calls, reject)

        def close(self) -> None: ...

    (outcome,) = perform(Mine(), [Call(Case("aclnnX", {}))])
    assert (outcome.ended, outcome.message, outcome.rejected) == (CallEnd.RAISED, "dim is out of range", declared)


def test_one_refusal_does_not_touch_its_neighbours() -> None:
    outcomes = run_each([call_of(), Call(Case("aclnnY", {}))], lambda call: outcome_of(call, {"out": np.ones((2, 3))}))
    assert [outcome.ended for outcome in outcomes] == [CallEnd.RETURNED, CallEnd.RAISED]
    assert all(outcome.seconds > 0 for outcome in outcomes)
