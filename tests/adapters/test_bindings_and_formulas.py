"""Every shipped binding computes what the operator's formula states, on plain calls in FLOAT.

A failure here is a mistake of the binding, or of the formula, and no finding on the library: its calls are contiguous,
finite and ordinary. What they round is not judged.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from aclnn_cts.adapters import bindings
from aclnn_cts.adapters.protocol import Call, Inexpressible, Rejected, Session
from aclnn_cts.adapters.registry import load, parse_adapter_word
from aclnn_cts.core.case import Case
from aclnn_cts.core.dtypes import components
from aclnn_cts.core.outcome import CallEnd
from aclnn_cts.core.rounding import widen
from aclnn_cts.core.target import Target
from aclnn_cts.execution.judging import Judge
from aclnn_cts.findings.waivers.file import read_waivers, shipped_waivers
from aclnn_cts.generate.buffers import prepare
from aclnn_cts.generate.choices import stream_block
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.judgement.model import precision_of
from aclnn_cts.oracles import registry
from aclnn_cts.selftest.subject import Subject, with_data
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.speclang.model import Spec

torch_adapter = pytest.importorskip("aclnn_cts.adapters.torch_adapter")
pytest.importorskip("torch", reason="torch is not installed: pip install 'aclnn-cts[torch]'")

SPECS = load_specs()
BOUND = sorted(SPECS.keys() & bindings.shipped_bindings("torch").keys())
CALLS = 12
LOOKED_AT = 400
WAIVERS = [
    item
    for item in read_waivers(shipped_waivers(), pinned=False)
    if "rejected" in (item.scope.kind or ()) or item.id.endswith((".same-size", ".corners"))
]
"""Whose `when` admits calls that the library refuses, or resizes that ignore a scale or do not align corners."""
KNOWN_REFUSALS = ("pad should be at most half of effective kernel size", "could not create a primitive descriptor")
"""torch's pooling takes no larger padding, and its gelu_backward no shapes that broadcast; waivers know them."""
HALVES = frozenset(
    {
        "aclnnFlashAttentionUnpaddingScoreGradV3",
        "aclnnFusedLinearCrossEntropyLossGrad",
        "aclnnNsaSelectedAttentionGrad",
    }
)
"""No call of these is in FLOAT alone."""
AT_BORDERS = frozenset({"aclnnHardswishBackward", "aclnnHardtanhBackward"})
"""Where an element meets a border, torch counts it to the other side: findings with a waiver."""
LARGEST = 100.0
"""Of the inputs."""
SLACK = 2.0**-8
"""Of the magnitude of an output, and its inverse times the bound: above what FLOAT rounds, below a wrong term."""


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    opened = load(parse_adapter_word("torch")).open(Target(), SPECS)
    yield opened
    opened.close()


def plain_calls(spec: Spec) -> Iterator[Case]:
    """Valid calls in FLOAT alone, contiguous and small."""
    sampler = Sampler(spec, Target(product=spec.usual_product))
    for choices in stream_block(0, f"{spec.operator}/bindings", 0, LOOKED_AT):
        case = sampler.case(sampler.draw(choices, budget=64))
        tensors = [tensor for _, tensor in case.tensors()]
        others = {"FLOAT16", "BF16", "DOUBLE", "COMPLEX64", "COMPLEX128"}
        floating = set() if spec.operator in HALVES else {tensor.dtype for tensor in tensors} & others
        # With a beta of 0 torch takes equal elements for smaller: a finding with a waiver.
        is_known = (
            case.arguments.get("beta") == 0.0
            or any(
                spec.operator in (waiver.scope.operator or ()) and waiver.when is not None and waiver.when(case)
                for waiver in WAIVERS
            )
            or (
                spec.operator in AT_BORDERS
                and any(
                    tensor.data is not None and tensor.data.recipe not in ("normal", "uniform") for tensor in tensors
                )
            )
        )
        if (
            case.call.phases == 2
            and not is_known
            and not floating
            and all(tensor.strides is None for tensor in tensors)
        ):
            yield case


