"""Size regimes: what each draws, and which of them a plan has."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import pytest

from aclnn_cts.core.case import Case
from aclnn_cts.core.regime import Regime
from aclnn_cts.core.target import Target
from aclnn_cts.generate.choices import stream_block
from aclnn_cts.generate.corner_walk import corner_cases
from aclnn_cts.generate.regime_cells import case_regimes, reachable_regimes
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.generate.sizes import QUICK, SHARES, STANDARD, regimes_of
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.speclang.model import Spec
from aclnn_cts.trials.plan import PROFILES, corner_calls
from tests.support.targets import FIXED, HUGE, LEAST_COLUMNS, targets

pytestmark = pytest.mark.mechanism

SPECS = load_specs()
each = pytest.mark.parametrize(("spec", "product"), targets())
# The size of a vocabulary is rare in them: their elements grow with a product of lengths, or many of them go to least
# columns or to two runs of dimensions.
SHORT = {
    *LEAST_COLUMNS,
    *HUGE,
    *(spec.stem for spec in SPECS.values() if spec.stem.startswith("flash_attention")),
    "rms_norm_grad_quant",
    "upsample_bicubic2d_aa_grad",
}


def reached(spec: Spec, regimes: Sequence[Regime]) -> set[Regime]:
    """Those that the document leaves room for."""
    missed = {Regime.TINY, Regime.ODD} if spec.stem in LEAST_COLUMNS else set()
    missed |= {Regime.TINY, Regime.ODD, Regime.EDGE, Regime.WIDE, Regime.LONG} if spec.stem in HUGE else set()
    # Beside 32 columns twice, 64 bytes of mask, 128 classes, or heads of channels, few calls have a thousand rows.
    narrow = (
        "fused_linear_cross_entropy_loss_grad",
        "max_pool2d_with_mask_backward",
        "multi_scale_deformable_attention_grad",
        "swi_glu_grad",
        "swiglu_group_quant_grad",
        # Steps of at most 1 keep planes small.
        "upsample_bicubic2d_aa_grad",
    )
    missed |= {Regime.WIDE} if spec.stem in narrow else set()
    # Rows by classes are bounded, which no tensor of the call may have; windows take what their sequences do not.
    seldom_heavy = ("fused_linear_cross_entropy_loss_grad", "nsa_compress_grad")
    missed |= {Regime.HEAVY} if spec.stem in seldom_heavy else set()
    # Heads, levels and points share what a budget leaves to queries.
    missed |= {Regime.LONG} if spec.stem == "multi_scale_deformable_attention_grad" else set()
    # Two windows of a few elements, and 256 bytes of mask for each plane: no dimension is large.
    missed |= {Regime.LONG, Regime.REAL, Regime.HEAVY} if spec.stem == "max_pool2d_with_mask_backward" else set()
    return set(reachable_regimes(spec, regimes)) - missed


def drawn(sampler: Sampler, name: str) -> list[Case]:
    """The random cases of a profile's plan for values, at seed 0."""
    profile = PROFILES[name]
    stream = f"{sampler.spec.operator}/{sampler.target.product}/valid"
    more = corner_calls(sampler.spec, sampler.target.product, profile) - profile.corners
    blocks = enumerate(stream_block(0, stream, 0, max(0, profile.random - more)))
    return [
        sampler.random_case(choices, number, heavy=profile.heavy, large_calls=profile.heavy)
        for number, choices in blocks
    ]


def planned(sampler: Sampler, name: str) -> Iterator[Case]:
    """Those, and the cases at corners before them."""
    profile = PROFILES[name]
    count = corner_calls(sampler.spec, sampler.target.product, profile)
    yield from corner_cases(sampler, seed=0, first=0, count=count, heavy=profile.heavy)
    yield from drawn(sampler, name)


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ([(1, 2, 3)], {Regime.TINY}),
        ([(5, 13), (13,)], {Regime.ODD}),
        ([(7, 31)], {Regime.ODD, Regime.EDGE}),
        ([(5, 13), (5, 52), (52,)], {Regime.ODD}),
        ([(5, 13), (50,)], set()),
        ([(8, 48)], {Regime.ALIGNED}),
        ([(2, 1000)], {Regime.ALIGNED}),
        ([(2, 4096)], {Regime.ALIGNED, Regime.LONG, Regime.REAL}),
        ([(32, 32, 6)], {Regime.ALIGNED, Regime.WIDE}),
        ([(2, 32_000)], {Regime.ALIGNED, Regime.LONG, Regime.REAL}),
        ([(600, 600)], {Regime.ALIGNED, Regime.HEAVY}),
        ([()], set()),
        ([(0, 8)], set()),
    ],
)
def test_the_regimes_of_shapes(shapes: list[tuple[int, ...]], expected: set[Regime]) -> None:
    assert regimes_of(shapes) == expected


