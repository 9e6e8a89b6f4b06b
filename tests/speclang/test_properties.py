"""What properties and sections of a spec imply, and what their mistakes say."""

from __future__ import annotations

from pathlib import Path

import pytest

from aclnn_cts.core.case import Data, Tensor
from aclnn_cts.speclang.kinds_dtype import ListedRule, SameDtypeRule
from aclnn_cts.speclang.kinds_number import PredicateRule
from aclnn_cts.speclang.kinds_size import ShapeRule, SizeRule
from aclnn_cts.speclang.kinds_tensor import RankRangeRule
from aclnn_cts.speclang.load import lint_files
from aclnn_cts.speclang.model import Clause, Spec
from tests.speclang.small_spec import built, junk_is_a_message, messages, stated

SHORT = """\
operator: aclnnShort
document: {title: aclnnShort, language: en}
products: [atlas-training, atlas-a2]
tables:
  floats: {atlas-training: [FLOAT], atlas-a2: [FLOAT, BF16]}
defaults:
  null: ACLNN_ERR_PARAM_NULLPTR
  dtypes: {status: ACLNN_ERR_PARAM_INVALID, group: dtype}
parameters:
  - {name: x, type: const aclTensor *, shape: "[*A]", dtypes: floats, formats: [ND, NCL], strided: true, rank: [1, 8]}
  - {name: out, type: aclTensor *, same_shape_as: x, dtypes: floats, same_dtype_as: x}
draws:
  - {run: A, length: [1, 8]}
clauses:
  function:
    - {en: "It computes.", zh: "计算。", check: values}
"""


def changed(old: str, new: str) -> str:
    assert SHORT.count(old) == 1, (old, SHORT.count(old))
    return SHORT.replace(old, new)


# What properties imply


def test_properties_make_constraints() -> None:
    spec = built(SHORT)
    assert {item.id for item in spec.constraints if not item.id.startswith("interface.")} == {
        "x.null", "out.null", "x.dtype", "out.dtype", "out.same_dtype", "x.format", "out.format", "x.rank", "out.shape",
        "out.contiguous", "x.not_empty",
    }  # fmt: skip
    floats = {"atlas-training": ("FLOAT",), "atlas-a2": ("FLOAT", "BF16")}
    assert spec.constraint("x.dtype").rule == ListedRule("x", "dtype", floats, ("out",))
    invalid = {"strength": "listed", "status": ("ACLNN_ERR_PARAM_INVALID",), "group": "dtype"}
    assert stated(spec, "x.dtype") == invalid
    assert spec.constraint("out.same_dtype").rule == SameDtypeRule("out", ("x",))
    assert stated(spec, "out.same_dtype") == {"strength": "limit", "requires": ("x.dtype", "out.dtype")}
    assert spec.constraint("x.rank").rule == RankRangeRule("x", 1, 8)
    assert stated(spec, "x.rank") == {"strength": "limit"}
    shape = spec.constraint("out.shape").rule
    assert isinstance(shape, ShapeRule)
    assert (shape.of, shape.shape.text) == ("out", "[*x]")
    assert stated(spec, "out.contiguous")["strength"] == "open"
    assert stated(spec, "x.not_empty")["strength"] == "open"


def test_parameters_draw_what_their_properties_allow() -> None:
    x, out = built(SHORT).parameters
    formats = dict.fromkeys(("atlas-training", "atlas-a2"), ("ND", "NCL"))
    assert (x.role, x.dtypes["atlas-a2"], x.formats, x.strided) == ("input", ("FLOAT", "BF16"), formats, True)
    assert out.shape is not None
    assert (out.role, out.shape.text, out.dtype_as, out.formats["atlas-a2"]) == ("output", "[*x]", "x", ("ND",))


