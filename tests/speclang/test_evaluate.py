"""What a case breaks, what that takes away from other rules, and which statuses conform."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from aclnn_cts.core.case import CallOptions, Case, Data, Tensor
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.evaluate import Evaluation, evaluate, is_broken, promised_statuses
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.speclang.model import Constraint
from tests.speclang.small_spec import small_case, spec_with

FLOATS = Tensor((2, 3), "FLOAT", data=Data(values=(1, 2, 3, 4, 5, 6)))
NULLPTR = "ACLNN_ERR_PARAM_NULLPTR"
INVALID = "ACLNN_ERR_PARAM_INVALID"


def verdict(fields: str, case: Case) -> str:
    """`held`, `broken`, `not applicable` or `silent` (its condition is false) of the constraint `it`."""
    found = evaluate(spec_with(fields), case)
    for word in ("held", "broken", "not_applicable"):
        if any(item.id == "it" for item in getattr(found, word)):
            return word.replace("_", " ")
    return "silent"


def x(*shape: int, dtype: str = "FLOAT", **fields: Any) -> Tensor:
    return Tensor(shape, dtype, **fields)


OPEN = "strength: open"
RULES: list[tuple[str, dict[str, Any], str]] = [
    (f"kind: present, of: sizes, {OPEN}", {}, "held"),
    (f"kind: present, of: sizes, {OPEN}", {"sizes": None}, "broken"),
    (f"kind: dtype, of: x, in: floats, {OPEN}", {}, "held"),
    (f"kind: dtype, of: x, in: floats, {OPEN}", {"x": x(2, 3, dtype="BF16")}, "held"),
    (f"kind: dtype, of: x, in: floats, {OPEN}", {"x": x(2, 3, dtype="DOUBLE")}, "broken"),
    (f"kind: dtype, of: x, in: floats, {OPEN}", {"x": None}, "not applicable"),
    (f"kind: dtype, of: x, in: {{atlas-training: [FLOAT]}}, {OPEN}", {}, "broken"),
    (f"kind: same_dtype, of: out, as: x, {OPEN}", {}, "held"),
    (f"kind: same_dtype, of: out, as: x, {OPEN}", {"out": x(2, 3, dtype="BF16")}, "broken"),
    (f"kind: same_dtype, of: out, as: x, {OPEN}", {"x": None}, "not applicable"),
    (f"kind: format, of: x, in: [ND, NCL], {OPEN}", {"x": x(2, 3, format="NCL")}, "held"),
    (f"kind: format, of: x, in: [ND, NCL], {OPEN}", {"x": x(2, 3, format="NHWC")}, "broken"),
    (f"kind: same_format, of: out, as: x, {OPEN}", {}, "held"),
    (f"kind: same_format, of: out, as: x, {OPEN}", {"x": x(2, 3, format="NCL")}, "broken"),
    (f"kind: rank, of: x, in: [1, 2], {OPEN}", {}, "held"),
    (f"kind: rank, of: x, in: [1, 2], {OPEN}", {"x": x(2)}, "held"),
    (f"kind: rank, of: x, in: [1, 2], {OPEN}", {"x": x()}, "broken"),
    (f"kind: rank, of: x, in: [1, 2], {OPEN}", {"x": x(1, 2, 3)}, "broken"),
    (f"kind: rank, of: x, in: [1, 2], {OPEN}", {"x": None}, "not applicable"),
    (f"kind: length, of: sizes, is: 2, {OPEN}", {}, "held"),
    (f"kind: length, of: sizes, is: 2, {OPEN}", {"sizes": (1,)}, "broken"),
    (f"kind: length, of: sizes, is: 2, {OPEN}", {"sizes": None}, "not applicable"),
    (f"kind: dims, of: x, in: [2, 3], {OPEN}", {}, "held"),
    (f"kind: dims, of: x, in: [2, 3], {OPEN}", {"x": x()}, "held"),
    (f"kind: dims, of: x, in: [2, 3], {OPEN}", {"x": x(2, 1)}, "broken"),
    (f"kind: dims, of: x, in: [2, 3], {OPEN}", {"x": x(4, 2)}, "broken"),
    (f"kind: dims, of: x, in: [2, 3], axes: [0], {OPEN}", {"x": x(2, 9)}, "held"),
    (f"kind: dims, of: x, in: [2, 3], axes: [0, -1], {OPEN}", {"x": x(2, 9)}, "broken"),
    (f"kind: dims, of: x, in: [2, 3], axes: [2], {OPEN}", {}, "not applicable"),
    (f"kind: dims, of: x, in: [null, 3], {OPEN}", {"x": x(-9, 3)}, "held"),
    (f"kind: dims, of: x, in: [0, null], {OPEN}", {"x": x(-1, 3)}, "broken"),
    (f'kind: shape, of: out, is: "[*x]", {OPEN}', {}, "held"),
    (f'kind: shape, of: out, is: "[*x]", {OPEN}', {"out": x(3, 2)}, "broken"),
    (f'kind: shape, of: sizes, is: "[dim(x, 1), 2]", {OPEN}', {}, "held"),
    (f'kind: shape, of: sizes, is: "[dim(x, 1), 2]", {OPEN}', {"sizes": (2, 2)}, "broken"),
    (f'kind: shape, of: sizes, is: "[dim(x, 1), 2]", {OPEN}', {"x": x(2)}, "not applicable"),
    (f'kind: size, of: out, axis: -1, is: "item(sizes, 0)", {OPEN}', {}, "held"),
    (f'kind: size, of: out, axis: -1, is: "item(sizes, 0)", {OPEN}', {"out": x(2, 4)}, "broken"),
    (f'kind: size, of: out, axis: 2, is: "3", {OPEN}', {}, "not applicable"),
    (f"kind: range, of: pad, in: [0, 3], {OPEN}", {"pad": 3}, "held"),
    (f"kind: range, of: pad, in: [0, 3], {OPEN}", {"pad": 4}, "broken"),
    (f"kind: range, of: pad, in: [0, 3], {OPEN}", {"pad": -1}, "broken"),
    (f"kind: range, of: pad, in: [null, 3], {OPEN}", {"pad": -1}, "held"),
    (f"kind: range, of: pad, in: [0, null], {OPEN}", {"pad": 127}, "held"),
    (f"kind: range, of: pad, in: [null, null], {OPEN}", {"pad": -9}, "held"),
    (f'kind: range, of: pad, in: [0, "rank(x) - 1"], {OPEN}', {"pad": 1}, "held"),
    (f'kind: range, of: pad, in: [0, "rank(x) - 1"], {OPEN}', {"pad": 2}, "broken"),
    (f'kind: range, of: pad, in: [0, "rank(x) - 1"], {OPEN}', {"x": None}, "not applicable"),
    (f"kind: range, of: scale, in: [0, null], {OPEN}", {"scale": -0.5}, "broken"),
    (f"kind: range, of: scale, in: [0, null], {OPEN}", {"scale": float("nan")}, "broken"),
    (f'kind: holds, that: "numel(x) == 6", breaks: [{{D: 9}}], {OPEN}', {}, "held"),
    (f'kind: holds, that: "numel(x) == 6", breaks: [{{D: 9}}], {OPEN}', {"x": x(2, 2)}, "broken"),
    (f'kind: holds, that: "6 / pad > 1", breaks: [{{D: 9}}], {OPEN}', {"pad": 0}, "not applicable"),
    (f'kind: holds, that: "target.core_count > 1", breaks: [{{D: 9}}], {OPEN}', {}, "not applicable"),
    (f"kind: contiguous, of: out, {OPEN}", {}, "held"),
    (f"kind: contiguous, of: out, {OPEN}", {"out": x(2, 3, strides=(4, 1))}, "broken"),
    (f"kind: contiguous, of: out, {OPEN}", {"out": x(2, 1, strides=(1, 7))}, "held"),
    (f"kind: not_empty, of: x, {OPEN}", {}, "held"),
    (f"kind: not_empty, of: x, {OPEN}", {"x": x()}, "held"),
    (f"kind: not_empty, of: x, {OPEN}", {"x": x(3, 0)}, "broken"),
    (f"kind: finite, of: [x], {OPEN}", {"x": FLOATS}, "held"),
    (f"kind: finite, of: [x], {OPEN}", {"x": x(1, data=Data(values=("nan",)))}, "broken"),
    (f"kind: finite, of: [x], {OPEN}", {"x": x(1, data=Data(values=("-inf",)))}, "broken"),
    (f"kind: finite, of: [x], {OPEN}", {"x": x(9, data=Data(recipe="special"))}, "broken"),
    (f"kind: finite, of: [x], {OPEN}", {"x": x(9, data=Data(recipe="wide"))}, "held"),
    (f"kind: finite, of: [x], {OPEN}", {"x": x(9)}, "not applicable"),
    (f"kind: elements, of: x, in: [1, 6], {OPEN}", {"x": FLOATS}, "held"),
    (f"kind: elements, of: x, in: [2, 6], {OPEN}", {"x": FLOATS}, "broken"),
    (f'kind: elements, of: x, in: [0, "pad"], {OPEN}', {"x": FLOATS}, "broken"),
    (f"kind: elements, of: x, in: [0, 3], {OPEN}", {"x": x(9, data=Data(recipe="indices", low=0, high=4))}, "held"),
    (f"kind: elements, of: x, in: [0, 3], {OPEN}", {"x": x(9, data=Data(recipe="indices", low=0, high=5))}, "broken"),
    (f"kind: elements, of: x, in: [0, 3], {OPEN}", {"x": x(9, data=Data(recipe="normal"))}, "not applicable"),
    (f"kind: elements, of: x, in: [0, 3], {OPEN}", {"x": x(9)}, "not applicable"),
    (f"kind: elements, of: x, in: [0, 3], {OPEN}", {"x": x(0)}, "held"),
    # A condition that is false, and one that has no value
    (f'kind: rank, of: x, in: [1, 1], when: "pad > 1", {OPEN}', {"pad": 1}, "silent"),
    (f'kind: rank, of: x, in: [1, 1], when: "pad > 1", {OPEN}', {"pad": 2}, "broken"),
    (f'kind: rank, of: x, in: [1, 1], when: "dim(out, 5) > 1", {OPEN}', {}, "not applicable"),
    # Products
    (f"kind: rank, of: x, in: [1, 1], products: [atlas-training], {OPEN}", {}, "silent"),
    (f"kind: rank, of: x, in: [1, 1], products: [atlas-a2], {OPEN}", {}, "broken"),
    # What is required
    (f"kind: rank, of: x, in: [1, 1], requires: [pad.range], {OPEN}", {"pad": 9}, "not applicable"),
    (f"kind: rank, of: x, in: [1, 1], requires: [pad.range], {OPEN}", {"pad": 7}, "broken"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "arguments", "expected"), RULES)
def test_each_kind_of_rule(fields: str, arguments: dict[str, Any], expected: str) -> None:
    assert verdict(fields, small_case(**arguments)) == expected


@pytest.mark.parametrize(("fields", "arguments"), [(fields, arguments) for fields, arguments, _ in RULES])
def test_whether_any_rule_is_broken_is_found_out_alike(fields: str, arguments: dict[str, Any]) -> None:
    spec, case = spec_with(fields), small_case(**arguments)
    assert is_broken(spec, case) is bool(evaluate(spec, case).broken)


def test_what_is_required_is_required_of_those_that_require_it_too() -> None:
    spec = spec_with("kind: rank, of: out, in: [1, 4], requires: [x.null], strength: open")
    found = evaluate(spec, small_case(x=None))
    assert [item.id for item in found.broken] == ["x.null"]
    assert {item.id for item in found.not_applicable} == {"it", "out.shape", "x.dtype"}


def test_the_table_of_the_other_product_does_not_count() -> None:
    spec = spec_with("kind: dtype, of: x, in: floats, strength: open")
    bf16 = {"x": x(2, 3, dtype="BF16"), "out": x(2, 3, dtype="BF16")}
    assert evaluate(spec, small_case("atlas-a2", **bf16)).broken == ()
    assert [item.id for item in evaluate(spec, small_case("atlas-training", **bf16)).broken] == ["x.dtype", "it"]
    with pytest.raises(KeyError):
        evaluate(spec, small_case("atlas-inference"))


def test_facts_of_the_target_count_where_they_are_known() -> None:
    fields = 'kind: holds, that: "target.core_count > 1", breaks: [{D: 9}], strength: open'
    case = small_case()
    known = msgspec.structs.replace(case, target=Target(core_count=1))
    assert verdict(fields, known) == "broken"


def _constraint(strength: str, *statuses: str, number: int = 0) -> Constraint:
    status = f", status: [{', '.join(f'{name!r}' for name in statuses)}]" if statuses else ""
    spec = spec_with(f"kind: rank, of: x, in: [1, {number + 1}], strength: {strength}{status}")
    return spec.constraint("it")


LISTED = _constraint("listed", INVALID)
NULL = _constraint("listed", NULLPTR)
TWO = _constraint("listed", INVALID, "ACLNN_ERR_INNER_TILING_ERROR")
LIMIT = _constraint("limit")
ERROR = _constraint("limit", "ACLNN_ERR_*")
OPENED = _constraint("open")
ACCURACY = _constraint("accuracy")
ANY = "ACLNN_ERR_*"
OK = "ACLNN_SUCCESS"


@pytest.mark.parametrize(
    ("broken", "expected", "strength"),
    [
        ((), (OK,), "valid"),
        ((LISTED,), (INVALID,), "listed"),
        ((TWO,), (INVALID, "ACLNN_ERR_INNER_TILING_ERROR"), "listed"),
        ((LISTED, NULL), (INVALID, NULLPTR), "listed"),
        ((LISTED, LISTED), (INVALID,), "listed"),
        ((LIMIT,), (ANY, OK), "limit"),
        ((ERROR,), (ANY,), "limit"),
        ((OPENED,), (ANY, OK), "open"),
        ((LIMIT, OPENED), (ANY, OK), "limit"),
        ((ERROR, LIMIT), (ANY,), "limit"),
        ((ERROR, OPENED), (ANY,), "limit"),
        ((LISTED, LIMIT), (INVALID, ANY), "listed"),
        ((LISTED, ERROR), (INVALID, ANY), "listed"),
        ((LISTED, OPENED), (INVALID, ANY), "listed"),
        ((ACCURACY,), (OK,), "accuracy"),
        ((ACCURACY, OPENED), (ANY, OK), "open"),
        ((ACCURACY, LIMIT), (ANY, OK), "limit"),
        ((ACCURACY, LISTED), (INVALID,), "listed"),
    ],
)
def test_promised_statuses(broken: tuple[Constraint, ...], expected: tuple[str, ...], strength: str) -> None:
    assert promised_statuses(broken) == expected
    assert Evaluation(broken, (), ()).strength == strength


def test_the_pointers_of_the_call_itself() -> None:
    specs = load_specs()
    for spec in specs.values():
        example = spec.examples[0]
        target = Target(product=spec.products[-1])
        for pointer in ("workspaceSize", "executor"):
            case = Case(spec.operator, example.arguments, target, CallOptions(null=(pointer,)))
            found = evaluate(spec, case)
            assert f"interface.{pointer}.null" in [item.id for item in found.broken]
            mine = tuple(item for item in found.broken if item.id.startswith("interface."))
            assert promised_statuses(mine) == (ANY, OK)
