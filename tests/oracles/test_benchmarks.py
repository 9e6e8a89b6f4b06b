"""The second implementations: right by the bound that every implementation is held to, and plain FLOAT arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from aclnn_cts.core.case import Argument, Case, Tensor, owner, real_view
from aclnn_cts.core.dtypes import INEXACT, component
from aclnn_cts.core.expected import OracleInput
from aclnn_cts.core.rounding import BINARY_FORMATS, round_to
from aclnn_cts.core.target import Target
from aclnn_cts.execution.judging import as_operands
from aclnn_cts.generate.choices import stream_block
from aclnn_cts.generate.recipes import case_arrays
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.judgement.model import precision_of
from aclnn_cts.judgement.operands import known_operands
from aclnn_cts.oracles import registry
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.speclang.model import Spec
from tests.support.compared import compare

SPECS = load_specs()


def question_of(spec: Spec, case: Case) -> OracleInput:
    tensors = as_operands(case, case_arrays(case, list(spec.given_inputs(case))))
    return OracleInput(
        tensors=tensors, arguments=case.arguments, target=case.target, updated=spec.updated_tensors(case)
    )


@pytest.mark.mechanism
@pytest.mark.parametrize("operator", list(SPECS))
def test_every_benchmark_is_a_correct_implementation(operator: str) -> None:
    spec = SPECS[operator]
    sampler = Sampler(spec, Target(product=spec.usual_product))
    oracle, benchmark = registry.load(spec.stem), registry.load_benchmark(spec.stem)
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
        expected, operands = known_operands(oracle, question, models)
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


@pytest.mark.parametrize(("length", "width"), [(1000, 3), (40, 13), (5, 9), (7, 7), (1, 4)])
def test_upsampling_adds_each_range_from_its_first_element(length: int, width: int) -> None:
    grad = np.random.default_rng(2).normal(size=(2, 3, length))
    arguments: dict[str, Argument] = {"out": Tensor((2, 3, width), "FLOAT"), "scalesOptional": 0.0}
    benchmark = registry.load_benchmark("upsample_nearest_exact1d_backward")
    got = benchmark(OracleInput(tensors={"gradOutput": grad}, arguments=arguments))["out"]
    plain = np.zeros((2, 3, width), np.float32)
    for source in range(length):
        plain[..., (2 * source + 1) * width // (2 * length)] += grad[..., source].astype(np.float32)
    assert np.array_equal(got, plain)