def test_others_are_the_products_that_a_list_does_not_name() -> None:
    products = "products: [atlas-training, atlas-a2, atlas-a3]"
    text = changed("products: [atlas-training, atlas-a2]", products).replace(
        "formats: [ND, NCL]", "formats: {is: {others: [ND]}}"
    )
    written = (
        text.replace("atlas-a2: [FLOAT, BF16]", "others: [FLOAT, BF16]")
        + "rows: {parameters: [x], others: [[FLOAT]]}\n"
    )
    spec = built(written)
    both = ("FLOAT", "BF16")
    assert spec.parameter("x").dtypes == {"atlas-training": ("FLOAT",), "atlas-a2": both, "atlas-a3": both}
    assert spec.parameter("x").formats == dict.fromkeys(spec.products, ("ND",))
    assert (spec.rows, spec.row_parameters) == (dict.fromkeys(spec.products, (("FLOAT",),)), ("x",))


def test_a_mistake_in_what_others_have_names_its_line() -> None:
    text = changed("atlas-a2: [FLOAT, BF16]", "others: [FLOAT, BF17]")
    assert any(message.startswith("small.yaml:5:") and "BF17" in message for message in messages(text))


def test_a_tier_requires_the_wider_ones_and_valid_calls_draw_from_the_last() -> None:
    spec = built(changed("formats: [ND, NCL]", "formats: [{is: [ND, NCL]}, {is: [NCL], id: ncl, strength: open}]"))
    assert spec.constraint("x.ncl").rule == ListedRule("x", "format", dict.fromkeys(spec.products, ("NCL",)), ())
    assert stated(spec, "x.ncl") == {"strength": "open", "requires": ("x.format",)}
    assert spec.parameter("x").formats["atlas-a2"] == ("NCL",)


@pytest.mark.parametrize(
    ("written", "strength"),
    [("strided: false", "limit"), ("strided: ACLNN_ERR_PARAM_INVALID", "listed"), ("strided: open", "open")],
)
def test_a_word_is_the_check_of_a_property(written: str, strength: str) -> None:
    assert built(changed("strided: true", written)).constraint("x.contiguous").strength == strength


@pytest.mark.parametrize("written", ["empty: none", "empty: true"])
def test_a_property_may_imply_nothing(written: str) -> None:
    spec = built(changed("strided: true", f"strided: true, {written}"))
    assert "x.not_empty" not in [item.id for item in spec.constraints]


def test_what_cannot_be_broken_alone_is_one_group() -> None:
    text = changed(", group: dtype}", "}\n  same_dtype_as: ACLNN_ERR_PARAM_INVALID").replace(
        "  - {name: out,", "  - {name: y, type: const aclTensor *, shape: '[*A]', dtypes: floats}\n  - {name: out,"
    )
    groups = {item.id: item.group for item in built(text).constraints if item.group is not None}
    dtypes = dict.fromkeys(("x.dtype", "out.dtype", "out.same_dtype"), "dtype")
    assert groups == {**dtypes, "x.not_empty": "empty", "y.not_empty": "empty"}
    alone = built(text.replace("y, type", "y, empty: {group: null}, type"))
    assert alone.constraint("y.not_empty").group is None


def test_a_check_of_its_own_replaces_the_default_one() -> None:
    spec = built(changed("same_shape_as: x, dtypes: floats", "same_shape_as: x, dtypes: {is: floats, strength: open}"))
    assert stated(spec, "out.dtype") == {"strength": "open"}


def test_a_written_constraint_replaces_the_implied_one() -> None:
    text = changed("clauses:\n", "constraints:\n  - {id: x.rank, kind: rank, of: x, in: [2, 8]}\nclauses:\n")
    assert [item.rule for item in built(text).constraints if item.id == "x.rank"] == [RankRangeRule("x", 2, 8)]


@pytest.mark.parametrize(
    ("status", "strength"),
    [("status: ACLNN_ERR_PARAM_INVALID, ", "listed"), ("status: ACLNN_ERR_*, ", "limit"), ("", "limit")],
)
def test_the_strength_of_a_constraint_follows_from_its_status(status: str, strength: str) -> None:
    text = changed("clauses:\n", f"constraints:\n  - {{id: it, {status}kind: rank, of: x, in: [2, 8]}}\nclauses:\n")
    assert built(text).constraint("it").strength == strength


