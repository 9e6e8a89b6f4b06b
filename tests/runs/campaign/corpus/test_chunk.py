"""Chunks as pure functions, configurations, mutation, and what counts as covered."""

from __future__ import annotations

import functools
import itertools
from collections import Counter

import msgspec
import pytest

from aclnn_cts.core.target import Target
from aclnn_cts.generate.choices import StreamChoices
from aclnn_cts.generate.configuration import Configuration
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.runs.campaign.corpus.check_coverage import (
    TRIES,
    CoverageFactors,
    CoveredPairs,
    CoveredShare,
    check_coverage,
    pack_coverage,
)
from aclnn_cts.runs.campaign.corpus.schedule import (
    PARENTS,
    PLAN,
    RANDOM,
    SEARCH,
    Chunk,
    CorpusUpdate,
    Schedule,
    SeedCase,
    Snapshot,
    best_seeds,
    chunk_trials,
    parent_of,
    snapshot_id,
    take_snapshot,
)
from aclnn_cts.runs.campaign.jobs import ChunkJob
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.speclang.model import Spec
from aclnn_cts.store.counts import OperatorSummary
from aclnn_cts.workers.service import encode
from tests.support.targets import first_fast

TARGET = Target()
SPECS = load_specs().for_product(TARGET.product)
_ATTEMPTS = 20_000
"""Drawings for a pair: in small tensors, paddings of an outer axis are seldom."""
each = pytest.mark.parametrize(
    "stem", first_fast(sorted((spec.stem for spec in SPECS.values()), key=lambda stem: stem != "softmax_backward"))
)
_SELDOM = {"convolution_backward": {(("attribute:PD", "positive"), ("size", "1"))}}
"""Pairs that are drawn less often: an empty weight is one of sixteen kinds of calls, and few of these have a depth."""
FACTORS = {spec.operator: CoverageFactors(Sampler(spec, TARGET)) for spec in SPECS.values()}


def schedule(*specs: Spec, seed: int = 3) -> Schedule:
    factors = {spec.operator: FACTORS[spec.operator] for spec in specs}
    return Schedule(operators=specs, factors=factors, product=TARGET.product, seed=seed, size=64)


@functools.cache
def learned(operator: str) -> tuple[Schedule, Snapshot, Chunk]:
    """A schedule, the snapshot after its first random chunk, and that chunk."""
    spec = SPECS[operator]
    plan = schedule(spec)
    factors = FACTORS[spec.operator]
    chunk = plan.chunk(plan.planned, Snapshot(-1))
    drawn = [item for item in chunk_trials(chunk, factors.sampler) if item.drawing is not None]
    rows = [factors.of(item.drawing, item.trial.case) for item in drawn if item.drawing is not None]
    parents = tuple(parent_of(chunk, factors.sampler, item.draw, 0.5) for item in drawn[:4])
    found = CorpusUpdate(covered=pack_coverage(factors, judged=rows, unjudged=(), limits=()), parents=parents)
    coverage = {spec.operator: check_coverage(factors, seed=3)}
    return plan, take_snapshot(0, {spec.operator: found}, coverage, [spec.operator]), chunk


@each
def test_a_chunk_gives_the_same_valid_trials_again_wherever_it_is_read(stem: str) -> None:
    spec = SPECS.find(stem)
    plan, snapshot, _ = learned(spec.operator)
    phases: Counter[str] = Counter()
    elsewhere = Sampler(spec, TARGET)
    for index in range(plan.planned, plan.planned + 6):
        chunk = plan.chunk(index, snapshot)
        assert chunk == schedule(spec).chunk(index, snapshot)
        job = msgspec.msgpack.decode(encode(ChunkJob(chunk)), type=ChunkJob)
        assert isinstance(job, ChunkJob)
        items = list(chunk_trials(chunk, FACTORS[spec.operator].sampler))
        assert [item.trial.id for item in items] == [item.trial.id for item in chunk_trials(job.chunk, elsewhere)]
        assert not any(evaluate(spec, item.trial.case).broken for item in items if item.drawing is not None)
        phases[chunk.phase] += 1
        if chunk.phase == SEARCH:
            assert chunk.snapshot == snapshot_id(snapshot)
    assert phases == {RANDOM: 3, SEARCH: 3}


def test_the_plan_takes_all_operators_through_examples_and_limits_first() -> None:
    plan = schedule(*SPECS.values())
    chunks = [plan.chunk(index, Snapshot(-1)) for index in range(plan.planned)]
    assert {chunk.phase for chunk in chunks} == {PLAN}
    stages = [key for key, _ in itertools.groupby(_stage(chunk) for chunk in chunks)]
    assert stages == [0, 1, 2]
    assert {chunk.operator for chunk in chunks if _stage(chunk) == 0} == set(SPECS)