@pytest.mark.parametrize("operator", BOUND)
def test_a_binding_computes_the_formula(session: Session, operator: str) -> None:
    spec = SPECS[operator]
    formula, oracle = registry.load_formula(spec.stem), registry.load(spec.stem)
    judge = Judge(spec=spec, oracle=oracle, precision=precision_of(spec), has_statuses=False)
    if formula is None:
        pytest.skip(f"{spec.stem} states no formula")
    compared = 0
    for case in plain_calls(spec):
        performed = with_data(spec, case)
        question = judge.question(performed)
        models = judge.models(performed)
        buffers = prepare(case, outputs=frozenset(models), arrays=performed.arrays)
        try:
            [outcome] = session.run([Call(case, buffers)])
        except (Inexpressible, Rejected):
            continue
        subject = Subject.of(formula, oracle, question, models)
        is_open = all(item.open is not None and item.open.all() for item in subject.expected.values())
        refused = any(words in (outcome.message or "") for words in KNOWN_REFUSALS)
        if outcome.ended == CallEnd.INEXPRESSIBLE or is_open or refused:
            continue
        assert outcome.ended == CallEnd.RETURNED, f"{outcome.message}: {case}"
        if not all(
            (np.abs(array) <= LARGEST).all() for array in question.tensors.values() if array.dtype == np.float64
        ):
            continue
        compared += 1
        for name, limits in subject.bounds.items():
            expected = subject.expected[name]
            got = widen(components(buffers.outputs[name].view))
            value = np.broadcast_to(expected.value, got.shape)
            decided = np.isfinite(value) & ~np.broadcast_to(
                False if expected.open is None else expected.open, got.shape
            )
            whole = buffers.outputs[name].view.dtype.kind in "iu"
            if whole:  # what an integer beyond its range becomes is open
                decided &= np.abs(value) <= np.iinfo(buffers.outputs[name].view.dtype).max
            size = max(float(np.abs(value[decided]).max(initial=0.0)), 1e-30)
            margin = np.maximum(SLACK * size, np.asarray(limits.error) / SLACK)
            margin = margin + 1.0 if whole else margin  # either integer beside a fraction
            with np.errstate(invalid="ignore"):
                wrong = np.argwhere(decided & ~(np.abs(got - value) <= margin))
            assert not len(wrong), (
                f"{name}{wrong[0].tolist()}: {got[tuple(wrong[0])]} for {value[tuple(wrong[0])]}: {case}"
            )
        if compared == CALLS:
            return
    assert compared, "torch took no call"


def test_every_operator_with_a_formula_is_bound_or_known_to_be_without() -> None:
    assert set(itertools.filterfalse(BOUND.__contains__, SPECS)) == {
        "aclnnLightningIndexerGrad",
        "aclnnMoeFinalizeRoutingV2Grad",
        "aclnnMoeInitRoutingV2Grad",
        "aclnnMoeTokenPermuteGrad",
        "aclnnMoeTokenPermuteWithEpGrad",
        "aclnnMoeTokenPermuteWithRoutingMapGrad",
        "aclnnMoeTokenUnpermuteGrad",
        "aclnnMoeTokenUnpermuteWithEpGrad",
        "aclnnMoeTokenUnpermuteWithRoutingMapGrad",
        "aclnnMultiScaleDeformableAttentionGrad",
        "aclnnNormRopeConcatBackward",
        "aclnnNsaCompressGrad",
        "aclnnRmsNormGradQuant",
        "aclnnRoiAlignV2Backward",
        "aclnnSituGluGrad",
        "aclnnSparseFlashAttentionGrad",
        "aclnnSparseLightningIndexerGradKLLoss",
        "aclnnSwigluBackwardMxQuantWithDualAxis",
        "aclnnSwigluGroupGrad",
        "aclnnSwigluGroupQuantGrad",
    }
