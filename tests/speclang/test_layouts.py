"""Formats tied to the number of dimensions, inputs that some calls may leave out, rows with lists of dtypes."""

from __future__ import annotations

import pytest

from aclnn_cts.core.case import Case, Data, Tensor
from aclnn_cts.core.target import Target
from aclnn_cts.generate.choices import StreamChoices
from aclnn_cts.generate.negative import invalid_cases
from aclnn_cts.generate.recover import recover_drawing
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.build import build_interface, build_spec
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.speclang.model import Spec
from aclnn_cts.speclang.package import package_folder
from aclnn_cts.speclang.yaml_file import parse_yaml, read_yaml
from tests.speclang.small_spec import messages
from tests.support.drawn import drawn

TEXT = """\
operator: aclnnLayouts
document: {title: aclnnLayouts, language: en}
products: [ascend-950, atlas-a2]
rows: {parameters: [x, mean], ascend-950: [[FLOAT, FLOAT], [BF16, [BF16, FLOAT]]], atlas-a2: [[FLOAT, FLOAT]]}
defaults: {null: ACLNN_ERR_PARAM_NULLPTR, rank: ACLNN_ERR_PARAM_INVALID,
  empty: none, formats: ACLNN_ERR_PARAM_INVALID, same_format_as: ACLNN_ERR_PARAM_INVALID}
parameters:
  - name: x
    type: const aclTensor *
    shape: "[*A]"
    dtypes: [FLOAT, BF16]
    rank: [2, 5]
    formats: {is: {ascend-950: [NC, NCL, NCHW, NHWC, ND], atlas-a2: [NC, NCL, NCHW, ND]}}
    layouts: {is: {2: [NC], 3: [NCL], 4: [NHWC, NCHW], 5: [ND]}, status: ACLNN_ERR_PARAM_INVALID}
  - {name: mean, type: const aclTensor *, optional: training,
     shape: "[dim(x, -1 if format(x) == NHWC else 1)]", dtypes: [FLOAT, BF16]}
  - {name: var, type: const aclTensor *, optional: training, null: open, shape: "[*mean]",
     dtypes: [FLOAT], data: {exact: [{recipe: positive}],
     realistic: [{recipe: positive}], hostile: [{recipe: zeros}]}}
  - {name: training, type: bool}
  - {name: out, type: aclTensor *, same_shape_as: x, dtypes: [FLOAT, BF16], same_dtype_as: x, same_format_as: x}
draws:
  - {run: A, length: [2, 5], sizes: [1, 5]}
  - {name: training, one_of: [true, false]}
constraints:
  - {id: var.sign, kind: elements, in: [0, null]}
  - {id: rows, kind: dtype_rows}
clauses:
  function:
    - {en: "It computes.", zh: "计算。", check: values}
    - {say: [var.sign, rows], en: "Rules.", zh: "规则。"}
"""


def built() -> Spec:
    interface, _ = build_interface(read_yaml(package_folder() / "interface.yaml"))
    spec, problems = build_spec(parse_yaml(TEXT, name="layouts.yaml"), stem="layouts", interface=interface)
    assert not problems.messages
    assert spec is not None
    return spec


SPEC = built()
SAMPLERS = {product: Sampler(SPEC, Target(product=product)) for product in SPEC.products}


def valid(product: str, count: int = 120) -> list[Case]:
    return list(drawn(SAMPLERS[product], count, stream="tests/layouts"))


def tensor(case: Case, name: str) -> Tensor:
    value = case.arguments[name]
    assert isinstance(value, Tensor)
    return value


@pytest.mark.parametrize(
    ("product", "expected"),
    [
        ("ascend-950", {(2, "NC"), (3, "NCL"), (4, "NCHW"), (4, "NHWC"), (5, "ND")}),
        ("atlas-a2", {(2, "NC"), (3, "NCL"), (4, "NCHW"), (5, "ND")}),
    ],
)
def test_valid_calls_have_a_format_for_their_rank(product: str, expected: set[tuple[int, str]]) -> None:
    cases = valid(product)
    assert {(len(tensor(case, "x").shape), tensor(case, "x").format) for case in cases} == expected
    for case in cases:
        assert not evaluate(SPEC, case).broken
        assert tensor(case, "out").format == tensor(case, "x").format
        assert recover_drawing(SAMPLERS[product], case) is not None


