"""Invalid and boundary cases: every rule broken alone, beside a valid twin, and every limit met from both sides."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import pytest

from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.case_json import case_id
from aclnn_cts.core.outcome import ANY_ERROR, SUCCESS
from aclnn_cts.core.regime import Regime
from aclnn_cts.core.target import Target
from aclnn_cts.generate.configuration import MAX_DATA_ELEMENTS
from aclnn_cts.generate.negative import boundary_cases, invalid_cases
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.generate.sizes import QUICK, regimes_of
from aclnn_cts.speclang.binding import check_prototype
from aclnn_cts.speclang.evaluate import evaluate, promised_statuses
from aclnn_cts.speclang.kinds import Strength
from aclnn_cts.speclang.model import Constraint
from aclnn_cts.trials.plan import PROFILES
from tests.generate.every_operator import SPECS, each, rules, sampler, spelled, valid_cases
from tests.speclang.small_spec import changed, with_constraint
from tests.support.spec_text import spec_from_text
from tests.support.targets import HUGE

pytestmark = pytest.mark.mechanism

A2 = "atlas-a2"
QUICK_BREAKS = PROFILES["quick"].breaks
NEVER_EMPTY = {
    f"upsample_{stem}": "an empty tensor has a size of 0 in an array, which a listed rule forbids"
    for stem in (
        "bilinear2d_aa_backward",
        "bilinear2d_backward",
        "bilinear2d_backward_v2",
        "bicubic2d_backward",
        "linear1d_backward",
        "nearest3d_backward",
    )
}
EMPTY_ON = {"adaptive_avg_pool3d_backward": "ascend-950"}
"""Operators that have empty calls on this product alone: elsewhere a listed rule forbids a size of 0."""

NEVER = {"nsa_compress_grad": {Regime.TINY}, "max_pool2d_with_mask_backward": {Regime.LONG, Regime.TINY}}
"""A window has 32 rows; a plane has 256 bytes of mask, and two windows of a few elements."""


def demand_isolated(constraint: Constraint, case: Case, twin: Case, empty: AbstractSet[str] = frozenset()) -> None:
    """The rule is broken, nothing else but its group and what goes with it is, and the twin holds all.

    `empty`: what an empty call breaks besides.
    """
    spec = SPECS[case.operator]
    check_prototype(spec, case, where="generated")
    assert evaluate(spec, twin).broken == ()
    evaluation = evaluate(spec, case)
    broken = evaluation.broken
    assert constraint in broken
    beside = [item for item in broken if item.id in constraint.also | empty]
    assert all(item.strength != Strength.LISTED for item in beside)
    others = [item.id for item in broken if item is not constraint and item not in beside]
    assert all(item in beside or item.group == constraint.group is not None or item is constraint for item in broken), (
        others
    )
    promised = promised_statuses((constraint,))
    assert evaluation.statuses == ((*promised, ANY_ERROR) if beside else promised)
    assert case.origin.twin == case_id(twin)
    assert case.origin.constraint == constraint.id
    assert case.origin.change
    assert case_id(case) != case_id(twin)
    assert all(len(tensor.shape) <= 25 for _, tensor in case.tensors())
    # A record keeps explicit values one by one.
    assert all(len(tensor.data.values or ()) <= 1 << 12 for _, tensor in case.tensors() if tensor.data is not None)


@each
def test_every_rule_is_broken_alone_in_calls_of_every_size_regime(stem: str, product: str) -> None:
    """And listed rules in empty calls too, since an implementation that returns early for them has to check first."""
    met: set[Regime] = set()
    tried = 0
    for constraint in rules(stem, product):
        found = list(invalid_cases(sampler(stem, product), constraint, seed=0, count=QUICK_BREAKS))
        assert len(found) == QUICK_BREAKS, constraint.id
        for derived in found:
            demand_isolated(constraint, derived.case, derived.twin, derived.beside)
            assert constraint.id in derived.broken
            assert derived.case.origin.kind == "invalid"
            met.update(regimes_of(tensor.shape for _, tensor in derived.case.tensors()))
        empty = [item for item in found if "in an empty call" in item.change]
        assert constraint.strength == Strength.LISTED or not empty
        for item in empty:
            assert any(0 in tensor.shape for _, tensor in item.case.tensors())
            assert SUCCESS not in evaluate(SPECS.find(stem), item.case).statuses
        tried += bool(empty)
    never = set(QUICK) - {Regime.ALIGNED} if stem in HUGE else NEVER.get(stem, set())
    assert met >= set(QUICK) - never
    is_never_empty = stem in NEVER_EMPTY or EMPTY_ON.get(stem, product) != product
    assert tried == 0 if is_never_empty else tried >= 4


SELDOM_ALONE = {
    "binary_cross_entropy_backward",
    "binary_cross_entropy_with_logits_backward",
    "binary_cross_entropy_with_logits_target_backward",
}
"""Four shapes broadcast with each other there: a change that breaks a rule on one often breaks those on others too."""


@pytest.mark.slow
@each
def test_cases_prefer_values_that_no_other_rule_rejects(stem: str, product: str) -> None:
    """Of any rule that some value breaks alone, half of the cases of a standard plan have such values.

    Where a call leaves out optional tensors, what is said of them rejects no value: calls that give all of them count.
    """
    breaks = PROFILES["standard"].breaks
    optional = [item.name for item in SPECS.find(stem).parameters if item.kind == "tensor" and item.optional]
    for constraint in rules(stem, product):
        found = [
            derived
            for derived in invalid_cases(sampler(stem, product), constraint, seed=0, count=breaks)
            if all(derived.twin.arguments[name] is not None for name in optional)
        ]
        alone = sum(len(derived.broken) == 1 for derived in found)
        on_broadcasts = constraint.id.endswith((".expands", ".broadcast"))
        if not (on_broadcasts and stem in SELDOM_ALONE):
            assert not alone or 2 * alone >= len(found), constraint.id


def test_the_dtype_of_a_bias_is_wrong_alone_in_most_cases_that_break_its_rule() -> None:
    conv = sampler("conv_tbc_backward", A2)
    found = list(invalid_cases(conv, conv.spec.constraint("bias.same_dtype"), seed=0, count=40))
    assert sum(derived.broken == ("bias.same_dtype",) for derived in found) >= 30


def test_a_rank_is_broken_in_small_calls() -> None:
    made = sampler("sigmoid_backward", A2)
    ranks = [constraint for constraint in rules("sigmoid_backward", A2) if constraint.id.endswith(".rank")]
    cases = [found for rank in ranks for found in invalid_cases(made, rank, seed=0, count=QUICK_BREAKS)]
    assert cases
    assert max(max(found.case.nbytes, found.twin.nbytes) for found in cases) < 1 << 25


def test_first_come_the_values_of_neighbours() -> None:
    """Another product's dtype, another tensor's format, one dimension more or less."""

    def first(stem: str, identifier: str, name: str, product: str = A2, count: int = 1) -> list[Tensor]:
        return tensors(stem, identifier, name, product, count)

    assert first("conv_tbc_backward", "self.dtype", "self", "atlas-training")[0].dtype == "BF16"
    assert first("softmax_backward", "output.dtype", "output", "atlas-training")[0].dtype == "BF16"
    assert first("rms_norm_grad", "x.dtype", "x", "atlas-inference")[0].dtype == "BF16"
    assert first("upsample_nearest_exact1d_backward", "gradOutput.format", "gradOutput")[0].format == "NCHW"
    ranks = [len(item.shape) for item in first("conv_tbc_backward", "self.rank", "self", count=2)]
    assert sorted(ranks) == [2, 4]


def test_scales_are_no_numbers_and_infinite() -> None:
    stem = "upsample_nearest_exact1d_backward"
    met = {
        str(case.arguments["scalesOptional"])
        for identifier in ("scalesOptional.negative", "scalesOptional.agrees")
        for case in changes(stem, identifier, count=QUICK_BREAKS)
    }
    assert {"nan", "-inf", "inf"} <= met


def test_input_size_alone_is_wrong_in_batch_and_channels() -> None:
    for axis, identifier in enumerate(("gradOutput.batch", "gradOutput.channels")):
        found = changes("upsample_nearest_exact1d_backward", identifier, count=QUICK_BREAKS)
        alone = 0
        for case in found:
            sizes = case.arguments["inputSize"]
            assert isinstance(sizes, tuple)
            alone += shape(case, "gradOutput")[axis] == shape(case, "out")[axis] != sizes[axis]
        assert alone


def test_sizes_below_zero_agree_where_they_come_from_an_input() -> None:
    for name, of in (("gradInput", "input"), ("gradWeight", "weight")):
        found = changes("conv_tbc_backward", f"{name}.negative", count=QUICK_BREAKS)
        assert any(min(shape(case, name)) < 0 and shape(case, name) == shape(case, of) for case in found)


def test_rstd_is_below_zero_in_some_calls() -> None:
    low = [
        case.arguments["rstd"].data
        for case in valid_cases("rms_norm_grad", A2, 400)
        if isinstance(case.arguments["rstd"], Tensor)
    ]
    assert any(data is not None and data.recipe == "integers" and (data.high or 0) < 0 for data in low)
    assert any(data is not None and data.recipe == "normal" for data in low)


@each
def test_cases_of_a_rule_do_not_depend_on_where_the_count_begins(stem: str, product: str) -> None:
    constraint = rules(stem, product)[-1]
    chosen = sampler(stem, product)
    whole = [spelled(item.case) for item in invalid_cases(chosen, constraint, seed=7, count=6)]
    parts = [
        spelled(item.case)
        for first in (0, 2, 4)
        for item in invalid_cases(chosen, constraint, seed=7, first=first, count=2)
    ]
    assert whole == parts


@each
def test_limits_are_met_from_both_sides(stem: str, product: str) -> None:
    for constraint in rules(stem, product):
        for derived in boundary_cases(sampler(stem, product), constraint, seed=7):
            assert derived.case.origin.kind == "boundary"
            if derived.broken:
                demand_isolated(constraint, derived.case, derived.twin)
            else:
                assert evaluate(SPECS.find(stem), derived.case).broken == ()


def sides(stem: str, identifier: str, product: str = A2) -> tuple[list[Case], list[Case]]:
    """The boundary cases of a rule that hold it, and those that break it."""
    found = list(boundary_cases(sampler(stem, product), SPECS.find(stem).constraint(identifier), seed=7))
    return [item.case for item in found if not item.broken], [item.case for item in found if item.broken]


def shape(case: Case, name: str) -> tuple[int, ...]:
    tensor = case.arguments[name]
    assert isinstance(tensor, Tensor)
    return tensor.shape


def test_kernel_length_and_padding() -> None:
    inside, outside = sides("conv_tbc_backward", "weight.kernel")
    assert {shape(case, "weight")[0] for case in inside} >= {1, 2, 254, 255}
    assert {shape(case, "weight")[0] for case in outside} >= {0, 256}
    inside, outside = sides("conv_tbc_backward", "pad.range")
    assert {case.arguments["pad"] for case in inside} >= {0, 1, 254, 255}
    assert {case.arguments["pad"] for case in outside} >= {-1, 256}


@pytest.mark.parametrize(
    ("identifier", "name"), [("self.dims", "self"), ("input.dims", "input"), ("weight.dims", "weight")]
)
def test_the_largest_sizes_are_descriptors_without_memory(identifier: str, name: str) -> None:
    inside, outside = sides("conv_tbc_backward", identifier)
    assert {size for case in inside for size in shape(case, name)} >= {1, 2147483645, 2147483646}
    assert {size for case in outside for size in shape(case, name)} >= {0, 2147483647}
    for case in (*inside, *outside):
        if max(max(tensor.shape, default=1) for _, tensor in case.tensors()) > MAX_DATA_ELEMENTS:
            assert case.call.phases == 1
            assert all(tensor.data is None for _, tensor in case.tensors())


def test_ranks_around_their_limits() -> None:
    for stem, identifier, name in (
        ("softmax_backward", "gradOutput.rank", "gradOutput"),
        ("embedding_dense_backward", "grad.rank", "grad"),
        ("rms_norm_grad", "x.rank", "x"),
    ):
        inside, outside = sides(stem, identifier)
        assert 8 in {len(shape(case, name)) for case in inside}, stem
        assert 9 in {len(shape(case, name)) for case in outside}, stem


def test_other_limits() -> None:
    inside, outside = sides("upsample_nearest_exact1d_backward", "ratio.shrink")
    assert all(shape(case, "out")[2] < 50 * shape(case, "gradOutput")[2] for case in inside)
    assert {shape(case, "out")[2] - 50 * shape(case, "gradOutput")[2] for case in inside} >= {-1}
    assert {shape(case, "out")[2] - 50 * shape(case, "gradOutput")[2] for case in outside} >= {0, 1}
    inside, outside = sides("rms_norm_grad", "x.lastAxis", "atlas-inference")
    assert {8, 9, 16, 17} <= {shape(case, "x")[-1] for case in inside}
    assert {7, 15} <= {shape(case, "x")[-1] for case in outside}
    inside, outside = sides("embedding_dense_backward", "indices.count")
    assert {shape(case, "grad")[0] for case in inside} == {2139095040}
    assert {shape(case, "grad")[0] for case in outside} == {2139095041}
    inside, outside = sides("softmax_backward", "dim.range")
    assert outside
    for case in (*inside, *outside):
        dim, rank = case.arguments["dim"], len(shape(case, "gradOutput"))
        assert isinstance(dim, int)
        assert (case in inside) is (-rank <= dim <= rank - 1)
    assert {
        shape(case, "gradOutput") and case.arguments["dim"] == len(shape(case, "gradOutput")) for case in outside
    } >= {True}


def changes(stem: str, identifier: str, product: str = A2, count: int = 40) -> list[Case]:
    constraint = SPECS.find(stem).constraint(identifier)
    return [item.case for item in invalid_cases(sampler(stem, product), constraint, seed=3, count=count)]


def numbers(stem: str, identifier: str, name: str) -> set[int]:
    """The values that an attribute takes where its rule is broken."""
    values = [case.arguments[name] for case in changes(stem, identifier)]
    return {value for value in values if isinstance(value, int)}


def tensors(stem: str, identifier: str, name: str, product: str = A2, count: int = 40) -> list[Tensor]:
    values = [case.arguments[name] for case in changes(stem, identifier, product, count)]
    return [value for value in values if isinstance(value, Tensor)]


def test_membership_and_ranges_are_broken_by_near_and_far_values() -> None:
    dtypes = {item.dtype for item in tensors("softmax_backward", "gradOutput.dtype", "gradOutput", "atlas-training")}
    assert {"BF16", "DOUBLE", "INT32", "BOOL", "COMPLEX64"} <= dtypes
    assert not dtypes & {"FLOAT", "FLOAT16"}
    formats = {item.format for item in tensors("conv_tbc_backward", "self.format", "self")}
    assert {"NCHW", "NHWC", "FRACTAL_NZ"} <= formats
    pads = numbers("conv_tbc_backward", "pad.range", "pad")
    assert {-1, 256} <= pads
    assert min(pads) <= -1000
    assert max(pads) >= 1000
    assert {-128, -1, 4, 127} <= numbers("conv_tbc_backward", "cubeMathType.range", "cubeMathType")
    dims = numbers("softmax_backward", "dim.range", "dim")
    assert max(dims) > 2**31
    assert min(dims) < -(2**31)
    arrays = [case.arguments["inputSize"] for case in changes("upsample_nearest_exact1d_backward", "inputSize.length")]
    assert {0, 2, 4, 12} <= {len(array) for array in arrays if isinstance(array, tuple)}


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        # An assignment without a value for a drawing is passed over, not the end of the run.
        ('kind: holds, that: "pad < 8", strength: open, breaks: [{pad: "9 + 1 // (D - D)"}, {pad: 9}]', {"pad": 9}),
        ('kind: holds, that: "pad < 8", strength: open, breaks: [{pad: 100000}, {pad: 9}]', {"pad": 9}),
        ('kind: holds, that: "pad < 8", strength: open, breaks: [{"out[7]": 1}, {pad: 9}]', {"pad": 9}),
        ("kind: range, of: pad, in: [0, 126], strength: open", {"pad": -1}),
        ("kind: range, of: pad, in: [-128, 126], strength: open", {"pad": 127}),
    ],
)
def test_what_makes_no_case_is_passed_over(fields: str, kept: Mapping[str, Any]) -> None:
    text = with_constraint(fields).replace(
        "  - {id: pad.range, kind: range, of: pad, in: [0, 7], strength: limit}\n", ""
    )
    text = text.replace('  params.pad: [{en: "pad.", zh: "pad。", constraints: [pad.range]}]\n', "")
    spec = spec_from_text(text, stem="small")
    chosen = Sampler(spec, Target(spec.usual_product))
    (derived,) = invalid_cases(chosen, spec.constraint("it"), seed=1, count=1)
    assert {name: derived.case.arguments[name] for name in kept} == kept
    assert evaluate(spec, derived.case).statuses == (ANY_ERROR, SUCCESS)


def test_what_cannot_be_proved_is_not_generated() -> None:
    spec = spec_from_text(
        with_constraint('kind: holds, that: "pad < 8", strength: open, breaks: [{pad: 9}]'), stem="small"
    )
    # Whatever exceeds 7 breaks pad.range as well, which belongs to no group with it.
    assert list(invalid_cases(Sampler(spec, Target(spec.usual_product)), spec.constraint("it"), seed=1, count=2)) == []


def test_a_tensor_that_no_valid_call_gives_is_given_with_another_dtype() -> None:
    text = changed(
        "  - {name: out,",
        '  - {name: spare, type: "const aclTensor *", role: input, shape: "[D]", dtypes: floats,'
        " formats: [ND], optional: true, present: false}\n  - {name: out,",
    )
    spec = spec_from_text(changed("  params.out:", "  params.spare: [dtype]\n  params.out:", text=text), stem="small")
    small = Sampler(spec, Target(A2))
    assert len({row["spare"] for row in small.dtype_rows}) == 1, "no row is for its sake"
    cases = list(invalid_cases(small, spec.constraint("spare.dtype"), seed=1, count=4))
    assert len(cases) == 4
    for derived in cases:
        assert derived.twin.arguments["spare"] is None
        spare = derived.case.arguments["spare"]
        assert isinstance(spare, Tensor)
        assert spare.dtype not in ("FLOAT", "BF16")
        assert derived.broken == ("spare.dtype",)
