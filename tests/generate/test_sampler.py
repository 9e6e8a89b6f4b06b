"""Valid cases: every rule holds by construction, whoever decides, and everything that is documented comes about."""

from __future__ import annotations

import hashlib
import itertools
import math
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aclnn_cts.core.case import Case, Data, Tensor, owner
from aclnn_cts.core.case_json import case_from_json, case_id, case_to_json
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.target import Target
from aclnn_cts.generate.buffers import check_view
from aclnn_cts.generate.choices import Choices, HypothesisChoices, RecordedChoices, StreamChoices, stream_block
from aclnn_cts.generate.configuration import DATA_KINDS, EXPANDED, VIEWS, lay_out
from aclnn_cts.generate.names import MAX_LENGTH
from aclnn_cts.generate.recipes import check_data
from aclnn_cts.generate.recover import recover_drawing
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.generate.sizes import BUDGETS
from aclnn_cts.speclang.binding import check_prototype
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.kinds import CaseChange
from aclnn_cts.speclang.kinds_data import FiniteRule
from aclnn_cts.speclang.kinds_dtype import ListedRule
from aclnn_cts.speclang.model import Spec
from aclnn_cts.trials.checks.registry import CHECKS
from aclnn_cts.trials.plan import Part
from tests.generate.every_operator import PAIRS, SPECS, each, rules, sampler, spelled, valid_cases
from tests.speclang.small_spec import changed
from tests.support.replay import ReplayChoices
from tests.support.spec_text import spec_from_text
from tests.support.targets import FIXED, HUGE, LEAST_COLUMNS

pytestmark = pytest.mark.mechanism


def demand_valid(case: Case) -> None:
    spec = SPECS[case.operator]
    check_prototype(spec, case, where="generated")
    found = evaluate(spec, case)
    assert [item.id for item in found.broken] == []
    assert [item.id for item in found.not_applicable] == []
    for name, tensor in case.tensors():
        assert check_view(tensor, may_expand=owner(name) not in spec.outputs) is None, name
        assert (tensor.data is not None) == (owner(name) in spec.inputs), name
        if tensor.data is not None:
            check_data(tensor.data, name=name)
        assert spec.parameter(owner(name)).strided or tensor.strides is None, name
    assert case.call.phases == 2
    assert case.origin.kind == "valid"


@each
def test_the_stream_draws_valid_cases_within_their_budget(stem: str, product: str) -> None:
    for case in valid_cases(stem, product, 250):
        demand_valid(case)
        most = max(max(BUDGETS) * (1 + (stem in LEAST_COLUMNS)), 2 * LEAST_COLUMNS.get(stem, 0), HUGE.get(stem, 0))
        assert max(tensor.numel for _, tensor in case.tensors() if tensor.shape not in FIXED) <= most


@each
def test_hypothesis_draws_valid_cases_which_the_stream_can_repeat(stem: str, product: str) -> None:
    chosen = sampler(stem, product)

    @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def draws(data: st.DataObject) -> None:
        recorded = RecordedChoices(HypothesisChoices(data.draw))
        case = chosen.case(chosen.draw(recorded))
        demand_valid(case)
        replayed = ReplayChoices(recorded.values)
        assert spelled(chosen.case(chosen.draw(replayed))) == spelled(case)
        assert replayed.remaining == []
        assert spelled(chosen.case(chosen.draw(streamed(recorded)))) == spelled(case)

    draws()