def _stage(chunk: Chunk) -> int:
    kind = chunk.parts[-1].kind
    return 0 if kind in ("example", "boundary") else 1 if kind == "invalid" else 2


def test_two_chunks_share_no_random_trial() -> None:
    spec = SPECS["aclnnSoftmaxBackward"]
    plan = schedule(spec)
    sampler = FACTORS[spec.operator].sampler
    one, two = (
        {item.trial.id for item in chunk_trials(plan.chunk(plan.planned + number, Snapshot(-1)), sampler)}
        for number in (0, 1)
    )
    assert not one & two


def test_a_parent_is_its_case_again_and_its_children_are_near() -> None:
    spec = SPECS["aclnnConvTbcBackward"]
    sampler = FACTORS[spec.operator].sampler
    _, snapshot, chunk = learned(spec.operator)
    drawn = [item for item in chunk_trials(chunk, sampler) if item.drawing is not None]
    for parent, item in zip(snapshot.parents[spec.operator], drawn, strict=False):
        made = [each for each in drawn if parent_of(chunk, sampler, each.draw, 0.5).values == parent.values]
        assert len(made) == 1
        del item
        search = Chunk(index=9, seed=1, snapshot="", phase=SEARCH, operator=spec.operator, draws=40, parents=(parent,))
        children = [each.trial.case for each in chunk_trials(search, sampler)]
        own = made[0].trial.case
        shapes = [tuple(tensor.shape for _, tensor in case.tensors()) for case in (own, *children)]
        # Three of eight keep everything but the data's seed.
        assert sum(shape == shapes[0] for shape in shapes[1:]) >= 8
        assert len({str(child.arguments) for child in children}) > 30


@each
def test_all_that_counts_can_be_reached(stem: str) -> None:
    """Every pair that is known to occur is drawn by the configuration for it, so that 100% can be reached."""
    spec = SPECS.find(stem)
    factors = FACTORS[spec.operator]
    sampler = factors.sampler
    missed = []
    for number, (first, second) in enumerate(factors.pairs(factors.possible)):
        if number % 9:
            continue
        options = sampler.options(factors.configuration(first, second))
        for attempt in range(_ATTEMPTS):
            drawing = sampler.draw(StreamChoices(11, "reach", number * _ATTEMPTS + attempt), options=options)
            if {first, second} <= set(factors.of(drawing, sampler.case(drawing))):
                break
        else:
            missed.append((factors.values[first], factors.values[second]))
    assert set(missed) <= _SELDOM.get(stem, set())


def test_what_cannot_occur_is_known() -> None:
    factors = FACTORS["aclnnSoftmaxBackward"]
    number = {value: place for place, value in enumerate(factors.values)}
    possible = factors.possible
    assert not possible[number["rank:A", "0"], number["rank:A", "0"]]
    assert not possible[number["rank:A", "1"], number["layout:out", "transposed"]]
    assert not possible[number["rank:A", "1"], number["rank:A", "2"]]
    assert possible[number["rank:A", "8"], number["layout:out", "transposed"]]
    conv = CoverageFactors(Sampler(SPECS["aclnnConvTbcBackward"], Target(product="atlas-training")))
    number = {value: place for place, value in enumerate(conv.values)}
    # The training series has neither KEEP_DTYPE nor HF32 in single precision.
    assert not conv.possible[number["dtype", "FLOAT"], number["mode", "KEEP_DTYPE"]]
    assert conv.possible[number["dtype", "FLOAT16"], number["mode", "KEEP_DTYPE"]]


def test_coverage_adds_up_in_any_order() -> None:
    spec = SPECS["aclnnSoftmaxBackward"]
    factors = FACTORS[spec.operator]
    coverage = check_coverage(factors, seed=3)
    parts = []
    for index in range(4):
        drawing = factors.sampler.draw(StreamChoices(1, "cover", index))
        rows = [factors.of(drawing, factors.sampler.case(drawing))]
        judged, unjudged = (rows, []) if index else ([], rows)
        parts.append(pack_coverage(factors, judged=judged, unjudged=unjudged, limits=[f"limit {index}"]))
    totals = []
    for order in (parts, parts[::-1]):
        total = CoveredPairs()
        for part in order:
            total.include(msgspec.convert(msgspec.to_builtins(part), CoveredPairs))
        totals.append(total)
    assert totals[0] == totals[1]
    shares = coverage.shares(totals[0], OperatorSummary())
    assert shares["constraints"].met == 0
    assert 0 < shares["pairs"].met < shares["pairs"].of == len(factors.pairs(factors.possible))
    missing = coverage.missing(totals[0])
    # Those of the case without a verdict come where there are no others.
    assert 0 < len(missing) < shares["pairs"].of - shares["pairs"].met
    assert len(coverage.gaps(totals[0], OperatorSummary())["pairs"]) == shares["pairs"].of - shares["pairs"].met


