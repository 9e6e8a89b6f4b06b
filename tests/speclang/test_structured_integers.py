"""Integers with a structure in specs: segments, permutations, int arrays that add up, layouts named by a text."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import pytest

from aclnn_cts.core.case import Data, Tensor, replace_arguments
from aclnn_cts.core.target import Target
from aclnn_cts.generate.choices import StreamChoices
from aclnn_cts.generate.negative import invalid_cases
from aclnn_cts.generate.recipes import case_arrays
from aclnn_cts.generate.recover import recover_drawing
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.generate.sizes import divide_total
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.speclang.model import Spec
from tests.speclang.small_spec import changed, messages, with_constraint
from tests.support.drawn import drawn

FOLDER = Path(__file__).parents[1] / "fixtures" / "segments"


@pytest.fixture(scope="module")
def spec() -> Spec:
    return load_specs([FOLDER])["aclnnSegmentSumGrad"]


@pytest.fixture(scope="module")
def sampler(spec: Spec) -> Sampler:
    return Sampler(spec, Target(product="atlas-a2"))


def test_valid_calls_hold_what_their_arrays_hold(spec: Spec, sampler: Sampler) -> None:
    layouts: Counter[object] = Counter()
    for case in drawn(sampler, 60, stream="segments", seed=7):
        assert not evaluate(spec, case).broken
        found = case_arrays(case, spec.inputs)
        total, segments = case.arguments["T"], found["gradOut"].shape[0]
        assert (found["offsets"][0], found["offsets"][-1], found["ends"][-1]) == (0, total, total)
        assert (found["lengths"].sum(axis=1) == total + segments).all()
        assert found["lengths"].min() >= 1
        assert (found["used"].sum(axis=0) <= total).all()
        assert sorted(found["order"].tolist()) == list(range(total))  # type: ignore[arg-type]
        assert all(len(set(line)) == len(line) for line in found["chosen"].tolist())
        lengths, ends = case.arguments["seqLen"], case.arguments["actualSeqLen"]
        assert isinstance(lengths, tuple)
        assert isinstance(ends, tuple)
        assert sum(lengths) == total
        assert tuple(itertools.accumulate(lengths)) == ends
        layouts[case.arguments["layout"], len(case.arguments["gradX"].shape)] += 1  # type: ignore[union-attr]
        assert recover_drawing(sampler, case) is not None
    assert set(layouts) == {("TND", 3), ("NTD", 3), ("TH", 2)}


def test_every_rule_is_broken_as_its_arrays_are(spec: Spec, sampler: Sampler) -> None:
    for constraint in spec.constraints:
        if constraint.id.startswith("interface."):
            continue
        found = list(invalid_cases(sampler, constraint, seed=3, count=6))
        assert found, constraint.id
        for derived in found:
            assert constraint.id in derived.broken
            if constraint.id == "ends.structure":
                ends, total = case_arrays(derived.case, ["ends"])["ends"].tolist(), derived.case.arguments["T"]
                assert ends[-1] != total or sorted(ends) != ends or ends[0] < 0


@pytest.mark.parametrize(
    ("name", "values", "holds"),
    [
        ("offsets", (0, 2, 2, 5), True),
        ("offsets", (1, 2, 2, 5), False),
        ("offsets", (0, 3, 2, 5), False),
        ("offsets", (0, 2, 2, 4), False),
        ("ends", (0, 2, 5), True),
        ("ends", (-1, 2, 5), False),
        ("lengths", (2, 1, 5, 3, 3, 2), True),
        ("lengths", (2, 1, 5, 4, 4, 0), False),
        ("lengths", (2, 1, 4, 3, 3, 2), False),
        ("used", (5, 0, 0, 0, 0, 3), True),
        ("used", (5, 0, 1, 0, 0, 3), False),
        ("order", (4, 0, 2, 1, 3), True),
        ("order", (4, 0, 2, 1, 1), False),
        ("order", (5, 1, 2, 4, 3), False),
        ("chosen", (4, 0, 2, 1, 3, 4), True),
        ("chosen", (4, 0, 2, 2, 3, 4), False),
        ("chosen", (5, 0, 2, 1, 3, 4), False),
        ("chosen", (-1, 0, 2, 1, 3, 4), False),
    ],
)
def test_written_values_are_held_to_the_rule(
    spec: Spec,
    sampler: Sampler,
    name: str,
    values: tuple[int, ...],
    holds: bool,
) -> None:
    choices = (StreamChoices(1, "written", number) for number in itertools.count())
    case = next(
        case
        for case in map(sampler.case, map(sampler.draw, choices))
        if case.arguments["T"] == 5 and case.tensor("gradOut") is not None
    )
    # Of three segments and two columns; the other rules of the call are not looked at.
    shapes = {"gradOut": (3, 2), "offsets": (4,), "ends": (3,), "lengths": (2, 3), "used": (3, 2), "order": (5,)}
    shapes["chosen"] = (3, 2)
    changes = {key: Tensor(shape, "INT64", data=Data(recipe="zeros")) for key, shape in shapes.items()}
    changes[name] = Tensor(shapes[name], "INT64", data=Data(values=values))
    arguments = replace_arguments(case.arguments, changes)
    rule = spec.constraint(f"{name}.structure").rule
    assert rule.test(arguments, case.target) is holds
    # Other contents are taken for broken, and a recipe for what it makes.
    changes[name] = Tensor(shapes[name], "INT64", data=Data(recipe="integers"))
    assert rule.test(replace_arguments(case.arguments, changes), case.target) is False


REGIONS = load_specs()["aclnnRoiAlignV2Backward"]


@pytest.mark.parametrize(
    ("values", "images", "corners"),
    [
        ((0, 0, 0, 0, 0, 1.75, 1, 0.5, 6, 4), True, True),
        ((0, 0, 0, 0, 0, 2, 0, 0, 6, 4), False, True),
        ((-0.25, 0, 0, 0, 0, 1, 0, 0, 6, 4), False, True),
        ((0, 0, 0, 0, 0, 1, 0, 0, 6.25, 4), True, False),
        ((0, 0, 0, 0, 0, 1, 0, 0, 4, 6), True, False),
        ((0, 3, 0, 2, 0, 1, 0, 0, 6, 4), True, False),
        ((0, 0, 3, 0, 2, 1, 0, 0, 6, 4), True, False),
        ((0, 0, -1, 0, 2, 1, 0, 0, 6, 4), True, False),
    ],
)
def test_regions_have_a_rule_on_their_index_and_one_on_their_corners(
    values: tuple[float, ...], images: bool, corners: bool
) -> None:
    """Of two images, 2 high and 3 wide, with a scale of 1/2."""
    arguments = {
        "boxes": Tensor((2, 5), "FLOAT", data=Data(values=values)), "inputShape": (2, 1, 2, 3), "spatialScale": 0.5,
    }  # fmt: skip
    rules = [REGIONS.constraint(f"boxes.{name}").rule for name in ("images", "corners")]
    assert [rule.test(arguments, Target(product="atlas-a2")) for rule in rules] == [images, corners]


def test_rules_on_regions_are_broken_alone() -> None:
    sampler = Sampler(REGIONS, Target(product="atlas-a2"))
    for name in ("boxes.images", "boxes.corners"):
        found = list(invalid_cases(sampler, REGIONS.constraint(name), seed=3, count=12))
        assert found
        assert {derived.broken for derived in found} == {(name,)}


def test_a_total_is_divided_into_any_lengths() -> None:
    found = Counter(divide_total(StreamChoices(0, "divided", number), 3, 2, 0) for number in range(400))
    assert set(found) == {(0, 3), (1, 2), (2, 1), (3, 0)}
    assert divide_total(StreamChoices(0, "divided", 0), 7, 0, 0) == ()
    assert sum(divide_total(StreamChoices(0, "divided", 0), 2, 4, 1)) == 2
    for number in range(50):
        assert min(divide_total(StreamChoices(0, "least", number), 20, 4, 3)) >= 3


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ("kind: structure, of: x, strength: limit", "as: missing; expected one of offsets, ends, lengths"),
        ("kind: structure, of: x, as: end, is: 4, strength: limit", "unknown structure 'end'"),
        ("kind: structure, of: x, as: ends, strength: limit", "is: missing; say what the lengths of ends add up to"),
        ("kind: structure, of: pad, as: ends, is: 4, strength: limit", "pad is of kind int; structure takes tensor"),
        ("kind: structure, of: x, as: ends, is: 4, in: [0, 3], strength: limit", "expected [LEAST, null]"),
        ("kind: structure, of: x, as: regions, in: [4, null], strength: limit", "expected [HEIGHT, WIDTH] of the map"),
        ("kind: structure, of: x, as: regions, in: [4, 5], is: 3, strength: limit", "beside `in`; write two rules"),
        ('kind: holds, that: "sum(x) > 2", breaks: [{D: 3}], strength: limit', "sum(x): x is a tensor; expected"),
        ('kind: holds, that: "sum(pad) > 2", breaks: [{D: 3}], strength: limit', "sum(pad): pad is a number; expected"),
        ('kind: shape, of: out, is: "[*sums(pad)]", strength: limit', "sums(pad): pad is a number; expected"),
    ],
)
def test_mistakes_are_told(fields: str, message: str) -> None:
    assert any(message in text for text in messages(with_constraint(fields))), messages(with_constraint(fields))


def test_sizes_with_a_total_have_no_upper_bound() -> None:
    text = changed("{run: A, length: [0, 3], sizes: [1, 9]}", '{run: A, length: [0, 3], total: "7", sizes: [1, 9]}')
    assert any("sizes with a total have no upper bound" in item for item in messages(text))