# Clauses


A2 = "Atlas A2 training series / Atlas 800I A2 inference product"


def clauses(spec: Spec, section: str) -> dict[str, str]:
    return {item.at: item.en for item in spec.clauses if item.at.rpartition(".")[0] == section}


def clause(spec: Spec, at: str) -> Clause:
    (found,) = [item for item in spec.clauses if item.at == at]
    return found


def test_a_short_spec_is_whole_without_a_clause_on_its_parameters(tmp_path: Path) -> None:
    path = tmp_path / "short.yaml"
    path.write_text(SHORT, encoding="utf-8")
    assert lint_files([path])[1] == []
    spec = built(SHORT)
    rules = {item.id for item in spec.constraints if not item.id.startswith("interface.")}
    assert {item for clause in spec.clauses for item in clause.constraints} == rules
    assert list(clauses(spec, "params.x").values()) == [
        "x is a tensor that the computation reads.",
        "x may be a view that is not contiguous.",
        "On Atlas training series, x may be FLOAT.",
        f"On {A2}, x may be FLOAT.",
        f"On {A2}, x may be BF16.",
        "x may have the format ND.",
        "x may have the format NCL.",
        f"Dtypes of x: FLOAT (Atlas training series); FLOAT, BF16 ({A2}), and no others.",
        "Formats of x: ND, NCL, and no others.",
        "Number of dimensions of x: 1 to 8.",
        "Whether x may be empty is not said.",
    ]
    assert list(clauses(spec, "returns").values())[1:3] == [
        "A null pointer for x gives ACLNN_ERR_PARAM_NULLPTR.",
        "A null pointer for out gives ACLNN_ERR_PARAM_NULLPTR.",
    ]


def section(*entries: str, name: str = "params.x") -> Spec:
    lines = "".join(f"    - {item}\n" for item in entries)
    return built(SHORT + f"  {name}:\n{lines}")


def test_a_written_section_is_numbered_by_place() -> None:
    spec = section("input", "{at: 7, en: Own., zh: 自。, check: reads}", "rank")
    assert list(clauses(spec, "params.x")) == ["params.x.1", "params.x.7", "params.x.8"]
    assert list(clauses(section("{at: 3, say: dtypes}", "rank"), "params.x")) == [
        f"params.x.{at}" for at in range(3, 7)
    ]
    own = clause(spec, "params.x.7")
    assert (own.check, own.faults) == ("values", ("crash", "hang", "stray-read", "input-changed"))


def test_the_word_implied_stands_for_the_rest_of_a_section() -> None:
    spec = section("implied", "{say: rank, en: Own., zh: 自。}")
    texts = list(clauses(spec, "params.x").values())
    assert texts[0] == "x is a tensor that the computation reads."
    assert texts[-1] == "Own."
    assert not any("Number of dimensions" in text for text in texts)


def test_where_a_clause_is_stated_follows_from_its_rules() -> None:
    text = changed("clauses:\n", "constraints:\n  - {id: x.dims, kind: dims, of: x, in: [1, 9], products: [atlas-a2],"
                   " strength: open}\nclauses:\n")  # fmt: skip
    found = clause(built(text + "  limits:\n    - {say: x.dims, en: Own., zh: 自。}\n"), "limits.1")
    assert found == Clause(
        at="limits.1", en="Own.", zh="自。", constraints=("x.dims",), products=("atlas-a2",), certainty="ambiguous"
    )


def test_one_sentence_speaks_of_several_rules() -> None:
    spec = section("tensors.dtype", "[x.null, out.null]", "x.rank", name="returns")
    assert list(clauses(spec, "returns").values()) == [
        "An unsupported dtype of x and out gives ACLNN_ERR_PARAM_INVALID.",
        "A null pointer for x and out gives ACLNN_ERR_PARAM_NULLPTR.",
        "Number of dimensions of x: 1 to 8.",
    ]


