"""The values behind a broken rule: each kind of rule says what a call has and what it must have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.target import Target
from aclnn_cts.generate.negative import invalid_cases
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.build_constraints import KINDS
from aclnn_cts.speclang.kinds_number import PredicateRule
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.speclang.mismatch import mismatch_text
from aclnn_cts.speclang.model import Constraint, Spec

SPECS = load_specs()


def one_of_each_kind() -> Iterator[tuple[Spec, Constraint]]:
    found: set[tuple[str, type]] = set()
    for spec in SPECS.values():
        for constraint in spec.constraints_for(spec.usual_product):
            key = constraint.kind, type(constraint.rule)
            if constraint.kind != "present" and key not in found:
                found.add(key)
                yield spec, constraint


@pytest.mark.parametrize(
    ("spec", "constraint"), [pytest.param(*pair, id=f"{pair[0].stem}-{pair[1].id}") for pair in one_of_each_kind()]
)
def test_broken_rule_names_what_is_found_and_what_must_be(spec: Spec, constraint: Constraint) -> None:
    [broken] = invalid_cases(Sampler(spec, Target(spec.usual_product)), constraint, seed=0, count=1)
    found, separator, wanted = mismatch_text(constraint, broken.case).partition("; ")
    assert found, constraint.id
    assert separator
    assert "must " in wanted


def test_all_kinds_but_pointers_are_met() -> None:
    assert {constraint.kind for _, constraint in one_of_each_kind()} == {*KINDS} - {"present"}


ARGUMENTS: dict[str, Any] = {"x": Tensor((2, 3), "FLOAT"), "mask": Tensor((512,), "UINT8"), "n": 7, "flag": False}


@pytest.mark.parametrize(
    ("predicate", "text"),
    [
        ("numel(mask) == (numel(x) + 127) // 128 * 16", "512; must be 16"),
        ("0 < n < 5", "7; must be less than 5"),
        ("8 <= n", "7; must be at least 8"),
        ("n == 1 or n == 2", "7; must be 1 or be 2"),
        ("n == 7 and rank(x) == 3", "2; must be 3"),
        ("not n == 7", "7; must not be 7"),
        ("n < 3 or flag", "n is 7 and flag is false; n must be less than 3, or flag must hold"),
        ("n != 7 or (n + 2) % 3 == 1", "n is 7 and (n + 2) % 3 is 0; n must not be 7, or (n + 2) % 3 must be 1"),
        (
            "rank(x) == 1 or dim(x, 0) == 3",
            "rank(x) is 2 and dim(x, 0) is 2; rank(x) must be 1, or dim(x, 0) must be 3",
        ),
        ("shape(x) == shape(mask) if n > 3 else flag", "[2, 3]; must be [512]"),
        ("n / 2 == 3", "7/2; must be 3"),
    ],
)
def test_predicate_says_its_values(predicate: str, text: str) -> None:
    spec = SPECS["aclnnSoftmaxBackward"]
    broken = replace(spec.constraints[0], rule=PredicateRule(predicate), when=None)
    assert mismatch_text(broken, Case(spec.operator, ARGUMENTS)) == text