def streamed(recorded: RecordedChoices) -> Choices:
    """The stream driver, with words that make it decide as recorded."""
    words = [-(-((value - low) << 64) // (high - low + 1)) for low, high, value in recorded.draws]
    assert all(0 <= word < 2**64 for word in words)
    return StreamChoices(0, "unused", 0, own_words=words[::-1])


@each
def test_hypothesis_can_repeat_what_the_stream_draws(stem: str, product: str) -> None:
    chosen = sampler(stem, product)
    for index in range(40):
        recorded = RecordedChoices(StreamChoices(5, f"{stem}/{product}", index))
        case = chosen.case(chosen.draw(recorded))
        rest = iter(recorded.draws)

        def draw(strategy: Any, rest: Iterator[tuple[int, int, int]] = rest) -> int:
            low, high, value = next(rest)
            assert repr(strategy) == repr(st.integers(low, high))
            return value

        assert spelled(chosen.case(chosen.draw(HypothesisChoices(draw)))) == spelled(case)
        assert next(rest, None) is None


@each
def test_cases_pass_through_json_unchanged(stem: str, product: str) -> None:
    for case in valid_cases(stem, product, 60, seed=2):
        document = msgspec.json.decode(msgspec.json.encode(case_to_json(case)))
        again = case_from_json(document, where="round trip")
        assert again == case
        assert case_id(again) == case_id(case)
        assert spelled(again) == spelled(case)


DIGEST = """
import hashlib
import sys
from aclnn_cts.generate.negative import boundary_cases, invalid_cases
from tests.support.replay import ReplayChoices
from tests.generate.every_operator import PAIRS, SPECS, rules, sampler, spelled, valid_cases
from tests.support.targets import proven_by_another
digest = hashlib.sha256()
proven = proven_by_another()
for pair in dict(PAIRS).items():
    if (SPECS.find(pair[0]).operator in proven) != (sys.argv[1] == "others"):
        continue
    for case in valid_cases(*pair, 20, seed=9):
        digest.update(spelled(case))
    for rule in rules(*pair)[::5]:
        broken = invalid_cases(sampler(*pair), rule, seed=9, count=1)
        for derived in (*broken, *boundary_cases(sampler(*pair), rule, seed=9)):
            digest.update(spelled(derived.case))
print(digest.hexdigest())
"""


@pytest.mark.parametrize("of", ["each family", pytest.param("others", marks=pytest.mark.catalogue)])
def test_equal_seeds_give_equal_bytes_in_every_process(of: str) -> None:
    digests = []
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(Path(__file__).parents[2])}
        done = subprocess.run(
            [sys.executable, "-c", DIGEST, of], env=environment, capture_output=True, text=True, check=True
        )
        digests.append(done.stdout)
    assert digests[0] == digests[1]
    assert len(digests[0].strip()) == hashlib.sha256().digest_size * 2


@each
def test_seeds_differ(stem: str, product: str) -> None:
    first, second = ([case_id(case) for case in valid_cases(stem, product, 50, seed=seed)] for seed in (1, 2))
    assert len(set(first)) == 50
    assert not set(first) & set(second)


@each
def test_all_that_is_documented_comes_about(stem: str, product: str) -> None:
    spec = SPECS.find(stem)
    cases = list(valid_cases(stem, product, 1200, seed=3))
    tensors: dict[str, list[Tensor]] = {item.name: [] for item in spec.parameters if item.holds_tensors}
    for case in cases:
        for name, tensor in case.tensors():
            tensors[owner(name)].append(tensor)
    for item in spec.parameters:
        if not item.holds_tensors or item.is_never_given(Target(product=product)):
            continue
        drawn = tensors[item.name]
        assert {tensor.dtype for tensor in drawn} >= set(item.dtypes.get(product, ())), item.name
        source = spec.parameter(item.format_as or item.name)
        formats = set(source.formats.get(product, ()))
        if source.layouts:
            # A product may have no call with the number of dimensions that a format is for.
            formats &= {form for tensor in drawn for form in source.layouts.get(len(tensor.shape), ())}
        assert {tensor.format for tensor in drawn} >= formats, item.name
        if item.strided:
            shapes = {(tensor.strides, tensor.offset, tensor.storage_shape) for tensor in drawn}
            made = {
                view
                for tensor in drawn
                for view in range(1, len(VIEWS))
                if lay_out(tensor.shape, view) in shapes and tensor.strides is not None
            }
            # A tensor whose data mostly come from others is hardly ever expanded; corners see to that.
            assert made | set(EXPANDED) == set(sampler(stem, product).views_of(item.name)) | set(EXPANDED), item.name
    if spec.rows is not None:
        given = [dict(case.tensors()) for case in cases]
        rows = {
            tuple(there[name].dtype for name in spec.row_parameters)
            for there in given
            if there.keys() >= set(spec.row_parameters)
        }
        assert rows == set(spec.rows[product])
    if spec.modes is not None:
        for dtype in spec.modes.operand[product]:
            modes = {
                case.arguments[spec.modes.attribute]
                for case in cases
                if spec.modes.dtype_of({name: tensor.dtype for name, tensor in case.tensors()}) == dtype
            }
            assert modes == set(spec.modes.supported(product, dtype))
    recipes = {tensor.data.recipe for name in spec.inputs for tensor in tensors[name] if tensor.data is not None}
    assert {"integers", "normal", "wide", "cancel", "subnormal", "large"} <= recipes
    is_finite = any(isinstance(item.rule, FiniteRule) for item in spec.constraints_for(product))
    assert ("special" in recipes) is not is_finite


@each
def test_every_rule_holds_in_some_case_of_a_quick_run(stem: str, product: str) -> None:
    spec = SPECS.find(stem)
    held = {item.id for case in valid_cases(stem, product, 300, seed=4) for item in evaluate(spec, case).held}
    # Of a tensor that no valid call gives, no call holds the dtype or the format.
    absent = {item.name for item in spec.parameters if item.is_never_given(Target(product))}
    asked = {
        item.id for item in rules(stem, product) if not (isinstance(item.rule, ListedRule) and item.rule.of in absent)
    }
    assert asked <= held


def test_ranks_reach_the_limit() -> None:
    for stem, name, ranks in (
        ("softmax_backward", "gradOutput", range(1, 9)),
        ("embedding_dense_backward", "grad", range(2, 9)),
        ("embedding_dense_backward", "indices", range(1, 9)),
        ("rms_norm_grad", "x", range(2, 9)),
        ("rms_norm_grad", "rstd", range(1, 8)),
        ("rms_norm_grad", "gamma", range(1, 8)),
    ):
        found = {len(dict(case.tensors())[name].shape) for case in valid_cases(stem, "atlas-a2", 900)}
        assert found == set(ranks), (stem, name)


def test_sizes_are_pairwise_different_as_a_rule_and_often_near_powers_of_two() -> None:
    different, total = 0, 0
    sizes: Counter[int] = Counter()
    for stem, product in dict(PAIRS).items():
        for case in valid_cases(stem, product, 50):
            tensor = max((tensor for _, tensor in case.tensors()), key=lambda tensor: len(tensor.shape))
            large = [size for size in tensor.shape if size > 1]
            sizes.update(tensor.shape)
            if len(large) > 1:
                total += 1
                different += len(set(large)) == len(large)
    assert different > 0.7 * total
    assert {1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129} <= sizes.keys()


def test_layouts_lie_within_their_storage_and_never_overlap() -> None:
    for shape in ((5,), (3, 4), (1, 7), (2, 3, 4), (1, 1, 1), (2, 1, 3, 2)):
        for view in set(range(1, len(VIEWS))) - set(EXPANDED):
            layout = lay_out(shape, view)
            assert layout is not None
            strides, offset, storage = layout
            tensor = Tensor(shape, "FLOAT", strides=strides, offset=offset, storage_shape=storage)
            assert check_view(tensor) is None
            places = {
                offset + sum(step * stride for step, stride in zip(index, strides, strict=True))
                for index in itertools.product(*map(range, shape))
            }
            assert len(places) == math.prod(shape)
            assert max(places) < math.prod(storage)
            assert view != 3 or min(places) > 0
        assert lay_out(shape, 0) is None
    assert lay_out((), 5) is None
    assert lay_out((2, 0), 2) is None


def test_a_case_costs_no_memory_until_its_arrays_are_needed() -> None:
    spec = SPECS.find("softmax_backward")
    chosen = sampler("softmax_backward", "atlas-a2")
    drawing = chosen.draw(StreamChoices(1, "x", 0))
    huge = msgspec.structs.replace  # shapes alone are changed below, never data
    case = chosen.case(drawing)
    large = Tensor((2147483646, 2147483646), "FLOAT")
    grown = huge(case, arguments={**case.arguments, "gradOutput": large, "output": large, "out": large, "dim": 0})
    assert evaluate(spec, grown).broken == ()
    assert grown.nbytes == 3 * 4 * 2147483646**2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("length: [0, 3]", "length: [1000000000, 1000000001]", f"1000000000 dimensions; expected at most {MAX_LENGTH}"),
        ("{name: D, in: [1, 9]}", '{name: D, is: "64 ** 64 * 64 ** 64"}', "a number of 769 bits; expected at most 512"),
        ("{name: D, in: [1, 9]}", '{name: D, one_of: ["64 ** 64 * 64 ** 64"]}', "a number of 769 bits"),
        ("{name: D, in: [1, 9]}", '{name: D, is: "1 / (64 ** 64 * 64 ** 64)"}', "a number of 769 bits"),
    ],
)
def test_a_spec_cannot_exhaust_the_machine(old: str, new: str, message: str) -> None:
    chosen = Sampler(spec_from_text(changed(old, new), stem="small"), Target())
    with pytest.raises(UsageError, match=message):
        chosen.draw(StreamChoices(1, "x", 0))