def test_a_sentence_of_the_spec_is_said_of_each_parameter() -> None:
    text = changed("draws:\n", "sentences:\n  odd: {say: format, en: 'Odd {name} {4}.', zh: '{name} 奇。'}\ndraws:\n")
    spec = built(text + "  params.x:\n    - odd\n  params.out:\n    - {say: odd, certainty: missing}\n")
    assert clauses(spec, "params.x") == {"params.x.1": "Odd x {4}."}
    assert [item.certainty for item in spec.clauses if "Odd" in item.en] == ["stated", "missing"]


# Examples


def test_examples_are_written_as_tensors_and_plain_values() -> None:
    text = changed(
        "clauses:\n", "examples:\n  - arguments: {x: 'FLOAT [2, 2] NCL = 0..3', out: 'FLOAT8_E8M0 [2, 2]'}\nclauses:\n"
    )
    (example,) = built(text).examples
    assert (example.name, example.at) == ("document", "example.1")
    x = Tensor((2, 2), "FLOAT", "NCL", data=Data(values=(0, 1, 2, 3)))
    assert example.arguments == {"x": x, "out": Tensor((2, 2), "FLOAT8_E8M0")}


# Mistakes


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        (changed("rank: [1, 8]", "rang: [1, 8]"), 10, "unknown key 'rang'"),
        (changed("rank: [1, 8]", "rank: {is: [1, 8], brakes: []}"), 10, "unknown key 'brakes'"),
        (changed("rank: [1, 8]", "rank: {is: [8, 1]}"), 10, "expected two integers in ascending order"),
        (changed("rank: [1, 8]", "rank: [1, 8], strength: 1"), 10, "unknown key 'strength'"),
        (changed("rank: [1, 8]", "length: 3"), 10, "x is of kind tensor; length is a property of int_array"),
        (changed("strided: true", "strided: maybe"), 10, "strided: 'maybe'; expected true, false, a status"),
        (changed("same_dtype_as: x", "same_dtype_as: y"), 11, "'as y'; expected 'as NAME' with an earlier tensor"),
        (changed("same_dtype_as: x", "same_dtype_as: [x]"), 11, "expected the name of an earlier parameter"),
        (changed("  null: A", "  nul: A"), 7, "unknown property 'nul'"),
        (changed("  function:", "  functions:"), 16, "unknown section 'functions'"),
        (SHORT + "  params.x:\n    - rnk\n", 18, "unknown word of the section params.x: 'rnk'"),
        (SHORT + "  params.x:\n    - {untestable: tired, en: O., zh: 自。}\n", 18, "unknown reason 'tired'"),
        (SHORT + "  returns:\n    - [x.rank, x.null]\n", 18, "x.rank, x.null: no stock sentence; write en and zh"),
        (SHORT + "  params.x:\n    - 3\n", 18, "3; expected a word, a list of rules, or a clause"),
        (
            changed("clauses:\n", "examples:\n  - arguments: {x: FLOAT 4}\nclauses:\n"),
            15,
            "'FLOAT 4'; expected a tensor such as `FLOAT [4, 2] = 0..7`",
        ),
        (
            changed("clauses:\n", "examples:\n  - arguments: {x: 'FLOAT [4] = 1..3'}\nclauses:\n"),
            15,
            "3 values; the shape has 4",
        ),
        (
            changed("clauses:\n", "examples:\n  - arguments: {x: 'FLOAT [99999999, 99] = 1'}\nclauses:\n"),
            15,
            "expected LOW..HIGH",
        ),
    ],
)  # fmt: skip
def test_a_mistake_names_its_line_in_the_written_file(text: str, line: int, expected: str) -> None:
    found = messages(text)
    assert any(message.startswith(f"small.yaml:{line}:") and expected in message for message in found), found


def test_a_mistake_in_an_implied_constraint_names_the_property() -> None:
    found = messages(changed("rank: [1, 8]", "rank: {is: [1, 8], strength: hard}"))
    assert any("parameters.0.rank.strength: 'hard'" in message for message in found), found


