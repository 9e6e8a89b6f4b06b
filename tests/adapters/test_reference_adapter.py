from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from aclnn_cts.adapters.protocol import Call
from aclnn_cts.adapters.reference import ReferenceAdapter
from aclnn_cts.core.case import Argument, CallOptions, Case, Data, Tensor
from aclnn_cts.core.outcome import STATUSES, CallEnd, Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.generate.buffers import CallBuffers, prepare
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.speclang.model import Spec
from tests.support.spec_text import spec_from_text

OUTPUTS = frozenset({"out"})
LOOSE = """
operator: aclnnSoftmaxBackward
document: {title: x, language: en, sha256: "0000000000000000000000000000000000000000000000000000000000000000"}
products: [atlas-a2]
defaults: {null: none, strided: none, empty: none, formats: none}
tables: {floats: {atlas-a2: [FLOAT]}}
parameters:
  - {name: gradOutput, type: "const aclTensor *", role: input, shape: "[*A]", dtypes: floats}
  - {name: output, type: "const aclTensor *", role: input, shape: "[*A]", dtypes: floats}
  - {name: dim, type: int64_t, role: attribute}
  - {name: out, type: "aclTensor *", role: output, shape: "[*A]", dtypes: floats}
draws:
  - {run: A, length: [1, 3], sizes: [1, 10]}
  - {name: dim, in: [0, 0]}
constraints:
  - {id: dim.open, kind: range, of: dim, in: [0, 0], strength: open}
  - {id: gradOutput.limit, kind: dims, of: gradOutput, in: [1, 10], strength: limit}
  - {id: gradOutput.rank, kind: rank, of: gradOutput, in: [1, 3], strength: listed,
     status: ACLNN_ERR_INNER_TILING_ERROR}
clauses:
  limits:
    - {en: "Three rules.", zh: "三条规则。", constraints: [dim.open, gradOutput.limit, gradOutput.rank]}
"""


def case(**changes: Argument) -> Case:
    arguments: dict[str, Argument] = {
        "gradOutput": Tensor((2, 2), "FLOAT", data=Data(values=(1, 2, 3, 5))),
        "output": Tensor((2, 2), "FLOAT", data=Data(values=(0.25, 0.75, 0.5, 0.5))),
        "dim": -1,
        "out": Tensor((2, 2), "FLOAT"),
    }
    return Case("aclnnSoftmaxBackward", arguments | changes)


def prepared(it: Case) -> CallBuffers:
    arrays = {
        name: np.array(tensor.data.values, np.float32).reshape(tensor.shape)
        for name, tensor in it.tensors()
        if tensor.data is not None and tensor.data.values is not None and tensor.dtype == "FLOAT"
    }
    return prepare(it, outputs=OUTPUTS, arrays=arrays)


def run(it: Case, specs: Mapping[str, Spec] | None = None, *, buffers: CallBuffers | None = None) -> Outcome:
    session = ReferenceAdapter().open(Target(), load_specs() if specs is None else specs)
    (outcome,) = session.run([Call(it, buffers)])
    session.close()
    return outcome


def loose() -> Mapping[str, Spec]:
    spec = spec_from_text(LOOSE, stem="softmax_backward")
    return {spec.operator: spec}


@pytest.mark.parametrize("strides", [None, (1, 2), (9, 3)])
def test_values_come_from_the_oracle(strides: tuple[int, ...] | None) -> None:
    it = case(out=Tensor((2, 2), "FLOAT", strides=strides))
    buffers = prepared(it)
    outcome = run(it, buffers=buffers)
    assert (outcome.ended, outcome.phase_one, outcome.phase_two) == (CallEnd.RETURNED, 0, 0)
    assert buffers.outputs["out"].view.tolist() == [[-0.1875, 0.1875], [-0.5, 0.5]]
    assert not any(state.gap or state.guard_after or state.changed for state in buffers.inspect().values())


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"gradOutput": None}, "ACLNN_ERR_PARAM_NULLPTR"),
        ({"out": None}, "ACLNN_ERR_PARAM_NULLPTR"),
        ({"dim": 2}, "ACLNN_ERR_PARAM_INVALID"),
        ({"gradOutput": Tensor((2, 2), "INT8")}, "ACLNN_ERR_PARAM_INVALID"),
    ],
)
def test_a_broken_rule_gets_its_documented_status_and_nothing_is_written(
    changes: dict[str, Argument], status: str
) -> None:
    it = case(**changes)
    buffers = prepared(it)
    outcome = run(it, buffers=buffers)
    assert (outcome.phase_one, outcome.phase_two) == (STATUSES[status], None)
    assert all(state.unwritten == 4 for name, state in buffers.inspect().items() if name == "out")
    assert run(it).phase_one == STATUSES[status]


def test_the_first_phase_alone_computes_nothing() -> None:
    it = case()
    assert run(it).phase_one == 0
    once = Case(it.operator, it.arguments, call=CallOptions(phases=1))
    buffers = prepared(once)
    outcome = run(once, buffers=buffers)
    assert (outcome.phase_one, outcome.phase_two) == (0, None)
    assert buffers.inspect()["out"].unwritten == 4


def test_limits_are_kept_and_tiling_has_its_own_code() -> None:
    wide = Tensor((20, 2), "FLOAT")
    assert run(case(gradOutput=wide, dim=0), loose()).phase_one == STATUSES["ACLNN_ERR_PARAM_INVALID"]
    deep = Tensor((2, 2, 2, 2), "FLOAT")
    assert run(case(gradOutput=deep, dim=0), loose()).phase_one == STATUSES["ACLNN_ERR_INNER_TILING_ERROR"]


def test_what_is_open_succeeds_where_it_has_a_value() -> None:
    it = case(dim=1)
    buffers = prepared(it)
    assert run(it, loose(), buffers=buffers).status == 0
    assert buffers.outputs["out"].view.tolist() == [[-0.1875, 0.1875], [-0.5, 0.5]]
    without = case(dim=7)
    buffers = prepared(without)
    outcome = run(without, loose(), buffers=buffers)
    assert outcome.phase_one == STATUSES["ACLNN_ERR_PARAM_INVALID"]
    assert buffers.inspect()["out"].unwritten == 4


def test_another_product_or_operator_is_not_documented() -> None:
    it = case()
    elsewhere = Case(it.operator, it.arguments, target=Target(product="atlas-inference"))
    assert run(elsewhere, loose()).ended == CallEnd.INEXPRESSIBLE
    assert run(Case("aclnnUnknown", {})).ended == CallEnd.INEXPRESSIBLE


def test_null_pointers_of_the_call_itself() -> None:
    it = case()
    for pointer in ("workspaceSize", "executor"):
        null = Case(it.operator, it.arguments, call=CallOptions(null=(pointer,)))
        assert run(null).phase_one == STATUSES["ACLNN_ERR_PARAM_NULLPTR"]