def test_a_run_that_asks_for_any_length_gets_a_bounded_one() -> None:
    chosen = Sampler(spec_from_text(changed("length: [0, 3]", "length: [0, 1000000000]"), stem="small"), Target())
    for index in range(50):
        assert len(chosen.draw(StreamChoices(1, "x", index)).names["A"]) <= MAX_LENGTH


def longest_sequence(arguments: Mapping[str, Any]) -> tuple[int, int, int]:
    """Queries, keys and the width of a head, of the sequence of a call that has most of the least of them."""
    query, key, heads = (arguments[name] for name in ("query", "keyIn", "headNum"))
    layout = str(arguments["inputLayout"])
    width = query.shape[-1] // (heads if layout in ("BSH", "SBH") else 1)
    if layout != "TND":
        place = {"BSH": 1, "SBH": 0, "BNSD": 2, "BSND": 1}[layout]
        return query.shape[place], key.shape[place], width
    ends = ([0, *arguments[f"actualSeq{of}LenOptional"]] for of in ("Q", "Kv"))
    lengths = ([stop - start for start, stop in itertools.pairwise(places)] for places in ends)
    rows, columns = max(zip(*lengths, strict=True), key=min)
    return rows, columns, width


@pytest.mark.parametrize("spec", [spec for spec in SPECS.values() if spec.large_calls], ids=lambda spec: spec.stem)
@pytest.mark.parametrize(("heavy", "share"), [(False, 0.02), (True, 0.4)])
def test_sizes_of_attention_are_large_together(spec: Spec, *, heavy: bool, share: float) -> None:
    chosen = Sampler(spec, Target(spec.usual_product))
    cases = [chosen.random_case(StreamChoices(1, "large", index), index, heavy=heavy) for index in range(400)]
    # Of the calls of a standard plan five in six are random: a third of all are large.
    assert sum(min(longest_sequence(case.arguments)) >= 64 for case in cases) / len(cases) > share


