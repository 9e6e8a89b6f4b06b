"""The second implementations: right by the bound that every implementation is held to, and plain FLOAT arithmetic."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclnn_cts.core.case import Argument, Case, Tensor, owner, real_view
from aclnn_cts.core.dtypes import INEXACT, component
from aclnn_cts.core.expected import OracleInput, one_by_one
from aclnn_cts.core.rounding import BINARY_FORMATS, round_to
from aclnn_cts.core.target import Target
from aclnn_cts.execution.judging import widened
from aclnn_cts.generate.choices import stream_block
from aclnn_cts.generate.recipes import case_arrays
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.judgement.model import precision_of
from aclnn_cts.judgement.operands import known_operands
from aclnn_cts.oracles import _convolution_single, registry
from aclnn_cts.oracles._convolution_single import gradients_in_order
from aclnn_cts.oracles._single_precision import forward_sum
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.speclang.model import Spec
from tests.support.compared import compare

SPECS = load_specs()


def question_of(spec: Spec, case: Case) -> OracleInput:
    tensors = widened(case, case_arrays(case, list(spec.given_inputs(case))))
    return OracleInput(tensors=tensors, arguments=case.arguments, target=case.target, updated=spec.updated(case))


@pytest.mark.mechanism
@pytest.mark.parametrize("operator", list(SPECS))
def test_every_benchmark_is_a_correct_implementation(operator: str) -> None:
    spec = SPECS[operator]
    sampler = Sampler(spec, Target(product=spec.usual_product))
    oracle, benchmark = registry.load(spec.stem), registry.load_benchmark(spec.stem)
    assert benchmark is not None
    judged = 0
    for choices in stream_block(11, "benchmarks", 0, 120):
        case = sampler.case(sampler.draw(choices))
        question = question_of(spec, case)
        outputs = {name: real_view(tensor) for name, tensor in case.tensors() if owner(name) in spec.outputs}
        dtypes = {name: tensor.dtype for name, tensor in outputs.items()}
        promoted = spec.computed_in(case)
        source = (
            component(promoted)
            if promoted is not None
            else next(
                (
                    component(tensor.dtype)
                    for name, tensor in case.tensors()
                    if owner(name) in spec.inputs and tensor.dtype in INEXACT
                ),
                "FLOAT",
            )
        )
        if any(BINARY_FORMATS[name].significand > 24 for name in (source, *dtypes.values())):
            continue  # FLOAT arithmetic is no implementation of it, and no output of it is compared with one.
        # Operands as stored: within the bound of every mode.
        models = precision_of(spec).models(operator=operator, dtypes=dtypes, target=case.target, source=source)
        expected, operands = known_operands(one_by_one(oracle), question, models)
        got = benchmark(question)
        assert set(got) == set(expected)
        for name, tensor in outputs.items():
            assert (got[name].shape, got[name].dtype) == (tensor.shape, np.dtype(np.float32))
            value = got[name].astype(np.float64)
            through = models[name].through
            value = value if through is None else round_to(value, through)
            comparison = compare(
                name, round_to(value, models[name].output), expected[name], models[name], operands=operands[name]
            )
            assert comparison.kind == "", (case, comparison)
            judged += comparison.judged
    assert judged > 1000


def test_sums_are_made_in_order_along_any_axis() -> None:
    generator = np.random.default_rng(5)
    terms = (generator.normal(size=(300, 7)) * 10.0 ** generator.integers(-3, 4, (300, 7))).astype(np.float32)
    total = np.zeros(7, np.float32)
    for row in terms:
        total += row
    assert np.array_equal(forward_sum(terms, axis=0), total[None, :])
    assert np.array_equal(forward_sum(np.ascontiguousarray(terms.T), axis=1), total[:, None])
    assert not np.array_equal(np.add.reduce(np.ascontiguousarray(terms.T), axis=1), total), "NumPy's own sums in pairs"
    assert forward_sum(np.zeros((0, 3), np.float32), axis=0).tolist() == [[0.0, 0.0, 0.0]]


@pytest.mark.parametrize(("length", "width"), [(1000, 3), (40, 13), (5, 9), (7, 7), (1, 4)])
def test_upsampling_adds_each_range_from_its_first_element(length: int, width: int) -> None:
    grad = np.random.default_rng(2).normal(size=(2, 3, length))
    arguments: dict[str, Argument] = {"out": Tensor((2, 3, width), "FLOAT"), "scalesOptional": 0.0}
    benchmark = registry.load_benchmark("upsample_nearest_exact1d_backward")
    assert benchmark is not None
    got = benchmark(OracleInput(tensors={"gradOutput": grad}, arguments=arguments))["out"]
    plain = np.zeros((2, 3, width), np.float32)
    for source in range(length):
        plain[..., (2 * source + 1) * width // (2 * length)] += grad[..., source].astype(np.float32)
    assert np.array_equal(got, plain)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_small_convolution_sums_the_terms_of_the_loops_in_their_order(data: st.DataObject) -> None:
    length, pad = data.draw(st.integers(1, 5)), data.draw(st.integers(0, 7))
    time, batch = data.draw(st.integers(max(1, length - 2 * pad), 9)), data.draw(st.integers(1, 3))
    channels, results = data.draw(st.integers(0, 5)), data.draw(st.integers(0, 5))
    generator = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    grad, x, weight = (
        (generator.normal(size=shape) * 10.0 ** generator.integers(-6, 6, shape)).astype(np.float32)
        for shape in (
            (time + 2 * pad + 1 - length, batch, results),
            (time, batch, channels),
            (length, channels, results),
        )
    )
    found = gradients_in_order(grad, x, weight, pad)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_convolution_single, "_STACKED", 0)
        loops = gradients_in_order(grad, x, weight, pad)
    assert found is not None
    assert loops is not None
    for left, right in zip(found, loops, strict=True):
        assert left.dtype == np.float32
        assert np.array_equal(left, right)


def test_a_convolution_too_large_for_plain_loops_has_the_bias_alone() -> None:
    tensors = {"self": np.ones((2**18, 1, 1)), "input": np.ones((2**18, 1, 1)), "weight": np.ones((1, 1, 1))}
    benchmark = registry.load_benchmark("conv_tbc_backward")
    assert benchmark is not None
    got = benchmark(OracleInput(tensors=tensors, arguments={"pad": 0}))
    assert {name: value.tolist() for name, value in got.items()} == {"gradBias": [2.0**18]}


def test_an_oracle_without_a_benchmark_has_none(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("", encoding="utf-8")
    (tmp_path / "mine.py").write_text("def expected(call):\n    return {}\n", encoding="utf-8")
    assert registry.load_benchmark("mine", folders=[tmp_path]) is None