def test_what_is_tried_again_and_again_and_never_judged_stands_apart() -> None:
    spec = SPECS["aclnnConvTbcBackward"]
    factors = FACTORS[spec.operator]
    coverage = check_coverage(factors, seed=3)
    sampler = factors.sampler
    number = {value: place for place, value in enumerate(factors.values)}
    bf16 = number["dtype", "BF16"]
    limit, *others = sorted(coverage.limits)
    total = CoveredPairs()
    for part in range(TRIES):
        rows = []
        for index in range(part * 300, (part + 1) * 300):
            drawing = sampler.draw(StreamChoices(1, "apart", index))
            rows.append(factors.of(drawing, sampler.case(drawing)))
        total.include(
            pack_coverage(
                factors,
                judged=[row for row in rows if bf16 not in row],
                unjudged=[row for row in rows if bf16 in row],
                limits=others,
                limits_unjudged=[limit],
            )
        )
    shares = coverage.shares(total, OperatorSummary())
    assert shares["limits"] == CoveredShare(len(coverage.limits) - 1, len(coverage.limits) - 1, 1)
    assert coverage.never_judged(total)["limits"] == [limit]
    assert shares["limits"].part == 1.0
    assert shares["pairs"].of + shares["pairs"].apart == len(factors.pairs(factors.possible))
    apart = coverage.never_judged(total)["pairs"]
    assert shares["pairs"].apart == len(apart) > 20
    # Values that others were judged with: only with this one they were not.
    assert "dtype BF16" in apart
    assert sum("dtype BF16" in words for words in apart) > 0.9 * len(apart)
    factor = coverage.by_factor(total)["dtype"]
    assert 0 < factor.apart < factor.of
    # They are not asked for any more, and what is missing leaves them out.
    assert not set(coverage.gaps(total, OperatorSummary())["pairs"]) & set(apart)
    assert (("dtype", "BF16"), ("dtype", "BF16")) not in coverage.missing(total)
    # One case with a verdict brings them back.
    total.include(
        pack_coverage(factors, judged=[next(row for row in rows if bf16 in row)], unjudged=[], limits=[limit])
    )
    shares = coverage.shares(total, OperatorSummary())
    assert shares["limits"] == CoveredShare(len(coverage.limits), len(coverage.limits))
    assert shares["pairs"].apart < len(apart)


def test_a_few_cases_without_a_verdict_set_nothing_apart() -> None:
    factors = FACTORS["aclnnSoftmaxBackward"]
    coverage = check_coverage(factors, seed=3)
    drawing = factors.sampler.draw(StreamChoices(1, "few", 0))
    row = factors.of(drawing, factors.sampler.case(drawing))
    total = CoveredPairs()
    for tries in range(1, TRIES + 1):
        total.include(pack_coverage(factors, judged=[], unjudged=[row], limits=[]))
        assert bool(coverage.shares(total, OperatorSummary())["pairs"].apart) == (tries == TRIES)
    # Counts end somewhere, and do not begin again.
    for _ in range(300):
        total.include(pack_coverage(factors, judged=[], unjudged=[row], limits=[]))
    assert coverage.shares(total, OperatorSummary())["pairs"].apart == len(factors.pairs(factors.among([row])))


def test_the_best_parents_are_the_same_in_any_order() -> None:
    parents = [SeedCase(number / 100.0, (number, 1), {"dtype": (str(number % 9),)}) for number in range(90)]
    kept = best_seeds(parents)
    assert kept == best_seeds(parents[::-1]) == best_seeds([*parents[::2], *parents[1::2]])
    assert len(kept) == PARENTS
    assert kept[0].error_ratio == 0.89


def test_a_configuration_leaves_out_what_it_does_not_name() -> None:
    spec = SPECS["aclnnConvTbcBackward"]
    sampler = FACTORS[spec.operator].sampler
    configuration = Configuration(
        {"dtype": ["FLOAT16"], "mode": ["USE_FP16"], "layout:self": ["gaps"], "data:input": ["wide"], "size": ["1"]}
    )
    options = sampler.options(configuration)
    for index in range(50):
        case = sampler.case(sampler.draw(StreamChoices(2, "configuration", index), options=options))
        tensors = dict(case.tensors())
        assert {tensor.dtype for tensor in tensors.values()} == {"FLOAT16"}
        assert case.arguments["cubeMathType"] == 2
        assert tensors["input"].data is not None
        assert tensors["input"].data.recipe == "wide"
        assert tensors["self"].strides is not None
