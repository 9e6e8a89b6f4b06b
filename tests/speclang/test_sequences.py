"""Sequences by where they end, and an input that only some calls give: what is drawn, and what breaks it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.generate.choices import stream_block
from aclnn_cts.generate.negative import invalid_cases
from aclnn_cts.generate.proof import prove_spec
from aclnn_cts.generate.recover import recover_drawing
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.load import lint_files
from aclnn_cts.speclang.model import Spec
from aclnn_cts.triage.shrink import structure_of

TEXT = """\
operator: aclnnSequencesGrad
document: {title: aclnnSequencesGrad, language: en}
products: [atlas-a2]
defaults: {null: ACLNN_ERR_PARAM_NULLPTR, empty: none}
parameters:
  - {name: x, type: const aclTensor *, shape: "[T]", dtypes: [FLOAT], rank: 1}
  - {name: mask, type: const aclTensor *, optional: true, present: len(ends) == 1, shape: "[T]",
     dtypes: [BOOL, UINT8], rank: 1}
  - {name: unused, type: const aclTensor *, optional: true, present: false, shape: "[T]", dtype: as x,
     formats: none, strided: none}
  - {name: ends, type: const aclIntArray *, items: "[*sums(L)]"}
  - {name: prefixes, type: const aclIntArray *, optional: true, items: "[*L]"}
  - {name: out, type: aclTensor *, same_shape_as: x, same_dtype_as: x}
draws:
  - {name: B, one_of: [1, 2, 3]}
  - {name: T, in: [1, 99]}
  - {run: L, length: [B, B], total: T}
constraints:
  - {id: mask.size, axis: 0, is: "dim(x, 0)"}
  - {id: ends.count, that: 1 <= len(ends) <= 3, breaks: [{B: 0}, {B: 5}]}
  - {id: ends.structure, kind: structure, as: ends, is: "dim(x, 0)", requires: [ends.count]}
  - {id: prefixes.total, kind: structure, of: prefixes, as: lengths, is: "dim(x, 0)", requires: [ends.count]}
clauses:
  function:
    - {en: "It computes.", zh: "计算。", check: values}
  params.ends: [implied, {say: count, en: "One to three.", zh: "1 至 3 个。"}]
  params.unused: [optional]
  params.prefixes: [implied, {say: total, en: "They add up.", zh: "总和一致。"}]
"""


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Spec:
    path = tmp_path_factory.mktemp("specs") / "sequences_grad.yaml"
    path.write_text(TEXT, encoding="utf-8")
    [found], messages = lint_files([path])
    assert messages == []
    assert prove_spec(found.spec, found.problems, drawings=60) == []
    return found.spec


@pytest.fixture(scope="module")
def sampler(spec: Spec) -> Sampler:
    return Sampler(spec, Target(product="atlas-a2"))


def valid(sampler: Sampler) -> Iterator[Case]:
    for choices in stream_block(1, "tests/sequences", 0, 80):
        yield sampler.case(sampler.draw(choices))


def test_an_input_is_given_where_a_call_may_give_it(sampler: Sampler) -> None:
    seen = {(len(ends_of(case)) == 1, case.arguments["mask"] is not None) for case in valid(sampler)}
    assert seen == {(True, True), (True, False), (False, False)}
    assert all(case.arguments["unused"] is None for case in valid(sampler))
    assert [item.name for item in sampler.spec.conditional if item.is_never_given(sampler.target)] == ["unused"]
    assert {name for row in sampler.given_rows for name in row} == {"x", "mask", "out"}


@pytest.mark.parametrize("identifier", ["mask.dtype", "mask.size", "mask.rank"])
def test_rules_on_such_an_input_are_broken_in_calls_that_give_it(sampler: Sampler, identifier: str) -> None:
    found = [item.case for item in invalid_cases(sampler, sampler.spec.constraint(identifier), seed=0, count=4)]
    assert found
    assert all(isinstance(case.arguments["mask"], Tensor) and len(ends_of(case)) == 1 for case in found)


def test_a_drawing_is_found_again_with_and_without_an_optional_array(sampler: Sampler) -> None:
    assert {case.arguments["prefixes"] is None for case in valid(sampler)} == {True, False}
    assert all(recover_drawing(sampler, case) is not None for case in valid(sampler))


def test_a_structure_puts_sequences_together_again_and_shortens_them(sampler: Sampler) -> None:
    for case in valid(sampler):
        found = structure_of(sampler, Trial("values", case))
        assert found is not None
        again, shorter = (
            found.trial(decide) for decide in (lambda _low, _high, was: was, lambda low, _high, _was: low)
        )
        assert again is not None
        assert again.case.arguments == case.arguments
        assert shorter is not None
        assert ends_of(shorter.case) == (1,)


def test_its_null_pointer_is_called_optional_and_not_left_out_by_the_call(spec: Spec) -> None:
    said = [clause.en for clause in spec.clauses if clause.at.startswith("params.mask.")]
    assert "mask may be left out: a null pointer." in said
    assert not any("does not compute it" in text for text in said)


def test_parts_of_a_total_take_a_number_that_breaks_a_rule(sampler: Sampler) -> None:
    found = invalid_cases(sampler, sampler.spec.constraint("ends.count"), seed=0, count=8)
    lengths = {len(ends_of(item.case)) for item in found}
    assert lengths == {0, 5}


def test_an_array_without_a_rule_on_its_structure_is_a_mistake(tmp_path: Path) -> None:
    path = tmp_path / "sequences_grad.yaml"
    path.write_text("".join(line for line in TEXT.splitlines(keepends=True) if "ends.structure" not in line))
    [found], _ = lint_files([path])
    assert any("ends, any dimension: one more breaks no" in line for line in prove_spec(found.spec, found.problems))


def ends_of(case: Case) -> tuple[int, ...]:
    ends = case.arguments["ends"]
    assert isinstance(ends, tuple)
    return ends
