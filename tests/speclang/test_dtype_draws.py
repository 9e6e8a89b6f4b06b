"""Draws that read dtypes, modes by the dtype that inputs promote to, and ranks and lengths by an expression."""

from __future__ import annotations

import pytest

from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.target import Target
from aclnn_cts.generate.choices import StreamChoices
from aclnn_cts.generate.negative import invalid_cases
from aclnn_cts.generate.recover import recover_drawing
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.evaluate import evaluate
from tests.support.spec_text import spec_from_text

TEXT = """\
operator: aclnnPlainBackward
document: {title: aclnnPlainBackward, language: en}
products: [atlas-a2]
tables: {floats: {atlas-a2: [FLOAT, BF16]}}
parameters:
  - {name: x, type: const aclTensor *, dtypes: floats, shape: "[*A]", rank: [1, 3]}
  - {name: y, type: const aclTensor *, dtypes: floats, shape: "[*A]", promotes_with: x}
  - {name: steps, type: const aclIntArray *, items: "[*S]"}
  - {name: flag, type: bool}
  - {name: mode, type: int, range: [0, 1]}
  - {name: out, type: aclTensor *, same_dtype_as: x, same_shape_as: x}
draws:
  - {run: A, length: [1, 3], sizes: [1, 64]}
  - {run: S, length: [rank(A), rank(A)], sizes: [1, 4]}
  - {name: kind, dtype_of: x}
  - {name: flag, one_of: [kind == BF16, true]}
modes:
  attribute: mode
  by: promote(x, y)
  names: {0: KEEP, 1: NARROW}
  operand: {atlas-a2: {FLOAT: [FLOAT, null], BF16: BF16}}
constraints:
  - {id: y.rank, kind: rank, of: y, is: rank(x)}
  - {id: y.like, kind: shape, of: y, is: "[*x]"}
  - {id: steps.length, kind: length, of: steps, is: rank(x)}
  - {id: x.flag, that: flag or dtype(x) != BF16, breaks: [{flag: false}]}
  - {id: mode.supported, kind: mode}
clauses:
  function: [{say: [y.rank, y.like, steps.length, x.flag, mode.supported], en: It copies., zh: 复制。}]
"""


@pytest.fixture(scope="module")
def sampler() -> Sampler:
    return Sampler(spec_from_text(TEXT, stem="plain_backward"), Target(product="atlas-a2"))


def test_valid_calls_follow_the_dtype_that_a_draw_reads(sampler: Sampler) -> None:
    cases = [sampler.case(sampler.draw(StreamChoices(0, "dtypes", number))) for number in range(200)]
    assert all(not evaluate(sampler.spec, case).broken for case in cases)
    assert {case.arguments["flag"] for case in cases if case.tensor("x").dtype == "FLOAT"} == {False, True}  # type: ignore[union-attr]


def test_modes_go_by_the_dtype_that_inputs_promote_to(sampler: Sampler) -> None:
    met = set()
    for number in range(200):
        case = sampler.case(sampler.draw(StreamChoices(0, "modes", number)))
        dtypes = frozenset(tensor.dtype for name, tensor in case.tensors() if name in ("x", "y"))
        met.add((dtypes, case.arguments["mode"], sampler.spec.mode(case).operand))
    half = frozenset({"BF16"})
    mixed = {(frozenset({"FLOAT"}), 0, "FLOAT"), (frozenset({"FLOAT", "BF16"}), 0, "FLOAT")}
    assert met == mixed | {(half, 0, "BF16"), (half, 1, "BF16")}


@pytest.mark.parametrize("identifier", ["y.rank", "steps.length", "x.flag", "mode.supported"])
def test_rules_on_them_are_broken_alone(sampler: Sampler, identifier: str) -> None:
    constraint = sampler.spec.constraint(identifier)
    found = list(invalid_cases(sampler, constraint, seed=0, count=4))
    assert [item.broken for item in found] == [(identifier,)] * 4


def test_a_case_is_recovered_with_the_dtype_that_a_draw_reads(sampler: Sampler) -> None:
    for number in range(20):
        case = sampler.case(sampler.draw(StreamChoices(0, "recover", number)))
        drawing = recover_drawing(sampler, case)
        assert drawing is not None
        assert drawing.names["kind"] == case.tensor("x").dtype  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("dtype_of: x", "dtype_of: flag", "flag"),
        ("dtype_of: x", "dtype_of: x, in: [0, 1]", "exactly one of in, is, one_of, dtype_of"),
        ("by: promote(x, y)", "by: promote(x, z)", "'z'"),
    ],
)
def test_mistakes_are_named(old: str, new: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        spec_from_text(TEXT.replace(old, new), stem="plain_backward")