def test_templates_of_the_spec_stand_for_the_default_of_their_kind_alone() -> None:
    text = changed("strided: true}", "strided: true, data: {exact: [{recipe: constant, mean: 'item(sizes, 0)'}]}}")
    chosen = Sampler(spec_from_text(text, stem="small"), Target())
    recipes: Counter[str | None] = Counter()
    for index in range(200):
        case = chosen.case(chosen.draw(StreamChoices(1, "x", index)))
        tensor = case.arguments["x"]
        assert isinstance(tensor, Tensor)
        assert isinstance(tensor.data, Data)
        recipes[tensor.data.recipe] += 1
        if tensor.data.recipe == "constant":
            assert tensor.data.mean == tensor.shape[-1]
    assert recipes["constant"] > 20
    assert "integers" not in recipes
    assert {"normal", "wide"} <= recipes.keys()
    assert DATA_KINDS == ("exact", "realistic", "hostile")


DEPENDING = """\
operator: aclnnPairBackward
document: {title: aclnnPairBackward, language: en}
products: [atlas-a2]
parameters:
  - {name: x, type: const aclTensor *, dtypes: [FLOAT], shape: "[*L, N, *R]", rank: [1, 8]}
  - {name: weight, type: const aclTensor *, optional: true, dtypes: [FLOAT], shape: "[*L, N, *R]"}
  - {name: bias, type: const aclTensor *, optional: not given(weight), present: given(weight) or spare == 1,
     "null": limit, same_dtype_as: x, same_shape_as: x}
  - {name: groups, type: const aclTensor *, dtypes: [INT64], shape: "[3]", rank: 1,
     data: {with: {high: 7}, exact: [lengths], realistic: [partial_lengths], hostile: [lengths]}}
  - {name: dim, type: int64_t}
  - {name: out, type: aclTensor *, same_dtype_as: x, same_shape_as: x}
  - {name: biasOut, type: aclTensor *, optional: not given(bias), present: given(bias), "null": open,
     same_dtype_as: x, same_shape_as: x}
draws:
  - {name: spare, is: 0}
  - {run: L, length: [0, 2]}
  - {run: R, length: [0, 2]}
  - {name: N, in: [1, 64]}
  - {name: dim, one_of: [rank(L), -rank(R) - 1]}
constraints:
  - {id: groups.rows, kind: structure, as: partial_lengths, is: 7, in: [0, null], strength: limit}
clauses:
  function: [{en: It scales., zh: 缩放。, check: values}]
"""