@each
def test_the_quick_plan_has_every_regime_for_every_row_of_dtypes_within_65536_elements(
    spec: Spec, product: str
) -> None:
    sampler = Sampler(spec, Target(product))
    met: dict[tuple[str, ...], Counter[Regime]] = defaultdict(Counter)
    always = [
        item.name for item in spec.parameters if item.kind == "tensor" and not item.optional and item.present is None
    ]
    rows: set[tuple[str, ...]] = set()
    listed = {tuple(row[name] for name in always) for row in sampler.dtype_rows}
    expected = reached(spec, QUICK)
    for case in planned(sampler, "quick"):
        if len(rows) == len(listed) and all(expected <= found.keys() for found in met.values()):
            break
        # A size that is derived from others may leave the limit: a time axis by its padding.
        most = max(((1 << 16) + 3 * 255) * (1 + (spec.stem in LEAST_COLUMNS)), HUGE.get(spec.stem, 0))
        assert max(tensor.numel for _, tensor in case.tensors() if tensor.shape not in FIXED) <= most
        tensors = dict(case.tensors())
        rows.add(tuple(tensors[name].dtype for name in always))
        # Where a document leaves the dtype of an output free, or lets inputs promote, each row has fewer cases.
        inputs = [name for name in always if name in spec.inputs and name not in spec.promoting[1:]]
        met[tuple(tensors[name].dtype for name in inputs)].update(case_regimes(case))
    assert len(rows) == len(listed)
    for row, found in met.items():
        assert expected <= found.keys(), row


@each
def test_cases_are_drawn_for_every_regime(spec: Spec, product: str) -> None:
    sampler = Sampler(spec, Target(product))
    for regime in [regime for regime in STANDARD if regime in reached(spec, STANDARD)]:
        found = [
            case_regimes(sampler.case(sampler.draw(choices, regime=regime)))
            for choices in stream_block(1, f"regime/{regime.value}", 0, 40)
        ]
        assert sum(regime in each for each in found) >= 5, regime


def test_both_channels_of_a_convolution_are_multiples_of_16_in_some_quick_cases() -> None:
    sampler = Sampler(SPECS["aclnnConvTbcBackward"], Target())
    weights = [dict(case.tensors())["weight"].shape for case in planned(sampler, "quick")]
    assert sum(channels % 16 == 0 and outputs % 16 == 0 for _, channels, outputs in weights) >= 3


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(spec, id=spec.stem, marks=() if spec.stem == "softmax_backward" else pytest.mark.slow)
        for spec in SPECS.values()
    ],
)
def test_a_long_plan_has_the_stated_share_of_each_regime(spec: Spec) -> None:
    """Mixed sizes and other regimes are in it too, and not all that are drawn for it."""
    sampler = Sampler(spec, Target(spec.products[-1]))
    assert sum(SHARES.values()) < 1_000
    cases = drawn(sampler, "standard")
    found = Counter(regime for case in cases for regime in case_regimes(case))
    for regime, share in SHARES.items():
        if regime not in reached(spec, STANDARD):
            continue
        # Ten calls of 5,000 are asked to be heavy, and not all of them come out so: one is enough.
        least = 1 if regime is Regime.HEAVY else len(cases) * share / 1_000 / 2
        assert found[regime] >= least, regime
    if spec.stem in SHORT:
        return
    sizes = {size for case in cases for _, tensor in case.tensors() for size in tensor.shape}
    assert max(sizes) >= 1 << (17 if spec.stem == "softmax_backward" else 16)
    assert sizes & {32_000, 151_936}


def test_zeros_come_beside_inf_and_nan() -> None:
    sampler = Sampler(SPECS["aclnnSoftmaxBackward"], Target())
    met = Counter(
        sum(template.recipe in ("zeros", "one_hot") for template in drawing.data.values())
        for drawing in map(sampler.draw, stream_block(3, "special", 0, 2_000))
        if [template.recipe for template in drawing.data.values()].count("special") == 1
    )
    assert met.total() > 50
    assert met[1] > met.total() / 3