def test_a_format_for_another_rank_breaks_the_rule_alone() -> None:
    rule = next(item for item in SPEC.constraints if item.id == "x.layout")
    found = list(invalid_cases(SAMPLERS["ascend-950"], rule, seed=0, count=8))
    assert len(found) == 8
    for derived in found:
        x = tensor(derived.case, "x")
        assert derived.broken == ("x.layout",)
        assert x.format not in rule.rule.table[len(x.shape)]  # type: ignore[attr-defined]  # of LayoutRule


def test_layouts_are_described_in_both_languages() -> None:
    rule = next(item.rule for item in SPEC.constraints if item.id == "x.layout")
    assert rule.describe("atlas-a2").en == "format of x by number of dimensions: 2 NC; 3 NCL; 4 NHWC, NCHW; 5 ND"
    assert rule.describe("atlas-a2").zh == "x 各维数对应的数据格式：2 NC；3 NCL；4 NHWC、NCHW；5 ND"


def test_a_format_of_some_products_is_a_clause_for_them() -> None:
    stated = {clause.en: clause.products for clause in SPEC.clauses if clause.when_text == "format(x) == NHWC"}
    assert stated == {"On Ascend 950, x may have the format NHWC.": ("ascend-950",)}


def test_an_input_is_left_out_where_its_condition_holds_alone() -> None:
    found = {(case.arguments["training"], case.arguments["mean"] is None) for case in valid("atlas-a2")}
    assert found == {(True, True), (True, False), (False, False)}
    rules = {item.id: item for item in SPEC.constraints}
    assert rules["mean.null"].strength == "listed"
    assert rules["var.null"].strength == "open"
    for name in ("mean.null", "var.null"):
        for derived in invalid_cases(SAMPLERS["atlas-a2"], rules[name], seed=0, count=4):
            assert derived.case.arguments["training"] is False
            assert derived.broken == (name,)


def test_a_list_in_a_row_is_a_row_with_each_of_its_dtypes() -> None:
    assert SPEC.rows == {
        "ascend-950": (("FLOAT", "FLOAT"), ("BF16", "BF16"), ("BF16", "FLOAT")),
        "atlas-a2": (("FLOAT", "FLOAT"),),
    }


def test_a_bound_of_elements_may_be_missing() -> None:
    rule = next(item for item in SPEC.constraints if item.id == "var.sign")
    assert rule.rule.describe("atlas-a2").en == "elements of var are at least 0"
    found = list(invalid_cases(SAMPLERS["atlas-a2"], rule, seed=0, count=2))
    assert [tensor(derived.case, "var").data for derived in found] == [
        Data(values=(-1,) * tensor(derived.case, "var").numel) for derived in found
    ]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("{2: [NX]}", "unknown format 'NX'"),
        ("{two: [NC]}", "'two': ['NC']; expected a number of dimensions and a list of formats"),
        ("[NC]", "expected a list of formats for each number of dimensions"),
    ],
)
def test_a_mistake_in_layouts_is_named(written: str, expected: str) -> None:
    old = "{2: [NC], 3: [NCL], 4: [NHWC, NCHW], 5: [ND]}"
    found = messages(TEXT.replace(old, written))
    assert any(expected in message for message in found), found


def test_an_input_is_left_out_where_the_shapes_of_earlier_ones_allow_it() -> None:
    sampler = Sampler(load_specs()["aclnnMoeTokenUnpermuteGrad"], Target())
    found = set()
    for number in range(200):
        case = sampler.case(sampler.draw(StreamChoices(0, "shapes", number), budget=160))
        rows = tensor(case, "permuteTokens").shape[0], tensor(case, "unpermutedTokensGrad").shape[0]
        found.add((case.arguments["probsOptional"] is None, rows[0] == rows[1]))
    assert found == {(True, True), (False, True), (False, False)}
