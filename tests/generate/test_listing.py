from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from aclnn_cts.core.case import Case
from aclnn_cts.core.case_json import case_id
from aclnn_cts.core.target import Target
from aclnn_cts.generate.choices import StreamChoices
from aclnn_cts.generate.listing import KINDS, Kind, list_cases
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.evaluate import ConstraintTests, evaluate
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.speclang.model import Spec
from tests.support.spec_text import spec_from_text

TARGET = Target(product="atlas-a2")

TEXT = """\
operator: aclnnCopy
document: {title: aclnnCopy, language: en}
products: [atlas-a2]
defaults: {null: none, strided: none, empty: none, formats: none}
parameters:
  - {name: x, type: "const aclTensor *", role: input, shape: "[N]", dtypes: [FLOAT]}
  - {name: out, type: "aclTensor *", role: output, shape: "[N]", dtype: "as x"}
draws:
  - {name: N, in: [1, 1000]}
constraints:
  - {id: out.shape, kind: shape, of: out, is: "[*x]", strength: limit, unsafe: "it writes beyond its buffer"}
  - {id: x.any, kind: holds, that: "rank(x) == 1", strength: limit, breaks: [{N: 5}]}
  - {id: x.never, kind: range, of: "dim(x, 0) - dim(x, 0)", in: [0, 0], draw: N, strength: limit}
clauses:
  limits: [{en: "All.", zh: "全部。", constraints: [out.shape, x.any, x.never]}]
"""


@pytest.fixture(name="softmax", scope="module")
def load_softmax() -> Spec:
    return load_specs().find("softmax_backward")


def copy(text: str) -> Spec:
    """The spec of a text with the rules that it writes, and no others."""
    spec = spec_from_text(text, stem="copy")
    own = tuple(item for item in spec.constraints if f"id: {item.id}," in text)
    return replace(spec, constraints=own, tests=ConstraintTests(own, spec.products), pointers=())


def listed(spec: Spec, kind: Kind, count: int, unproved: Counter[str] | None = None) -> list[Case]:
    counter = Counter[str]() if unproved is None else unproved
    return list(list_cases(Sampler(spec, TARGET), kind, seed=5, count=count, unproved=counter))


@pytest.mark.parametrize("kind", KINDS)
def test_fewer_cases_are_the_first_of_more(softmax: Spec, kind: Kind) -> None:
    assert [case_id(case) for case in listed(softmax, kind, 10)] == [
        case_id(case) for case in listed(softmax, kind, 30)[:10]
    ]


def test_valid_cases_are_the_streams_own(softmax: Spec) -> None:
    sampler = Sampler(softmax, TARGET)
    for index, case in enumerate(listed(softmax, "valid", 70)):
        choices = StreamChoices(5, "aclnnSoftmaxBackward/atlas-a2/valid", index)
        assert case == sampler.random_case(choices, index)
        assert not evaluate(softmax, case).broken


def test_invalid_cases_take_the_constraints_in_turn(softmax: Spec) -> None:
    order = [constraint.id for constraint in softmax.constraints_for("atlas-a2")]
    cases = listed(softmax, "invalid", 2 * len(order))
    assert [case.origin.constraint for case in cases] == order * 2
    for case in cases:
        assert case.origin.twin is not None
        assert case.origin.constraint in {constraint.id for constraint in evaluate(softmax, case).broken}


def test_boundary_cases_come_all_and_once(softmax: Spec) -> None:
    cases = listed(softmax, "boundary", 10_000)
    assert 0 < len(cases) < 10_000
    assert len({case_id(case) for case in cases}) == len(cases)
    assert {bool(evaluate(softmax, case).broken) for case in cases} == {True, False}


def test_what_cannot_be_proved_is_counted() -> None:
    unproved = Counter[str]()
    cases = listed(copy(TEXT), "invalid", 4, unproved)
    assert [case.origin.constraint for case in cases] == ["out.shape"] * 4
    assert unproved == {"x.any": 3, "x.never": 3}


def test_a_round_without_a_proof_ends_the_enumeration() -> None:
    never = TEXT.replace('kind: shape, of: out, is: "[*x]"', 'kind: holds, that: "rank(out) == 1", breaks: [{N: 7}]')
    unproved = Counter[str]()
    assert listed(copy(never), "invalid", 4, unproved) == []
    assert unproved == {"out.shape": 1, "x.any": 1, "x.never": 1}


def test_an_unsafe_case_says_so() -> None:
    [case] = listed(copy(TEXT), "invalid", 1)
    assert str(case.origin.change).endswith("(unsafe on a device: it writes beyond its buffer)")
