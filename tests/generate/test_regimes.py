"""Size regimes: what each draws, which of them a plan has, and that every two features of random cases meet."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Sequence

import pytest

from aclnn_cts.core.case import Case
from aclnn_cts.core.dtypes import INEXACT
from aclnn_cts.core.regime import Regime
from aclnn_cts.core.target import Target
from aclnn_cts.generate.choices import stream_block
from aclnn_cts.generate.configuration import DATA_KINDS, VIEWS
from aclnn_cts.generate.regime_cells import case_regimes, reachable
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.generate.sizes import QUICK, SHARES, STANDARD, regimes_of
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.speclang.model import Spec
from aclnn_cts.trials.plan import PROFILES
from tests.support.targets import LEAST_COLUMNS, targets

SPECS = load_specs()
each = pytest.mark.parametrize(("spec", "product"), targets())


def reached(spec: Spec, regimes: Sequence[Regime]) -> set[Regime]:
    """Those that the document leaves room for."""
    return set(reachable(spec, regimes)) - ({Regime.TINY, Regime.ODD} if spec.stem in LEAST_COLUMNS else set())


def planned(sampler: Sampler, name: str) -> list[Case]:
    """The random cases of a profile's plan for values, at seed 0."""
    profile = PROFILES[name]
    stream = f"{sampler.spec.operator}/{sampler.target.product}/valid"
    blocks = enumerate(stream_block(0, stream, 0, profile.random))
    return [sampler.random_case(choices, number, heavy=profile.heavy) for number, choices in blocks]


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
    for case in planned(sampler, "quick"):
        # A size that is derived from others may leave the limit: a time axis by its padding.
        assert max(tensor.numel for _, tensor in case.tensors()) <= ((1 << 16) + 3 * 255) * (
            1 + (spec.stem in LEAST_COLUMNS)
        )
        tensors = dict(case.tensors())
        rows.add(tuple(tensors[name].dtype for name in always))
        # Where a document leaves the dtype of an output free, or lets inputs promote, each row has fewer cases.
        inputs = [name for name in always if name in spec.inputs and name not in spec.promoting[1:]]
        met[tuple(tensors[name].dtype for name in inputs)].update(case_regimes(case))
    assert len(rows) == len({tuple(row[name] for name in always) for row in sampler.dtype_rows})
    for row, found in met.items():
        assert reached(spec, QUICK) <= found.keys(), row


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
    cases = planned(sampler, "standard")[len(sampler.cells(STANDARD)) :]
    found = Counter(regime for case in cases for regime in case_regimes(case))
    for regime, share in SHARES.items():
        if regime not in reached(spec, STANDARD):
            continue
        # Ten calls of 5,000 are asked to be heavy, and not all of them come out so: one is enough.
        least = 1 if regime is Regime.HEAVY else len(cases) * share / 1_000 / 2
        assert found[regime] >= least, regime
    sizes = {size for case in cases for _, tensor in case.tensors() for size in tensor.shape}
    assert max(sizes) >= 1 << (17 if spec.stem == "softmax_backward" else 16)
    assert sizes & {32_000, 151_936} or spec.stem in LEAST_COLUMNS


@pytest.mark.parametrize(("name", "regimes"), [("quick", QUICK), ("standard", STANDARD)], ids=["quick", "standard"])
@each
def test_every_two_features_that_can_meet_do(spec: Spec, product: str, name: str, regimes: Sequence[Regime]) -> None:
    sampler = Sampler(spec, Target(product))
    modes = [
        spec.modes.supported(product, row[spec.modes.by]) if spec.modes is not None else (0,)
        for row in sampler.dtype_rows
    ]
    views = range(len(VIEWS)) if sampler.strided else (0,)
    all_modes = sorted({mode for row in modes for mode in row})
    factors = (regimes, range(len(modes)), views, range(len(DATA_KINDS)), all_modes)
    wanted = {
        (one, two, first, second)
        for one, two in itertools.combinations(range(len(factors)), 2)
        for first in factors[one]
        for second in factors[two]
        if (one, two) != (1, 4) or second in modes[first]  # type: ignore[index]
    }
    cells = sampler.cells(regimes)
    rows = [(cell.regime, cell.dtypes, cell.view, cell.data, cell.mode) for cell in cells]
    assert all(row[4] in modes[row[1]] for row in rows)
    met = {(one, two, row[one], row[two]) for row in rows for one, two in itertools.combinations(range(5), 2)}
    assert met == wanted
    # All of them are in the plan.
    assert len(cells) <= PROFILES[name].random


@each
def test_a_cell_decides_what_it_names(spec: Spec, product: str) -> None:
    """A tensor that has no view of its own is as it was; sizes may miss a regime that a document has no room for."""
    sampler = Sampler(spec, Target(product))
    met = []
    cells = sampler.cells(STANDARD)
    for number, cell in enumerate(cells):
        [choices] = stream_block(0, "cells", number, 1)
        drawing = sampler.draw(choices, cell=cell)
        assert drawing.dtypes == sampler.dtype_rows[cell.dtypes]
        if spec.modes is not None:
            assert drawing.names[spec.modes.attribute] == cell.mode
        assert set(drawing.views.values()) == ({cell.view} if cell.view else set())
        kind = DATA_KINDS[cell.data]
        of_kind = [
            template in sampler.templates(name, "float" if drawing.dtypes[name] in INEXACT else "other", kinds=[kind])
            for name, template in drawing.data.items()
        ]
        assert any(of_kind) if kind == "hostile" else all(of_kind)
        if cell.regime in reached(spec, STANDARD):
            met.append(cell.regime in case_regimes(sampler.case(drawing)))
    assert sum(met) > (0.4 if spec.stem in LEAST_COLUMNS else 0.6) * len(met)


def test_zeros_come_beside_inf_and_nan() -> None:
    sampler = Sampler(SPECS["aclnnSoftmaxBackward"], Target())
    met = Counter(
        sum(template.recipe in ("zeros", "one_hot") for template in drawing.data.values())
        for drawing in map(sampler.draw, stream_block(3, "special", 0, 2_000))
        if [template.recipe for template in drawing.data.values()].count("special") == 1
    )
    assert met.total() > 50
    assert met[1] > met.total() / 3
