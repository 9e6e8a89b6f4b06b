from __future__ import annotations

import pytest

from aclnn_cts.core.case_json import case_id
from aclnn_cts.core.target import Target
from aclnn_cts.generate.choices import StreamChoices
from aclnn_cts.generate.listing import KINDS, Kind, ListedCase, case_stream
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.speclang.model import Spec
from tests.support.spec_text import spec_from_text

TARGET = Target(product="atlas-a2")

TEXT = """\
operator: aclnnCopy
document: {title: aclnnCopy, language: en}
products: [atlas-a2]
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
  - {at: limits.1, en: "All.", zh: "全部。", constraints: [out.shape, x.any, x.never]}
"""


@pytest.fixture(name="softmax", scope="module")
def load_softmax() -> Spec:
    return load_specs().find("softmax_backward")


def listed(spec: Spec, kind: Kind, count: int | None, *, first: int = 0) -> list[ListedCase]:
    return list(case_stream(spec, TARGET, kind, seed=5, count=count, first=first))


@pytest.mark.parametrize("kind", KINDS)
def test_a_part_is_what_the_whole_has_there(softmax: Spec, kind: Kind) -> None:
    whole = listed(softmax, kind, 30)
    part = listed(softmax, kind, 10, first=20)
    assert [(item.index, case_id(item.case)) for item in part] == [
        (item.index, case_id(item.case)) for item in whole[20:]
    ]


def test_valid_cases_are_the_streams_own(softmax: Spec) -> None:
    sampler = Sampler(softmax, TARGET)
    for item in listed(softmax, "valid", 70):
        choices = StreamChoices(5, "aclnnSoftmaxBackward/atlas-a2/valid", item.index)
        assert item.case == sampler.random_case(choices, item.index)
        assert not evaluate(softmax, item.case).broken


def test_invalid_cases_take_the_constraints_in_turn(softmax: Spec) -> None:
    order = [constraint.id for constraint in softmax.constraints_for("atlas-a2")]
    cases = listed(softmax, "invalid", 2 * len(order))
    assert [item.constraint.id for item in cases if item.constraint is not None] == order * 2
    for item in cases:
        assert item.twin is not None
        assert not evaluate(softmax, item.twin).broken
        assert item.case.origin.twin == case_id(item.twin)
        assert item.case.origin.constraint in item.broken
        assert item.broken == tuple(constraint.id for constraint in evaluate(softmax, item.case).broken)


def test_boundary_cases_come_all_and_once(softmax: Spec) -> None:
    cases = listed(softmax, "boundary", None)
    assert [item.index for item in cases] == list(range(len(cases)))
    assert len(listed(softmax, "boundary", len(cases) + 5)) == len(cases)
    assert {bool(item.broken) for item in cases} == {True, False}


def test_what_cannot_be_proved_is_counted() -> None:
    spec = spec_from_text(TEXT, stem="copy")
    stream = case_stream(spec, TARGET, "invalid", seed=0, count=4)
    cases = list(stream)
    assert [item.index for item in cases] == [0, 3, 6, 9]
    assert stream.proved == {"out.shape": 4}
    assert stream.unproved == {"x.any": 3, "x.never": 3}


def test_a_round_without_a_proof_ends_the_enumeration() -> None:
    never = TEXT.replace('kind: shape, of: out, is: "[*x]"', 'kind: holds, that: "rank(out) == 1", breaks: [{N: 7}]')
    stream = case_stream(spec_from_text(never, stem="copy"), TARGET, "invalid", seed=0, count=4)
    assert list(stream) == []
    assert stream.unproved == {"out.shape": 1, "x.any": 1, "x.never": 1}


def test_an_unsafe_case_says_so_and_its_twin_does_not() -> None:
    spec = spec_from_text(TEXT, stem="copy")
    case = next(iter(case_stream(spec, TARGET, "invalid", seed=0, count=1)))
    assert str(case.case.origin.change).endswith("(unsafe on a device: it writes beyond its buffer)")
    assert case.twin is not None
    assert case.twin.origin.change is None


def test_an_endless_enumeration_is_refused(softmax: Spec) -> None:
    with pytest.raises(ValueError, match="no end"):
        case_stream(softmax, TARGET, "invalid", seed=0, count=None)