def test_a_way_may_give_a_tensor_that_valid_calls_leave_out() -> None:
    chosen = Sampler(spec_from_text(DEPENDING, stem="pair_backward"), Target())
    drawings = [chosen.draw(StreamChoices(1, "x", index)) for index in range(50)]
    alone = [item for item in drawings if chosen.case(item).arguments["weight"] is None]
    assert all(chosen.case(item).arguments["bias"] is None for item in alone)
    given = [chosen.case(item, change=CaseChange(text="", assign={"spare": 1})).arguments["bias"] for item in alone]
    assert any(bias is not None for bias in given)


def test_a_tensor_may_be_null_where_one_before_it_is() -> None:
    spec = spec_from_text(DEPENDING, stem="pair_backward")
    chosen = Sampler(spec, Target())
    nulls: Counter[tuple[bool, ...]] = Counter()
    for index in range(200):
        case = chosen.case(chosen.draw(StreamChoices(1, "x", index)))
        nulls[tuple(case.arguments[name] is None for name in ("weight", "bias", "biasOut"))] += 1
        assert evaluate(spec, case).broken == ()
    assert nulls.keys() == {(True, True, True), (False, False, False)}


def test_a_shape_with_two_runs_is_recovered_by_what_tells_where_they_meet() -> None:
    chosen = Sampler(spec_from_text(DEPENDING, stem="pair_backward"), Target())
    for index in range(50):
        drawing = chosen.draw(StreamChoices(1, "x", index))
        case = chosen.case(drawing)
        found = recover_drawing(chosen, case)
        assert found is not None
        assert found.names == drawing.names


LARGE = tuple(spec for spec in SPECS.values() if spec.large_calls)


@pytest.mark.parametrize("spec", LARGE, ids=lambda spec: spec.stem)
def test_the_longer_profiles_have_the_large_calls_of_a_spec(spec: Spec) -> None:
    assert spec.large_calls
    product = spec.products[0]
    drawn = sampler(spec.stem, product)
    blocks = list(stream_block(7, f"{spec.operator}/{product}/valid", 0, len(spec.large_calls)))
    for number, (choices, sizes) in enumerate(zip(blocks, spec.large_calls, strict=True)):
        case = drawn.random_case(choices, number, heavy=True, large_calls=True)
        demand_valid(case)
        scores = math.prod(sizes.get(name, 1) for name in ("S", "Sq", "Sk", "Skv", "Nkv", "group"))
        rows = case.tensor("softmaxMaxOptional")
        assert rows is not None
        assert rows.numel * sizes.get("Skv", sizes.get("Sk", 1)) // 8 == scores
        recipes = {tensor.data.recipe for _, tensor in case.tensors() if tensor.data is not None}
        assert not recipes & {"outliers", "special", "subnormal"}
        assert all(tensor.is_contiguous for _, tensor in case.tensors())


def test_the_memory_check_has_no_large_calls() -> None:
    [spec] = [item for item in LARGE if item.stem == "flash_attention_score_grad"]
    product = spec.products[0]
    part = Part(spec.operator, "memory", "valid", count=len(spec.large_calls), heavy=True)
    for trial in CHECKS["memory"].trials(part, sampler(spec.stem, product), seed=0):
        assert max(tensor.numel for _, tensor in trial.case.tensors()) <= 3072 * 2048


def test_the_quick_profile_has_no_large_calls() -> None:
    [spec] = [item for item in LARGE if item.stem == "flash_attention_score_grad"]
    choices = next(stream_block(7, "quick", 0, 1))
    case = sampler(spec.stem, spec.products[0]).random_case(choices, 0)
    assert max(tensor.numel for _, tensor in case.tensors()) <= 3072 * 2048