def test_clauses_in_one_list_are_a_mistake() -> None:
    found = messages(changed("clauses:\n  function:\n    - {en", "clauses:\n    - {at: function.1, en"))
    assert any(message.startswith("small.yaml:15: clauses: ") and "a mapping" in message for message in found), found


def test_junk_anywhere_is_a_message_and_no_exception() -> None:
    text = SHORT + "  params.x: [implied, {say: rank, at: 30, en: O., zh: O., of: [x], products: [atlas-a2]}]\n"
    text = text.replace("clauses:\n", "rows: {parameters: [x, out], atlas-a2: [[FLOAT, BF16]]}\nclauses:\n")
    text = text.replace("clauses:\n", "sentences: {odd: {say: x.rank, en: O., zh: O.}}\nclauses:\n")
    text = text.replace("clauses:\n", "constraints:\n  - {id: x.d, kind: dims, of: x, in: [1, 9]}\nclauses:\n")
    text = text.replace("clauses:\n", "examples:\n  - arguments: {x: 'FLOAT [2] = 1', out: 'FLOAT [2]'}\nclauses:\n")
    junk_is_a_message(text)


# Named expressions


def test_let_names_an_expression_wherever_one_is_read() -> None:
    text = changed("defaults:\n", "let: {half: 'dim(x, 0) // 2', most: half + 1}\ndefaults:\n")
    text = text.replace(
        "clauses:\n",
        "constraints:\n  - {id: x.half, that: numel(x) < 2*most, breaks: [{A: [half, 3]}], when: half > 1}\nclauses:\n",
    )
    spec = built(text + "  limits:\n    - {say: x.half, en: Own half., zh: 自。}\n")
    assert spec.constraint("x.half").rule == PredicateRule("numel(x) < 2*((dim(x, 0) // 2) + 1)")
    assert stated(spec, "x.half") == {
        "strength": "limit", "when": "(dim(x, 0) // 2) > 1", "breaks": ({"A": "[dim(x, 0) // 2, 3]"},),
    }  # fmt: skip
    assert clauses(spec, "limits") == {"limits.1": "Own half."}


@pytest.mark.parametrize(
    ("named", "expected"),
    [("x: 1", "'x' means something else already"), ("A: 1", "'A' means"), ("min: 1", "'min' means"),
     ("y: 1 +", "ends too early"), ("y: z", "unknown name in the expression 'numel(x) < z': 'z'")],
)  # fmt: skip
def test_a_mistake_in_let_is_named(named: str, expected: str) -> None:
    text = changed("defaults:\n", f"let: {{{named}}}\ndefaults:\n")
    text = text.replace("clauses:\n", "constraints:\n  - {id: it, that: numel(x) < y}\nclauses:\n")
    found = messages(text + "  limits:\n    - {say: it, en: O., zh: 自。}\n")
    assert any(expected in message for message in found), found


def test_the_kind_and_the_parameter_of_a_constraint_follow() -> None:
    text = changed("clauses:\n", "constraints:\n  - {id: x.first, axis: 0, is: 3}\nclauses:\n")
    assert built(text).constraint("x.first").rule == SizeRule("x", 0, "3")


def test_a_clause_that_contradicts_others_is_contradicted() -> None:
    spec = section("{contradicts: [function.1], en: Own., zh: 自。, check: values}")
    assert clause(spec, "params.x.1").certainty == "contradicted"


@pytest.mark.parametrize(("rank", "is_told"), [("[1, 8]", True), ("[1, 7]", False)])
def test_one_sentence_on_several_rules_is_true_of_each(rank: str, is_told: bool) -> None:
    text = changed("same_shape_as: x, dtypes", f"same_shape_as: x, rank: {rank}, dtypes")
    told = "\n".join(messages(f"{text}  limits: [[x.rank, out.rank]]\n"))
    assert ("x.rank, out.rank: no stock sentence; write en and zh" in told) is not is_told
